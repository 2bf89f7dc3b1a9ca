"""Distance matrices in tables: CSV, TSV, or cells between semicolons or blanks, with names in a row and a
column; whole, or one triangle with the other half left empty."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError
from phloem.io.distance_rows import (
    NAME_BYTES,
    Form,
    LayoutError,
    Lines,
    RowSpans,
    encoding_of,
    points_for_commas,
    text_lines,
)

LAYOUT = "The first row is an empty cell and the names, each further row a name and its distances."
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
_QUOTED_COMMA = re.compile(rb'"\s*[-+]?(?:\d+,\d*|,\d+)[^",]*"')  # in a cell, not between two of them
_BETWEEN_BLANKS = re.compile(r'"((?:[^"]|"")*)"|([^\s"]+)')
_NUMBER = re.compile(r"\s*[-+]?(?:\d+[.,]?\d*|[.,]\d+|inf|nan)(?:e[-+]?\d+)?\s*", re.ASCII | re.IGNORECASE)
_LACKING = ("", "na", "n/a", "nan", "-", ".", "?", "none", "null")
_BLANKS = " "  # the separator that stands for any of them, and any number


def is_number(cell: str) -> bool:
    """Whether a cell is no name: a number, with a decimal point or comma."""
    return _NUMBER.fullmatch(cell) is not None


def is_table(first: str, second: str) -> bool:
    """Whether a file's first two lines are the names of a table and a row of it.

    An alignment's "3 4" and its sequences of digits are none.
    """
    names, row = cells_of(first), cells_of(second, separator_of(first))
    if len(names) < 2 or not row or all(is_number(cell) for cell in names) or first[:1] in "#>":
        return False
    if not all(is_number(cell) or lacks(cell) for cell in row[1:]):
        return False
    if separator_of(first) != _BLANKS and len(row) - len(names) in (0, 1):
        return True
    return row[0].strip() in names and len(row) <= len(names) + 1


def cells_of(line: str, separator: str | None = None) -> list[str]:
    """The cells of a line, however they are separated; none where its quotes are wrong."""
    try:
        return _split(line, separator or separator_of(line))
    except csv.Error:
        return []


def table_taxa(first: str, second: str) -> int:
    """The taxa of a table by its first two lines."""
    names, row = cells_of(first), cells_of(second or first, separator_of(first))
    whole = len(row) - len(names) in (0, 1)
    return max(0, len(row) - 1 if whole else len(names) - (names[:1] != row[:1]))


@dataclass(frozen=True)
class Table:
    """The rows below the names of a table: their lines, what separates cells, and how text is encoded."""

    text: np.ndarray
    rows: Lines
    separator: str
    encoding: str
    source: str

    def name(self, i: int, head: bytes) -> tuple[str, int]:
        """The name of row i, and the bytes up to its end; head: those that the row begins with."""
        skipped = len(head) - len(head.lstrip()) if self.separator == _BLANKS else 0
        head = head[skipped:]
        cell = _QUOTED.match(head) if head.startswith(b'"') else None
        end = None if self.separator == _BLANKS else self.separator.encode()
        raw = cell.group() if cell is not None else head.split(end, 1)[0]
        text = raw.decode(self.encoding, "replace")
        return self.cells(text, int(self.rows.numbers[i]))[0], skipped + len(raw)

    def numbers(self, i: int) -> list[str]:
        """The cells of row i behind its name."""
        raw = bytes(self.text[self.rows.starts[i] : self.rows.stops[i]])
        return self.cells(raw.decode("latin-1"), int(self.rows.numbers[i]))[1:]

    def cells(self, text: str, line: int) -> list[str]:
        """The cells of a line, quotes resolved."""
        try:
            cells = _split(text.replace("\r", " "), self.separator)
        except csv.Error as problem:
            raise InputError(
                f"not a row of a table ({problem})",
                file=self.source,
                line=line,
                hint="Check quotes and separators.",
            ) from None
        return [cell.strip() for cell in cells] or [""]


def table_rows(text: np.ndarray, source: str) -> RowSpans:
    """Rows of a table whose first row and first column are the names.

    Numbers may be quoted, and have decimal commas where those do not separate the cells. One half of the
    matrix may be empty, and the diagonal with it; the first taxon may then lack a row, the last one a column.
    """
    lines = text_lines(text)
    while len(lines) > 2 and not bytes(text[lines.starts[-1] : lines.stops[-1]]).strip(b" \t,;\r"):
        lines = lines[:-1]  # of cells that a spreadsheet was emptied of
    if len(lines) < 2:
        raise InputError("a table needs a row of names and a row a taxon", file=source, hint="Add the names.")
    raw = bytes(text[lines.starts[0] : lines.stops[0]])
    encoding = encoding_of([raw + b"\n"])
    header, first = raw.decode(encoding), int(lines.numbers[0])
    table = Table(text, lines[1:], separator_of(header), encoding, source)
    taxa, without = _taxa(table.cells(header, first), table)
    rows = table.rows
    begins, quotes, commas = np.empty(len(rows), np.int64), False, False
    for i, head in enumerate(rows.heads(text, NAME_BYTES)):
        name, end = table.name(i, head)
        if name != taxa[i + without]:
            raise _other_name(i, name, taxa[i + without], int(rows.numbers[i]), source)
        begins[i] = rows.starts[i] + end
        numbers = bytes(text[begins[i] : rows.stops[i]])
        quotes = quotes or b'"' in numbers
        commas = commas or (
            b"," in numbers if table.separator != "," else bool(_QUOTED_COMMA.search(numbers))
        )
    form, bare = _form(table, without)
    made = quotes or commas or bare or form != "square"
    plain = _plain(table, form, without, commas) if made else None
    starts, stops = (np.concatenate([begins[:without], x]) for x in (begins, rows.stops))
    numbered = np.concatenate([[first] * without, rows.numbers])
    return RowSpans(taxa, starts, stops, numbered, form, plain, commas)


def _other_name(i: int, name: str, expected: str, line: int, source: str) -> InputError:
    """The error for a row that is not called what its column is."""
    hint = "Rows and columns must have the same names in the same order."
    return InputError(
        f"row {i + 1:,} is '{name[:60]}', column {i + 1:,} is '{expected[:60]}'",
        file=source,
        line=line,
        taxon=name[:60],
        hint=f"{hint} {LAYOUT}" if is_number(name) and not is_number(expected) else hint,
    )


def _form(table: Table, without: int) -> tuple[Form, bool]:
    """Which half of the matrix is empty, by the first row and the last, and whether the diagonal is."""
    n = len(table.rows)
    if without:
        return "lower", True
    first, last = ([*table.numbers(i), *[""] * n][:n] for i in (0, n - 1))
    if all(map(lacks, first[1:])) and not all(map(lacks, last[:-1])):
        bare = lacks(first[0])
        return "lower" if bare else "lower with diagonal", bare
    if all(map(lacks, last[:-1])) and not all(map(lacks, first[1:])):
        bare = lacks(last[-1])
        return "upper" if bare else "upper with diagonal", bare
    return "square", lacks(first[0]) and lacks(last[-1])


def lacks(cell: str) -> bool:
    """Whether a cell holds no distance."""
    return cell.strip().lower() in _LACKING


def _plain(table: Table, form: Form, without: int, commas: bool) -> Callable[[bytes, int], bytes]:
    """Makes numbers between blanks of the cells after a row's name, without those of the empty half.

    without: how many of the first taxa have no row.
    """
    points = points_for_commas(table.source)
    taxon = {line: i + without for i, line in enumerate(table.rows.numbers.tolist())}

    def plain(row: bytes, line: int) -> bytes:
        if not row:
            return b""
        cells = table.cells("x" + row.decode("latin-1"), line)[1:]
        i = taxon[line]
        if form != "square":
            cells = _half(cells, form, i, line, table.source)
        elif i < len(cells) and lacks(cells[i]):
            cells[i] = "0"
        for cell in cells:
            if len(cell.split()) > 1:
                hint = "Check quotes and separators."
                raise LayoutError(f"'{cell[:40]}' is no number", file=table.source, line=line, hint=hint)
        numbers = " ".join(cells).encode("latin-1")
        return points(numbers, line) if commas else numbers

    return plain


def _half(cells: list[str], form: Form, i: int, line: int, source: str) -> list[str]:
    """The cells of row i's own half; LayoutError for a distance in the other."""
    if form.startswith("lower"):
        cut = i + ("diagonal" in form)
        own, other = cells[:cut], cells[cut:]
    else:
        cut = i + ("diagonal" not in form)
        own, other = cells[cut:], cells[:cut]
    strange = [cell for cell in other if not lacks(cell)]
    if strange:
        side = "above" if form.startswith("lower") else "below"
        raise LayoutError(
            f"'{strange[0][:40]}' stands {side} the diagonal, where the first and the last row have nothing",
            file=source,
            line=line,
            hint="Give one half, or both.",
        )
    return own


def _taxa(cells: list[str], table: Table) -> tuple[list[str], int]:
    """The names by the first row, and how many of the first taxa have no row of their own.

    R's write.table leaves out the cell before the names. Of a lower triangle the first taxon may have a
    column only, and the last one a row. In a symmetric matrix without names the first row and the first
    column agree as well, so that a number in the corner is an error, not a heading.
    """
    source, rows = table.source, len(table.rows)
    if is_number(cells[0]) and len(cells) - 1 == rows:
        raise InputError(
            f"the table begins with the number {cells[0][:40]}, not with names",
            file=source,
            hint=f"{LAYOUT} A matrix without names can be a .npy file.",
        )
    while len(cells) - rows > 1 and not cells[-1]:
        cells = cells[:-1]
    if len(cells) - rows not in (0, 1):
        raise InputError(
            f"{len(cells) - 1:,} names in the first row, {rows:,} rows below it", file=source, hint=LAYOUT
        )
    names = cells[len(cells) - rows :]
    first, last = (table.name(i, _head(table, i))[0] for i in (0, rows - 1))
    if first != names[0] and first in names[1:2] and last not in names:
        return [*names, last], 1
    return names, 0


def _head(table: Table, i: int) -> bytes:
    start = int(table.rows.starts[i])
    return bytes(table.text[start : min(int(table.rows.stops[i]), start + NAME_BYTES)])


def separator_of(header: str) -> str:
    """Tab, comma or semicolon, whichever there is most of, or blanks where there is none."""
    found = max("\t,;", key=header.count)
    return found if found in header else _BLANKS


def _split(text: str, separator: str) -> list[str]:
    if separator != _BLANKS:
        return next(csv.reader([text], delimiter=separator), [])
    return [quoted.replace('""', '"') or bare for quoted, bare in _BETWEEN_BLANKS.findall(text)]
