"""PHYLIP: a line with the numbers of taxa and sites, then names and characters.

Four layouts are in use: names of exactly ten columns (strict) or up to the first blank (relaxed), and taxa
one after the other (sequential) or in blocks (interleaved). A file does not say which it is; the first
layout in which every taxon has exactly the announced number of characters is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from phloem.data.alignment import Alignment
from phloem.errors import InputError
from phloem.io.alignment_text import sequence_texts
from phloem.io.character_rows import CharacterRow, CharacterRows, character_matrix, check_names, n_cells
from phloem.io.source_text import SourceText

_HEADER = re.compile(r"\s*(\d{1,12})[ \t]+(\d{1,12})\b[^\n]*")
_LINE = re.compile(r"[^\n]*\S[^\n]*")
_STRICT_WIDTH = 10


@dataclass(frozen=True)
class _Line:
    text: str
    start: int

    def name_and_rest(self, strict: bool) -> tuple[str, int]:
        """The name, and how many columns it takes."""
        if strict:
            return self.text[:_STRICT_WIDTH].strip(), min(_STRICT_WIDTH, len(self.text))
        indent = len(self.text) - len(self.text.lstrip())
        name = self.text.split(None, 1)[0]
        return name, indent + len(name)


def is_phylip(text: str) -> bool:
    """Whether a text starts as a PHYLIP file does."""
    return _HEADER.match(text) is not None


def read_phylip(source: SourceText) -> CharacterRows:
    """Read a PHYLIP file in any of its four layouts.

    Raises InputError for a header that is none, and, where no layout fits, for what is wrong in the
    likeliest one.
    """
    header = _HEADER.match(source.text)
    if header is None:
        raise source.error("expected the numbers of taxa and sites", 0, hint="Write them in the first line.")
    n_taxa, n_sites = int(header.group(1)), int(header.group(2))
    lines = [_Line(match.group(), match.start()) for match in _LINE.finditer(source.text, header.end())]
    if not n_taxa or not n_sites or len(lines) < n_taxa:
        raise source.error(
            f"the header announces {n_taxa} taxa of {n_sites} characters, {len(lines)} lines follow",
            header.start(1),
            hint="Correct the header, or complete the file.",
        )
    likeliest = None
    layouts: list[tuple[Callable[..., list[CharacterRow]], bool]] = [
        (_sequential, False), (_interleaved, False), (_sequential, True), (_interleaved, True)
    ]  # fmt: skip
    for layout, strict in layouts:
        try:
            return _checked(source, layout(source, lines, n_taxa, n_sites, strict), n_taxa, n_sites)
        except InputError as error:
            if likeliest is None or (layout is _interleaved and not strict and len(lines) % n_taxa == 0):
                likeliest = error
    assert likeliest is not None
    raise likeliest


def _checked(source: SourceText, rows: list[CharacterRow], n_taxa: int, n_sites: int) -> CharacterRows:
    matrix, sets = character_matrix(source, rows, n_sites=n_sites)
    check_names(source, rows, "Rename one of them.")
    return CharacterRows(source, rows, matrix, sets, format_name="PHYLIP")


def _start_row(source: SourceText, line: _Line, strict: bool) -> CharacterRow:
    name, taken = line.name_and_rest(strict)
    if not name:
        raise source.error("the taxon has no name", line.start, hint="Write a name before the characters.")
    row = CharacterRow(name, line.start)
    row.add(line.text[taken:], line.start + taken)
    return row


def _sequential(
    source: SourceText, lines: list[_Line], n_taxa: int, n_sites: int, strict: bool
) -> list[CharacterRow]:
    rows: list[CharacterRow] = []
    missing = 0
    for line in lines:
        if missing <= 0:
            if len(rows) == n_taxa:
                raise source.error(
                    f"there are more than {n_taxa} taxa", line.start, hint="Correct the header."
                )
            rows.append(_start_row(source, line, strict))
            missing = n_sites - n_cells(rows[-1].pieces[0], False)
        else:
            rows[-1].add(line.text, line.start)
            missing -= n_cells(line.text, False)
        if missing < 0:
            row = rows[-1]
            counted = n_sites - missing - n_cells(row.pieces[-1], False)
            before = f"{counted} or " if len(row.pieces) > 1 else ""
            raise source.error(
                f"'{row.taxon}' has {before}{n_sites - missing} characters, the header announces {n_sites}",
                row.name_start,
                taxon=row.taxon,
                hint="Correct the header or the sequence.",
            )
    if len(rows) < n_taxa:
        raise source.error(f"there are {len(rows)} taxa, not {n_taxa}", 0, hint="Correct the header.")
    return rows


def _interleaved(
    source: SourceText, lines: list[_Line], n_taxa: int, n_sites: int, strict: bool
) -> list[CharacterRow]:
    if len(lines) % n_taxa:
        raise source.error(
            f"{len(lines)} lines are no blocks of {n_taxa} taxa", 0, hint="Give every block one line a taxon."
        )
    rows = [_start_row(source, line, strict) for line in lines[:n_taxa]]
    names = {row.taxon: row for row in rows}
    for number, line in enumerate(lines[n_taxa:]):
        row = rows[number % n_taxa]
        name, taken = line.name_and_rest(strict)
        # Some programs repeat the name in every block.
        skip = taken if names.get(name) is row and taken < len(line.text.rstrip()) else 0
        row.add(line.text[skip:], line.start + skip)
    return rows


def format_phylip(alignment: Alignment, strict: bool = False) -> str:
    """An alignment as sequential PHYLIP, with relaxed names, or with names of ten columns."""
    texts = sequence_texts(alignment)
    for taxon in alignment.taxa:
        if strict and len(taxon) > _STRICT_WIDTH:
            raise InputError(
                f"the name has more than {_STRICT_WIDTH} letters",
                taxon=taxon,
                hint="Shorten it, or write relaxed PHYLIP.",
            )
        if len(taxon.split()) != 1 or taxon != taxon.strip():
            raise InputError(
                "a PHYLIP name is one word", taxon=taxon, hint="Rename the taxon, or write NEXUS."
            )
    width = _STRICT_WIDTH if strict else max(len(taxon) for taxon in alignment.taxa) + 2
    lines = [taxon.ljust(width) + text for taxon, text in zip(alignment.taxa, texts)]
    return "\n".join([f"{alignment.n_taxa} {len(texts[0])}", *lines]) + "\n"
