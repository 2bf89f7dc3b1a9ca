"""Columns of a table of taxa, such as Nextstrain's metadata.tsv: a header, and a line a taxon."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from phloem.errors import InputError, InputWarning, shown_file
from phloem.io.date_table import Line, table_lines, unquoted
from phloem.io.source_text import SourceText, read_source
from phloem.tree.match import folded, likely_name, spellings

NOTHING = {"undefined", "unknown", "?", "-", "nan", "na", "n/a", "none", "", "not known"}
"""What stands for a value that is not known, as in augur export; in small letters."""

Values = dict[str, str]  # taxon → what the table says of it


def read_metadata(
    path: str | os.PathLike[str], taxa: Sequence[str], columns: Sequence[str]
) -> dict[str, Values]:
    """Column → taxon → text, of the taxa of which it is known.

    columns: by their names in the header, capitals or not. The column of names is the one that holds most
    taxa. Lines of other taxa are not looked at. Raises InputError with file, line, taxon and remedy: for a
    column that is not there or there twice, a table without a taxon, and two lines of a taxon that say
    different things; warns of taxa without a line.
    """
    return metadata_from_table(read_source(path), taxa, columns)


def metadata_from_table(
    source: SourceText | str, taxa: Sequence[str], columns: Sequence[str]
) -> dict[str, Values]:
    """The same for a text in memory."""
    source = source if isinstance(source, SourceText) else SourceText(source)
    lines = list(table_lines(source))
    if not lines:
        raise InputError("the table is empty", file=source.file, hint="Write a header, and a line a taxon.")
    (number, first), rows = lines[0], lines[1:]
    head = [unquoted(field) for field in first]
    own = {name: _column(head, name, source, number) for name in columns}
    known = _Taxa({taxon: taxon for taxon in taxa}, spellings(taxa))
    names = _names(head, rows, known, source)
    found: dict[str, Values] = {head[column]: {} for column in own.values()}
    before: dict[str, tuple[int, list[str]]] = {}
    for line, fields in rows:
        taxon = known.called(_text(fields, names))
        if taxon is None:
            continue
        texts = [_text(fields, column) for column in own.values()]
        if taxon in before and before[taxon][1] != texts:
            raise InputError(
                f"'{taxon}' has two lines that differ, the first is {before[taxon][0]}",
                file=source.file, line=line, taxon=taxon, hint="Keep one of them.",
            )  # fmt: skip
        before[taxon] = line, texts
        for column, text in zip(own.values(), texts):
            if text.lower() not in NOTHING:
                found[head[column]][taxon] = text
    absent = [taxon for taxon in taxa if taxon not in before]
    if absent:
        at = f"{shown_file(source.file)}: " if source.file else ""
        told = f"{len(absent):,} of {len(taxa):,} taxa have no line, as '{absent[0]}'"
        warnings.warn(f"{at}{told}", InputWarning, stacklevel=3)
    return found


class _Taxa(NamedTuple):
    """The taxa by their names, and by what all spellings share."""

    own: dict[str, str]
    alike: dict[str, str]

    def called(self, name: str) -> str | None:
        return self.own.get(name) or self.alike.get(folded(name))


def _text(fields: list[str], column: int) -> str:
    return unquoted(fields[column]) if column < len(fields) else ""


def _column(head: list[str], name: str, source: SourceText, line: int) -> int:
    """Its place; the spelling of the header comes before capitals."""
    same = [i for i, one in enumerate(head) if one == name]
    same = same or [i for i, one in enumerate(head) if one.lower() == name.lower()]
    if len(same) == 1:
        return same[0]
    if same:
        told, hint = f"{len(same)} columns are called '{name}'", "Give each a name of its own."
    else:
        near = likely_name(name, head)
        told = f"no column is called '{name}'"
        hint = f"Did you mean '{near}'?" if near else f"There are: {', '.join(head)[:200]}."
    raise InputError(told, file=source.file, line=line, hint=hint)


def _names(head: list[str], rows: list[Line], known: _Taxa, source: SourceText) -> int:
    """The column that holds most of the taxa."""
    hits = [sum(known.called(_text(fields, i)) is not None for _, fields in rows) for i in range(len(head))]
    if not any(hits):
        tip, row = next(iter(known.own), ""), _text(rows[0][1], 0) if rows else ""
        hint = f"Tips are called as '{tip}', the table has '{row}': write tips' names in one of its columns."
        raise InputError("no line of the table is of a taxon here", file=source.file, hint=hint)
    return int(np.argmax(hits))
