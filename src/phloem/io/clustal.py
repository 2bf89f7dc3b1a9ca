"""Clustal alignments: a first line of the program's name, then blocks with a line for each taxon.

    CLUSTAL W (1.83) multiple sequence alignment

    Homo      ACGTACGTAC 10
    Pan       ACG-ACGTAC 9
              *** ******

    Homo      TTG 13
    Pan       TTA 12

The number behind a line counts the taxon's characters so far without gaps, and may be missing; it is not
looked at, nor are the lines of `*`, `:` and `.` that say how alike columns are. Other programs put their own
names into the first line ("MUSCLE (3.8) multiple sequence alignment").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from phloem.io.character_rows import CharacterRow, CharacterRows, character_matrix
from phloem.io.source_text import SourceText

_FIRST_LINE = re.compile(r"\s*+(?:CLUSTAL\b|[^\n>#]*multiple sequence alignment)[^\n]*", re.IGNORECASE)
_LINE = re.compile(r"[^\n]+")
_BETWEEN = re.compile(r"\s[\s*:.]*|\s*")  # blocks: blank, or how alike columns are
_TAXON = re.compile(r"\s*+(\S++)\s++(\S++)(?:\s++\d++)?\s*+")
_FORM = "Write a name, its characters without blanks, and at most their number behind them."


def is_clustal(text: str) -> bool:
    """Whether a text starts as a Clustal file does."""
    return _FIRST_LINE.match(text) is not None


def read_clustal(source: SourceText) -> CharacterRows:
    """Read a Clustal alignment. Raises InputError for lines of another form, names that a block lacks, has
    twice or has anew, and lines of a block that differ in length."""
    rows: list[CharacterRow] = []
    for number, block in enumerate(_blocks(source)):
        _check_block(source, block)
        if number == 0:
            rows = [CharacterRow(name, start) for name, start, _, _ in block]
        else:
            _check_names(source, rows, block)
        named = {row.taxon: row for row in rows}
        for name, _, characters, start in block:
            named[name].add(characters, start)
    if not rows:
        raise source.error("no sequence follows the first line", 0, hint=_FORM)
    matrix, sets = character_matrix(source, rows)
    return CharacterRows(source, rows, matrix, sets, format_name="Clustal")


_Line = tuple[str, int, str, int]
"""A taxon's name and where it stands, and its characters of a block and where they do."""


def _blocks(source: SourceText) -> Iterator[list[_Line]]:
    first = _FIRST_LINE.match(source.text)
    block: list[_Line] = []
    before = first.end() if first else 0
    for line in _LINE.finditer(source.text, before):
        is_apart = source.text.count("\n", before, line.start()) > 1  # a line without anything lies between
        is_between = _BETWEEN.fullmatch(line.group()) is not None
        if block and (is_apart or is_between):
            yield block
            block = []
        before = line.end()
        if is_between:
            continue
        found = _TAXON.fullmatch(line.group())
        if found is None:
            shown = " ".join(line.group().split())[:60]
            raise source.error(f"'{shown}' is no line of an alignment", line.start(), hint=_FORM)
        block.append((found[1], line.start() + found.start(1), found[2], line.start() + found.start(2)))
    if block:
        yield block


def _check_block(source: SourceText, block: Sequence[_Line]) -> None:
    """InputError for a name that is there twice, and for unequal lengths."""
    seen: dict[str, int] = {}
    other, _, first, _ = block[0]
    for name, start, characters, _ in block:
        line, _ = source.locate(start)
        if name in seen:
            message = f"the taxon '{name}' is twice in this block, first in line {seen[name]}"
            raise source.error(message, start, taxon=name, hint="Rename one of them.")
        seen[name] = line
        if len(characters) != len(first):
            raise source.error(
                f"'{name}' has {len(characters)} characters in this block, '{other}' has {len(first)}",
                start,
                taxon=name,
                hint="Align the sequences to one length.",
            )


def _check_names(source: SourceText, rows: Sequence[CharacterRow], block: Sequence[_Line]) -> None:
    """InputError for other taxa than those of the first block."""
    expected = {row.taxon for row in rows}
    for name, start, _, _ in block:
        if name not in expected:
            hint = "Give every block the same names; put a blank line between blocks."
            raise source.error(f"'{name}' is not in the first block", start, taxon=name, hint=hint)
    missing = [row.taxon for row in rows if row.taxon not in {name for name, _, _, _ in block}]
    if missing:
        message = f"this block has no line of '{missing[0]}'"
        raise source.error(message, block[0][1], taxon=missing[0], hint="Add it: gaps are written as '-'.")
