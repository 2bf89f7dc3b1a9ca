"""Distance matrices in tables: CSV, TSV, or cells between semicolons, with names in a row and a column."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable

import numpy as np

from phloem.errors import InputError
from phloem.io.distance_rows import (
    NAME_BYTES,
    LayoutError,
    RowSpans,
    encoding_of,
    points_for_commas,
    text_lines,
)

LAYOUT = "The first row is an empty cell and the names, each further row a name and its distances."
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
_QUOTED_COMMA = re.compile(rb'"[^",]*,[^",]*"')
_NUMBER = re.compile(r"\s*[-+]?(?:\d+[.,]?\d*|[.,]\d+|inf|nan)(?:e[-+]?\d+)?\s*", re.ASCII | re.IGNORECASE)


def is_number(cell: str) -> bool:
    """Whether a cell is no name: a number, with a decimal point or comma."""
    return _NUMBER.fullmatch(cell) is not None


def is_table(first: str, second: str) -> bool:
    """Whether a file's first two lines are the names of a table and a row of it.

    An alignment's "3 4" and its sequences of digits are none.
    """
    names, row = cells_of(first), cells_of(second)
    if len(names) < 2 or all(is_number(cell) for cell in names):
        return False
    return len(row) - len(names) in (0, 1) and all(is_number(cell) for cell in row[1:])


def cells_of(line: str) -> list[str]:
    """The cells of a line, however they are separated; none where its quotes are wrong."""
    try:
        return next(csv.reader([line], delimiter=_separator(line)), [])
    except csv.Error:
        return []


def table_rows(text: np.ndarray, source: str) -> RowSpans:
    """Rows of a table whose first row and first column are the names.

    Numbers may be quoted, and have decimal commas where those do not separate the cells.
    """
    lines = text_lines(text)
    if len(lines) < 2:
        raise InputError("a table needs a row of names and a row a taxon", file=source, hint="Add the names.")
    raw = bytes(text[lines.starts[0] : lines.stops[0]])
    encoding = encoding_of([raw + b"\n"])
    header, first = raw.decode(encoding), int(lines.numbers[0])
    separator = _separator(header)
    taxa = _names(_cells(header, separator, source, first), len(lines) - 1, source)
    rows, begins, quotes, commas = lines[1:], np.empty(len(taxa), np.int64), False, False
    for i, head in enumerate(rows.heads(text, NAME_BYTES)):
        line = int(rows.numbers[i])
        cell = _QUOTED.match(head) if head.startswith(b'"') else None
        raw = cell.group() if cell is not None else head.split(separator.encode(), 1)[0]
        name = _cells(raw.decode(encoding, "replace"), separator, source, line)[0]
        if name != taxa[i]:
            raise InputError(
                f"row {i + 1:,} is '{name[:60]}', column {i + 1:,} is '{taxa[i][:60]}'",
                file=source,
                line=line,
                taxon=name[:60],
                hint="Rows and columns must have the same names in the same order.",
            )
        begins[i] = rows.starts[i] + len(raw)
        numbers = bytes(text[begins[i] : rows.stops[i]])
        quotes = quotes or b'"' in numbers
        commas = commas or (b"," in numbers if separator != "," else bool(_QUOTED_COMMA.search(numbers)))
    plain = _plain(separator, commas, source) if quotes or commas else None
    return RowSpans(taxa, begins, rows.stops, rows.numbers, "square", plain, commas)


def _plain(separator: str, commas: bool, source: str) -> Callable[[bytes, int], bytes]:
    """Makes numbers between blanks of the cells after a row's name."""
    points = points_for_commas(source)

    def plain(row: bytes, line: int) -> bytes:
        cells = _cells(row.decode("latin-1"), separator, source, line)[1:]
        for cell in cells:
            if len(cell.split()) > 1:
                raise LayoutError(
                    f"'{cell[:40]}' is no number", file=source, line=line, hint="Check quotes and separators."
                )
        numbers = " ".join(cells).encode("latin-1")
        return points(numbers, line) if commas else numbers

    return plain


def _names(cells: list[str], rows: int, source: str) -> list[str]:
    """The names in the first row; R's write.table leaves out the cell before them.

    In a symmetric matrix without names the first row and the first column agree as well, so that a number in
    the corner is an error, not a heading.
    """
    if is_number(cells[0]) and len(cells) - 1 == rows:
        raise InputError(
            f"the table begins with the number {cells[0][:40]}, not with names",
            file=source,
            hint=f"{LAYOUT} A matrix without names can be a .npy file.",
        )
    if len(cells) - rows not in (0, 1):
        raise InputError(
            f"{len(cells) - 1:,} names in the first row, {rows:,} rows below it", file=source, hint=LAYOUT
        )
    return cells[len(cells) - rows :]


def _separator(header: str) -> str:
    """Tab, comma or semicolon, whichever there is most of."""
    return max("\t,;", key=header.count)


def _cells(text: str, separator: str, source: str, line: int) -> list[str]:
    """The cells of a line, quotes resolved."""
    try:
        cells = next(csv.reader([text.replace("\r", " ")], delimiter=separator), [])
    except csv.Error as problem:
        raise InputError(
            f"not a row of a table ({problem})", file=source, line=line, hint="Check quotes and separators."
        ) from None
    return [cell.strip() for cell in cells] or [""]
