"""The MATRIX command: rows of names and characters, sequential or interleaved, with comments and quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from phloem.errors import InputError
from phloem.io.character_rows import CharacterRow, cell_end, check_sets, n_cells
from phloem.io.nexus import Command, end_of_comment
from phloem.io.source_text import SourceText

NOTHING = "\x00"  # stands where a comment was inside a word
_QUOTED_NAME = re.compile(r"""\s*(?:'((?:[^']|'')*)'|"([^"]*)")""")
_MARK = re.compile(r"""\[|(?:^|(?<=\s))(?:'(?:[^']|'')*'|"[^"]*")""")


def read_rows(
    command: Command, interleave: bool, n_taxa: int | None, n_sites: int | None
) -> list[CharacterRow]:
    """The rows of a matrix in file order; comments count as blanks.

    Raises InputError with line and column for names that are there twice or only in a later block, and for
    rows that are not n_sites long.
    """
    lines = _lines(_blank_comments(command.source, command.start, command.end), command.start)
    if interleave:
        return _interleaved(command.source, lines, n_taxa)
    return _sequential(command.source, lines, n_taxa, n_sites)


def _blank_comments(source: SourceText, start: int, end: int) -> str:
    """text[start:end] with comments overwritten by blanks, inside a word by NOTHING: offsets stay."""
    text = source.text[start:end]
    if "[" not in text:
        return text
    pieces, position = [], start
    mark = _MARK.search(source.text, position, end)
    while mark is not None:
        stop = mark.end()
        pieces.append(source.text[position : mark.start()])
        written = mark.group()
        if written == "[":
            stop = mark.start()
            while source.text.startswith("[", stop):
                stop = end_of_comment(source, stop)
            around = source.text[mark.start() - 1] + source.text[stop : min(stop + 1, end)]
            inside = len(around) == 2 and not any(character.isspace() for character in around)
            written = (NOTHING if inside else " ") * (stop - mark.start())
        pieces.append(written)
        position = stop
        mark = _MARK.search(source.text, position, end)
    return "".join([*pieces, source.text[position:end]])


def _lines(text: str, start: int) -> Iterator[tuple[str, int]]:
    """The lines that are not blank, with their offsets in the source."""
    for line in text.split("\n"):
        if line and not line.isspace():
            yield line, start
        start += len(line) + 1


def _split_name(line: str, start: int) -> tuple[str, str, int, int]:
    """A row's name, its characters, and the offsets where both start."""
    first = line.lstrip()
    indent = len(line) - len(first)
    if first[0] in "'\"":
        match = _QUOTED_NAME.match(line)
        if match is not None:
            single = match.group(1)
            name = match.group(2) if single is None else single.replace("''", "'")
            return name, line[match.end() :], start + indent, start + match.end()
    words = first.split(None, 1)
    rest = words[1] if len(words) > 1 else ""
    return words[0].replace(NOTHING, ""), rest, start + indent, start + len(line) - len(rest)


def _interleaved(
    source: SourceText, lines: Iterator[tuple[str, int]], n_taxa: int | None
) -> list[CharacterRow]:
    rows: dict[str, CharacterRow] = {}
    in_block: set[str] = set()
    first_block = True
    for line, start in lines:
        name, text, name_start, text_start = _split_name(line, start)
        if len(in_block) == (len(rows) if n_taxa is None else n_taxa) and (
            name in in_block or not first_block
        ):
            in_block, first_block = set(), False
        row = rows.get(name)
        if name in in_block:
            raise _repeated(source, name, name_start, rows[name], n_taxa)
        if row is None:
            if not first_block:
                raise source.error(
                    f"'{name}' is not in the first block of the matrix",
                    name_start,
                    taxon=name,
                    hint="Start every line with its taxon's name; without INTERLEAVE, rows may run on.",
                )
            row = rows[name] = CharacterRow(name, name_start)
        row.add(text.replace(NOTHING, " "), text_start)
        in_block.add(name)
    return list(rows.values())


def _sequential(
    source: SourceText, lines: Iterator[tuple[str, int]], n_taxa: int | None, n_sites: int | None
) -> list[CharacterRow]:
    rows: dict[str, CharacterRow] = {}
    row, found = None, 0
    waiting = list(lines)[::-1]
    while waiting:
        line, start = waiting.pop()
        if row is None or n_sites is None or found >= n_sites:
            name, text, name_start, text_start = _split_name(line, start)
            if name in rows:
                raise _repeated(source, name, name_start, rows[name])
            row, found = CharacterRow(name, name_start), 0
            rows[name] = row
        else:
            text, text_start = line, start
        text = text.replace(NOTHING, " ")
        cells = n_cells(text, True)
        if n_sites is not None and found + cells > n_sites:
            several = not found and n_taxa is not None and len(rows) < n_taxa  # taxa on this line
            stop = cell_end(text, n_sites) if several else None
            if stop is None or not text[stop : stop + 1].isspace():
                row.add(text, text_start)
                check_sets(source, row)
                raise _too_long(source, row, found, cells, n_sites)
            waiting.append((line[len(line) - len(text) + stop :], text_start + stop))  # the next taxon
            text, cells = text[:stop], n_sites - found
        row.add(text, text_start)
        found += cells
    return list(rows.values())


def _too_long(source: SourceText, row: CharacterRow, found: int, cells: int, n_sites: int) -> InputError:
    if not found:
        message, hint = (
            f"'{row.taxon}' has {cells} characters, NCHAR is {n_sites}",
            "Correct NCHAR or the row.",
        )
    else:
        message = f"'{row.taxon}' has {found} or {found + cells} characters, NCHAR is {n_sites}"
        hint = "Correct NCHAR or the row; add INTERLEAVE to FORMAT if the matrix is in blocks."
    return source.error(message, row.name_start, taxon=row.taxon, hint=hint)


def _repeated(
    source: SourceText, name: str, offset: int, first: CharacterRow, n_taxa: int | None = None
) -> InputError:
    line, _ = source.locate(first.name_start)
    hint = "Rename one of them; add INTERLEAVE to FORMAT if the matrix is in blocks."
    if n_taxa is not None:
        hint = f"Rename one of them, or correct NTAX, which says that a block has {n_taxa} taxa."
    return source.error(
        f"the taxon '{name}' is there twice, first in line {line}", offset, taxon=name, hint=hint
    )
