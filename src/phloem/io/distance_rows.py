"""Where the rows of a distance matrix lie in a text, their numbers, and how they fill the triangle below the
diagonal, a batch at a time."""

from __future__ import annotations

import gzip
import mmap
import os
import stat
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np

from phloem.errors import InputError
from phloem.io.cpu import distance_text

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
    """The file as bytes, decompressed if gzip, without reading what is not touched.

    A byte-order mark, which spreadsheets put first, is left out here and in read_start.
    """
    with _explained(path):
        if _is_packed(path):
            with gzip.open(path) as file:
                text = np.frombuffer(file.read(), np.uint8)
        else:
            text = np.memmap(path, np.uint8, "r")
        return text[len(BOM_UTF8) :] if bytes(text[: len(BOM_UTF8)]) == BOM_UTF8 else text


def read_start(path: str, size: int) -> bytes:
    """At most the first `size` bytes of the file, decompressed if gzip."""
    with _explained(path), (gzip.open if _is_packed(path) else open)(path, "rb") as file:
        return file.read(size).removeprefix(BOM_UTF8)


def _is_packed(path: str) -> bool:
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise InputError(
            "not a regular file, and this one is read more than once",
            file=path,
            hint="Write what comes through a pipe to a file first.",
        )
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """What keeps a file from being read, as InputError."""
    try:
        yield
    except FileNotFoundError:
        raise InputError("there is no such file", file=path, hint="Check the path.") from None
    except ValueError:  # of memmap
        raise InputError(
            "the file is empty", file=path, hint="Give a distance matrix or an alignment."
        ) from None
    except (OSError, EOFError, zlib.error) as problem:
        raise InputError(f"cannot be read ({problem})", file=path, hint="Check the file.") from None


def text_lines(text: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(starts, stops, 1-based numbers) of the lines that are not blank."""
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


def decoded(raw: bytes, source: str, line: int) -> str:
    """A name as text; InputError where its bytes are none."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(
            "a name that is no text", file=source, line=line, hint="Give a text file in UTF-8."
        ) from None


def phylip_rows(text: np.ndarray, source: str) -> RowSpans:
    """Rows of a PHYLIP matrix: a line with the number of taxa, then a name and numbers a row."""
    starts, stops, numbers = text_lines(text)
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
        taxa.append(decoded(name, source, line))
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


Form = Literal["square", "lower", "lower with diagonal", "upper", "upper with diagonal"]
Progress = Callable[[int, int], None]
BATCH = 256  # rows read before they are folded
CHUNK = 16  # rows that a thread reads at a time


def fill_triangle(
    read: Callable[[int, int, np.ndarray], None],
    form: Form,
    entries: np.ndarray,
    taxa: list[str],
    tolerance: float,
    source: str,
    progress: Progress | None = None,
    threads: int = 2,
) -> None:
    """Fill a triangle (data.distance_triangle) and check it.

    read(first, last, rows): write rows first … last-1 of the matrix to rows (last - first, n); what the form
    lacks is not looked at. d(i, j) and d(j, i) of a square may differ by tolerance × max(1, distance) and
    become their mean. Raises InputError for what is asymmetric, negative, not finite or not zero on the
    diagonal.
    """
    n, below, above = len(taxa), not form.startswith("upper"), not form.startswith("lower")
    buffer = np.zeros((min(BATCH, n), n), entries.dtype)
    found = np.zeros((threads, 4))

    def fold(t: int, first: int, last: int) -> int:
        """Thread t's share of what is to be done with the rows first … last-1."""
        rows, columns = np.linspace(first, last, threads + 1), np.linspace(last, n, threads + 1)
        if above:
            distance_text.store_columns(buffer, first, last, int(columns[t]), int(columns[t + 1]), entries)
        return distance_text.fold_rows(
            buffer, first, int(rows[t]), int(rows[t + 1]), below, above, tolerance, entries, found[t]
        )

    with ThreadPoolExecutor(threads) as workers:
        for first in range(0, n, BATCH):
            last = min(first + BATCH, n)

            def read_chunk(start: int, first: int = first, last: int = last) -> None:
                stop = min(start + CHUNK, last)
                read(start, stop, buffer[start - first : stop - first])

            list(workers.map(read_chunk, range(first, last, CHUNK)))
            shares = range(threads)
            wrong = list(workers.map(lambda t, a=first, b=last: fold(t, a, b), shares))
            for what, where in zip(wrong, found):
                if what:
                    raise _bad_value(what, where.tolist(), taxa, tolerance, source)
            if progress is not None:
                progress(last, n)


def release(array: np.ndarray) -> None:
    """Give back the memory of a mapped file; what is looked at again is mapped again."""
    if isinstance(array.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        array.base.madvise(mmap.MADV_DONTNEED)


def _bad_value(what: int, found: list[float], taxa: list[str], tolerance: float, source: str) -> InputError:
    i, j = int(found[0]), int(found[1])
    cell = f"between '{taxa[i]}' (row {i + 1}) and '{taxa[j]}' (column {j + 1})"
    message, hint = {
        1: (f"the distance {cell} is not finite", "Give every distance a number."),
        2: (f"the distance {cell} is negative", "Distances are zero or more."),
        3: (f"the distance of '{taxa[i]}' to itself (row {i + 1}) is {found[2]:g}", "It must be 0."),
        4: (
            f"the distance {cell} is {found[2]:g}, and {found[3]:g} the other way round",
            f"Make the matrix symmetric; up to {tolerance:g} may differ.",
        ),
    }[what]
    return InputError(message, file=source, taxon=taxa[i], hint=hint)
