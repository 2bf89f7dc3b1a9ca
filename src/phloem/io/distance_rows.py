"""Where the rows of a distance matrix lie in a text, and their numbers."""

from __future__ import annotations

import csv
import gzip
import re
from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError
from phloem.io.distance_fill import Form, release
from phloem.kernels.numba import distance_text

_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
NAME_BYTES = 4096  # of a row that are searched for its name
MAPPED_LINES = 1024  # looked at before their memory is given back


@dataclass(frozen=True)
class RowSpans:
    """taxa, and for every row the bytes starts[i]:stops[i] of its numbers and its line (1-based)."""

    taxa: list[str]
    starts: np.ndarray
    stops: np.ndarray
    lines: np.ndarray
    form: Form

    def expected(self, i: int) -> tuple[int, int]:
        """(first column, number of columns) that row i gives."""
        n = len(self.taxa)
        if self.form == "square":
            return 0, n
        if self.form.startswith("lower"):
            return 0, i + ("diagonal" in self.form)
        first = i + ("diagonal" not in self.form)
        return first, n - first


def read_bytes(path: str) -> np.ndarray:
    """The file as bytes, decompressed if gzip, without reading what is not touched."""
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        if packed:
            with gzip.open(path) as file:
                return np.frombuffer(file.read(), np.uint8)
        return np.memmap(path, np.uint8, "r")
    except FileNotFoundError:
        raise InputError("there is no such file", file=path, hint="Check the path.") from None
    except ValueError:
        raise InputError("the file is empty", file=path, hint="Give a distance matrix.") from None
    except (OSError, EOFError) as problem:
        raise InputError(f"cannot be read ({problem})", file=path, hint="Check the file.") from None


def _lines(text: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(starts, stops, numbers) of the lines that are not blank."""
    parts = []
    for start in range(0, len(text), 1 << 24):
        parts.append(np.flatnonzero(text[start : start + (1 << 24)] == 10) + start)
        release(text)
    ends = np.concatenate([*parts, [len(text)]]).astype(np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    keep = ends - starts > 256
    for k in np.flatnonzero(~keep).tolist():
        keep[k] = bool(bytes(text[starts[k] : ends[k]]).strip())
    return starts[keep], ends[keep], np.flatnonzero(keep) + 1


def _decoded(raw: bytes, source: str, line: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            "a name that is no text", file=source, line=line, hint="Give a text file in UTF-8."
        ) from None


def phylip_rows(text: np.ndarray, source: str) -> RowSpans:
    """Rows of a PHYLIP matrix: a line with the number of taxa, then a name and numbers a row."""
    starts, stops, numbers = _lines(text)
    first = bytes(text[starts[0] : min(stops[0], starts[0] + 64)]).split() if len(starts) else []
    if len(first) != 1 or not first[0].isdigit() or int(first[0]) == 0:
        raise InputError(
            "a PHYLIP matrix starts with the number of taxa alone on a line",
            file=source,
            line=int(numbers[0]) if len(numbers) else 1,
            hint="Give PHYLIP, CSV or TSV with names, or .npy.",
        )
    n = int(first[0])
    starts, stops, numbers = starts[1:], stops[1:], numbers[1:]
    if len(starts) < n:
        raise InputError(
            f"{n} taxa announced, {len(starts)} rows found", file=source, line=1, hint="Check the first line."
        )
    if len(starts) > n:
        starts, stops, numbers = _joined_lines(text, starts, stops, numbers, n, source)
    taxa, begins = [], np.empty(n, np.int64)
    for i, (a, b, line) in enumerate(zip(starts.tolist(), stops.tolist(), numbers.tolist())):
        if i % MAPPED_LINES == 0:
            release(text)
        head = bytes(text[a : min(b, a + NAME_BYTES)])
        name = head.split(None, 1)[0]
        taxa.append(_decoded(name, source, line))
        begins[i] = a + head.index(name) + len(name)
    counts = [distance_text.count_words(text, begins[i], stops[i]) for i in (0, n - 1)]
    return RowSpans(taxa, begins, stops, numbers, _form(counts[0], counts[1], n, source, int(numbers[0])))


def _form(first: int, last: int, n: int, source: str, line: int) -> Form:
    """The shape of a PHYLIP matrix from how many numbers its first and last rows hold."""
    forms: dict[tuple[int, int], Form] = {
        (n - 1, 0): "upper",
        (n, 1): "upper with diagonal",
        (0, n - 1): "lower",
        (1, n): "lower with diagonal",
        (n, n): "square",
    }
    if (first, last) not in forms:
        raise InputError(
            f"rows of {first} … {last} numbers make no square or triangular matrix of {n} taxa",
            file=source,
            line=line,
            hint=f"A square matrix has {n} numbers a row; names must not contain blanks.",
        )
    return forms[first, last]


def _joined_lines(
    text: np.ndarray, starts: np.ndarray, stops: np.ndarray, numbers: np.ndarray, n: int, source: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a square matrix that run over several lines: each has a name and n numbers."""
    words, first, rows = 0, 0, []
    for k in range(len(starts)):
        words += distance_text.count_words(text, starts[k], stops[k])
        if words >= n + 1:
            rows.append((starts[first], stops[k], numbers[first]))
            words, first = 0, k + 1
    if len(rows) != n or words:
        raise InputError(
            f"{n} taxa announced, {len(rows)} complete rows found",
            file=source,
            line=int(numbers[first]) if first < len(numbers) else None,
            hint="Rows that run over several lines must be those of a square matrix.",
        )
    joined = np.array(rows, np.int64)
    return joined[:, 0], joined[:, 1], joined[:, 2]


def table_rows(text: np.ndarray, source: str) -> RowSpans:
    """Rows of a table whose first row and first column are the names."""
    starts, stops, numbers = _lines(text)
    if len(starts) < 2:
        raise InputError("a table needs a row of names and a row a taxon", file=source, hint="Add the names.")
    header = bytes(text[starts[0] : stops[0]])
    separator = "\t" if header.count(b"\t") >= header.count(b",") else ","
    taxa = _cells(header, separator, source, int(numbers[0]))[1:]
    n = len(taxa)
    if len(starts) - 1 != n:
        raise InputError(
            f"{n} names in the first row, {len(starts) - 1} rows below it",
            file=source,
            line=int(numbers[0]),
            hint="The first row is an empty cell and the names, each further row a name and its distances.",
        )
    begins = np.empty(n, np.int64)
    for i, (a, b, line) in enumerate(zip(starts[1:].tolist(), stops[1:].tolist(), numbers[1:].tolist())):
        if i % MAPPED_LINES == 0:
            release(text)
        head = bytes(text[a : min(b, a + NAME_BYTES)])
        cell = _QUOTED.match(head) if head.startswith(b'"') else None
        raw = cell.group() if cell is not None else head.split(separator.encode(), 1)[0]
        if (name := _cells(raw, separator, source, line)[0]) != taxa[i]:
            raise InputError(
                f"row {i + 1} is '{name}', column {i + 1} is '{taxa[i]}'",
                file=source,
                line=line,
                taxon=name,
                hint="Rows and columns must have the same names in the same order.",
            )
        begins[i] = a + len(raw)
    return RowSpans(taxa, begins, stops[1:], numbers[1:], "square")


def _cells(raw: bytes, separator: str, source: str, line: int) -> list[str]:
    """The cells of a line, quotes resolved."""
    text = _decoded(raw, source, line).replace("\r", " ")
    try:
        cells = next(csv.reader([text], delimiter=separator), [])
    except csv.Error as problem:
        raise InputError(
            f"not a row of a table ({problem})", file=source, line=line, hint="Check quotes and separators."
        ) from None
    return [cell.strip() for cell in cells] or [""]


def parse_rows(text: np.ndarray, rows: RowSpans, source: str, first: int, last: int, out: np.ndarray) -> None:
    """Numbers of the rows first … last-1 at their columns of out (last - first, n), zeros on the diagonal
    where the form has none."""
    for i in range(first, last):
        row = out[i - first]
        row[i] = 0
        column, width = rows.expected(i)
        count, wrong = distance_text.parse_numbers(
            text, rows.starts[i], rows.stops[i], row[column : column + width], width
        )
        if wrong >= 0 or count != width:
            _bad_row(text, rows, i, count, width, wrong, source)


def _bad_row(
    text: np.ndarray, rows: RowSpans, i: int, count: int, width: int, wrong: int, source: str
) -> None:
    name, line = rows.taxa[i], int(rows.lines[i])
    if wrong < 0:
        raise InputError(
            f"{count} distances where {width} belong",
            file=source,
            line=line,
            taxon=name,
            hint="Complete the row.",
        )
    before = bytes(text[max(0, wrong - (1 << 24)) : wrong])
    word = bytes(text[wrong : wrong + 24]).split()[0].decode("utf-8", "replace")
    raise InputError(
        f"'{word}' is no number",
        file=source,
        line=line + bytes(text[rows.starts[i] : wrong]).count(b"\n"),
        column=len(before) - before.rfind(b"\n"),
        taxon=name,
        hint="Distances are decimal numbers; names must not contain blanks.",
    )
