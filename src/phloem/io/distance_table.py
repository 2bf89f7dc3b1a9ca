"""Distance matrices in tables: CSV, TSV, or cells between semicolons, with names in a row and a column."""

from __future__ import annotations

import csv
import re

import numpy as np

from phloem.errors import InputError
from phloem.io.distance_rows import MAPPED_LINES, NAME_BYTES, RowSpans, decoded, release, text_lines

_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
LAYOUT = "The first row is an empty cell and the names, each further row a name and its distances."


def is_table(first: str, second: str) -> bool:
    """Whether a file's first two lines are the names of a table and a row of it.

    An alignment's "3 4" and its sequences of digits are none.
    """
    names, row = cells_of(first), cells_of(second)
    if len(names) < 2 or all(is_number(cell) for cell in names):
        return False
    return len(row) - len(names) in (0, 1) and all(is_number(cell) for cell in row[1:])


def table_rows(text: np.ndarray, source: str) -> RowSpans:
    """Rows of a table whose first row and first column are the names."""
    starts, stops, numbers = text_lines(text)
    if len(starts) < 2:
        raise InputError("a table needs a row of names and a row a taxon", file=source, hint="Add the names.")
    header = decoded(bytes(text[starts[0] : stops[0]]), source, int(numbers[0]))
    separator = _separator(header)
    taxa = _names(_cells(header, separator, source, int(numbers[0])), len(starts) - 1, source)
    begins = np.empty(len(taxa), np.int64)
    for i, (a, b, line) in enumerate(zip(starts[1:].tolist(), stops[1:].tolist(), numbers[1:].tolist())):
        if i % MAPPED_LINES == 0:
            release(text)
        head = bytes(text[a : min(b, a + NAME_BYTES)])
        cell = _QUOTED.match(head) if head.startswith(b'"') else None
        raw = cell.group() if cell is not None else head.split(separator.encode(), 1)[0]
        if (name := _cells(decoded(raw, source, line), separator, source, line)[0]) != taxa[i]:
            raise InputError(
                f"row {i + 1} is '{name}', column {i + 1} is '{taxa[i]}'",
                file=source,
                line=line,
                taxon=name,
                hint="Rows and columns must have the same names in the same order.",
            )
        begins[i] = a + len(raw)
    return RowSpans(taxa, begins, stops[1:], numbers[1:], "square")


def _names(cells: list[str], rows: int, source: str) -> list[str]:
    """The names in the first row; R's write.table leaves out the cell before them.

    In a symmetric matrix without names the first row and the first column agree as well, so that a number in
    the corner is an error, not a heading.
    """
    if is_number(cells[0]) and len(cells) - 1 == rows:
        raise InputError(
            f"the table begins with the number {cells[0]}, not with names",
            file=source,
            hint=f"{LAYOUT} A matrix without names can be a .npy file.",
        )
    if len(cells) - rows not in (0, 1):
        raise InputError(
            f"{len(cells) - 1} names in the first row, {rows} rows below it", file=source, hint=LAYOUT
        )
    return cells[len(cells) - rows :]


def cells_of(line: str) -> list[str]:
    """The cells of a line, however they are separated; none where its quotes are wrong."""
    try:
        return next(csv.reader([line], delimiter=_separator(line)), [])
    except csv.Error:
        return []


def _separator(header: str) -> str:
    """Tab, comma or semicolon, whichever there is most of."""
    return max("\t,;", key=header.count)


def is_number(cell: str) -> bool:
    """Whether a cell is no name."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _cells(text: str, separator: str, source: str, line: int) -> list[str]:
    """The cells of a line, quotes resolved."""
    try:
        cells = next(csv.reader([text.replace("\r", " ")], delimiter=separator), [])
    except csv.Error as problem:
        raise InputError(
            f"not a row of a table ({problem})", file=source, line=line, hint="Check quotes and separators."
        ) from None
    return [cell.strip() for cell in cells] or [""]
