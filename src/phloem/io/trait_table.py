"""A discrete trait of taxa from a table with a header: a line a taxon, its name, and in a column its state.
Or from a BEAST file (io/beast_xml.py).

`?`, `-` and nothing stand for a state that is not known, `A|B` for one of two.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence

import numpy as np

from phloem.data.traits import TipTraits
from phloem.errors import InputError, InputWarning, shown_file
from phloem.io.beast_traits import read_beast_traits
from phloem.io.beast_xml import is_beast
from phloem.io.date_table import Line, table_lines, unquoted
from phloem.io.source_text import SourceText, read_source

MISSING = ("?", "-", "")


def read_traits(path: str | os.PathLike[str], taxa: Sequence[str], column: str | None = None) -> TipTraits:
    """The states of these taxa, in their order. column: which, by its name in the header; None where there is
    one besides the names. Errors name file, line, taxon; lines of other taxa give a warning."""
    return traits_from_table(read_source(path), taxa, column)


def traits_from_table(source: SourceText | str, taxa: Sequence[str], column: str | None = None) -> TipTraits:
    """The same for a text in memory."""
    source = source if isinstance(source, SourceText) else SourceText(source)
    name, found = (_of_beast if is_beast(source.text) else _of_table)(source, taxa, column)
    absent = [taxon for taxon in taxa if taxon not in found]
    if absent:
        raise InputError(
            f"{len(absent)} taxa have no '{name}' there",
            file=source.file,
            taxon=absent[0],
            hint="Give each a line, with ? where its state is not known.",
        )
    wanted = set(taxa)
    others = [taxon for taxon in found if taxon not in wanted]
    if others:
        told = f"{len(others)} of its names are no taxon here, as '{others[0]}'"
        warnings.warn(
            f"{shown_file(source.file) if source.file else 'table'}: {told}", InputWarning, stacklevel=3
        )
    return _traits(name, taxa, found)


def _of_beast(source: SourceText, _: Sequence[str], column: str | None) -> tuple[str, dict[str, str]]:
    """The trait's name, and taxon → what a BEAST file says of it."""
    traits = read_beast_traits(source)
    name = list(traits)[_choice(list(traits), column, "the file has {} traits", source)]
    for taxon, (line, text) in traits[name].items():
        _check_state(text, taxon, line, source)
    return name, {taxon: text for taxon, (_, text) in traits[name].items()}


def _of_table(source: SourceText, taxa: Sequence[str], column: str | None) -> tuple[str, dict[str, str]]:
    """The trait's name, and taxon → what a table says of it."""
    lines = list(table_lines(source))
    if len(lines) < 2:
        raise InputError(
            "the table has no taxa", file=source.file, hint="Write a header, and a line a taxon."
        )
    (_, head), rows = lines[0], lines[1:]
    head, wanted = [unquoted(field) for field in head], set(taxa)
    if wanted & set(head):
        raise InputError(
            "the first line is a taxon's; it has to name the columns",
            file=source.file,
            line=lines[0][0],
            hint="Write, for example, name, tab, location.",
        )
    hits = [sum(unquoted(f[i]) in wanted for _, f in rows if i < len(f)) for i in range(len(head))]
    names = int(np.argmax(hits))
    others = [i for i in range(len(head)) if i != names]
    told = "the table has {} columns besides the names"
    own = others[_choice([head[i] for i in others], column, told, source)]
    return head[own], _fields(rows, (names, own), source)


def _choice(of: list[str], wanted: str | None, several: str, source: SourceText) -> int:
    """Which of these columns is meant. several: what is told of more than one, their number left open."""
    if wanted is None and len(of) == 1:
        return 0
    shown = ", ".join(of)
    if wanted is None:
        raise InputError(
            several.format(len(of)), file=source.file,
            hint=f"Say which it is (--trait-column): {shown}." if of else "Add one with the states.",
        )  # fmt: skip
    for i, name in enumerate(of):
        if name.lower() == wanted.lower():
            return i
    raise InputError(f"no column is called '{wanted}'", file=source.file, hint=f"There are: {shown}.")


def _fields(rows: list[Line], columns: tuple[int, int], source: SourceText) -> dict[str, str]:
    """Name → what the table says of it."""
    found: dict[str, str] = {}
    for line, fields in rows:
        name, text = (unquoted(fields[i]) if i < len(fields) else "" for i in columns)
        if name in found:
            raise InputError(f"'{name}' has two lines", file=source.file, line=line, hint="Keep one of them.")
        _check_state(text, name, line, source)
        found[name] = text
    return found


def _check_state(text: str, taxon: str, line: int, source: SourceText) -> None:
    if any(not part.strip() for part in text.split("|")) and text not in MISSING:
        raise InputError(
            f"'{text}' names a state and nothing", file=source.file, line=line, taxon=taxon,
            hint="Write A|B where it is one of two, ? where it is not known.",
        )  # fmt: skip


def _traits(name: str, taxa: Sequence[str], found: dict[str, str]) -> TipTraits:
    each = [[part.strip() for part in found[taxon].split("|")] for taxon in taxa]
    states = sorted({state for own in each for state in own} - set(MISSING))
    if "NA" in states:
        told = "'NA' is taken for a state; write ? where one is not known"
        warnings.warn(told, InputWarning, stacklevel=4)
    place = {state: k for k, state in enumerate(states)}
    possible = np.zeros((len(taxa), len(states)), bool)
    for row, own in zip(possible, each):
        if own[0] in MISSING:
            row[:] = True
        else:
            row[[place[state] for state in own]] = True
    return TipTraits(name, tuple(taxa), tuple(states), possible)
