"""Where the rows of a distance matrix lie in a text, their numbers, and how they fill the triangle below the
diagonal, a batch at a time."""

from __future__ import annotations

import mmap
import re
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from phloem.errors import InputError
from phloem.io.cpu import distance_text
from phloem.io.input_file import map_input

NAME_BYTES = 4096  # of a row that are searched for its name
_NEWLINE, _RETURN = 10, 13
_PIECE = 1 << 18  # bytes searched for line ends at a time
_RELEASED = 1 << 24  # bytes of them after which a mapped file's memory is given back
_WITH_COMMA = re.compile(rb"\d*,\d+")
_THOUSANDS = re.compile(rb"[1-9]\d{0,2},\d{3}")
_POINTS = "Write decimal points, and leave thousands ungrouped."
MAPPED_LINES = 1024  # looked at before their memory is given back


def read_bytes(path: str) -> np.ndarray:
    """The input as bytes, unpacked if gzip, without reading what is not touched.

    A byte-order mark, which spreadsheets put first, is left out.
    """
    text = map_input(path)
    return text[len(BOM_UTF8) :] if bytes(text[: len(BOM_UTF8)]) == BOM_UTF8 else text


class LayoutError(InputError):
    """A text that is not laid out as it was read: another reading may fit it."""


@dataclass(frozen=True)
class RowSpans:
    """taxa, and for every row the bytes starts[i]:stops[i] of its numbers and its line (1-based).

    plain: makes numbers between blanks of a row's bytes, given its line; None where they are that already.
    decimal_comma: what it is that plain changes.
    """

    taxa: list[str]
    starts: np.ndarray
    stops: np.ndarray
    lines: np.ndarray
    form: Form
    plain: Callable[[bytes, int], bytes] | None = None
    decimal_comma: bool = False

    def expected(self, i: int) -> tuple[int, int]:
        """(first column, number of columns) that row i gives."""
        return columns_of(self.form, len(self.taxa), i)


def columns_of(form: Form, n: int, i: int) -> tuple[int, int]:
    """(first column, number of columns) of row i of n."""
    if form == "square":
        return 0, n
    if form.startswith("lower"):
        return 0, i + ("diagonal" in form)
    first = i + ("diagonal" not in form)
    return first, n - first


@dataclass(frozen=True)
class Lines:
    """The lines of a text that are not blank: bytes starts[k]:stops[k], and their numbers (1-based)."""

    starts: np.ndarray
    stops: np.ndarray
    numbers: np.ndarray

    def __getitem__(self, which: slice) -> Lines:
        return Lines(self.starts[which], self.stops[which], self.numbers[which])

    def __len__(self) -> int:
        return len(self.starts)

    def heads(self, text: np.ndarray, width: int) -> Iterator[bytes]:
        """The first `width` bytes of every line; memory of a mapped file is given back on the way."""
        for k, (start, stop) in enumerate(zip(self.starts.tolist(), self.stops.tolist())):
            if k % MAPPED_LINES == 0:
                release(text)
            yield bytes(text[start : min(stop, start + width)])


def text_lines(text: np.ndarray) -> Lines:
    """The lines that are not blank; they end with \\n, \\r\\n or \\r."""
    parts = []
    for start in range(0, len(text), _PIECE):
        piece = np.asarray(text[start : start + _PIECE])
        ends = np.flatnonzero(piece == _NEWLINE) + start
        if b"\r" in piece.tobytes():  # the quickest way to ask
            returns = np.flatnonzero(piece == _RETURN) + start
            alone = text[np.minimum(returns + 1, len(text) - 1)] != _NEWLINE
            ends = np.sort(np.concatenate([ends, returns[alone]]))
        parts.append(ends)
        if start % _RELEASED == 0:
            release(text)
    ends = np.concatenate([*parts, [len(text)]]).astype(np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    keep = ends - starts > 256
    for k in np.flatnonzero(~keep).tolist():
        keep[k] = bool(bytes(text[starts[k] : ends[k]]).strip())
    return Lines(starts[keep], ends[keep], np.flatnonzero(keep) + 1)


def encoding_of(pieces: Iterable[bytes]) -> Literal["utf-8", "latin-1"]:
    """UTF-8 if all pieces are that, whatever they are cut from, else Latin-1."""
    for piece in pieces:
        try:
            getincrementaldecoder("utf-8")().decode(piece)
        except UnicodeDecodeError:
            return "latin-1"
    return "utf-8"


def points_for_commas(source: str) -> Callable[[bytes, int], bytes]:
    """Makes decimal points of decimal commas in a row's numbers, given its line.

    LayoutError where there is a point as well: one of the two groups thousands, or the columns are others.
    """

    def plain(row: bytes, line: int) -> bytes:
        if b"." in row:
            raise LayoutError(
                "decimal points and decimal commas in one matrix", file=source, line=line, hint=_POINTS
            )
        return row.replace(b",", b".")

    return plain


def refuse_thousands(text: np.ndarray, rows: RowSpans, source: str) -> None:
    """InputError where every comma could as well group thousands, as in 1,234."""
    found = None
    for start, stop, line in zip(rows.starts.tolist(), rows.stops.tolist(), rows.lines.tolist()):
        for number in _WITH_COMMA.findall(bytes(text[start:stop])):
            if not _THOUSANDS.fullmatch(number):
                return
            found = found or (number.decode("ascii"), line)
    if found is not None:
        number, line = found
        raise InputError(
            f"'{number[:40]}' may be {number[:40].replace(',', '.')} or {number[:40].replace(',', '')}",
            file=source,
            line=line,
            hint=_POINTS,
        )


def parse_rows(text: np.ndarray, rows: RowSpans, source: str, first: int, last: int, out: np.ndarray) -> None:
    """Numbers of the rows first … last-1 at their columns of out (last - first, n), zeros on the diagonal
    where the form has none."""
    for i in range(first, last):
        row = out[i - first]
        row[i] = 0
        column, width = rows.expected(i)
        piece, start, stop = text, int(rows.starts[i]), int(rows.stops[i])
        if rows.plain is not None:
            piece = np.frombuffer(rows.plain(bytes(text[start:stop]), int(rows.lines[i])), np.uint8)
            start, stop = 0, len(piece)
        count, wrong = distance_text.parse_numbers(piece, start, stop, row[column : column + width], width)
        if wrong >= 0:
            raise _no_number(piece, rows, i, wrong, source)
        if count != width:
            commas = b"," in bytes(text[rows.starts[i] : rows.stops[i]])
            raise LayoutError(
                f"{count:,} distances where {width:,} belong",
                file=source,
                line=int(rows.lines[i]),
                taxon=rows.taxa[i],
                hint="Complete the row; write decimal points, not commas." if commas else "Complete the row.",
            )


def _no_number(text: np.ndarray, rows: RowSpans, i: int, wrong: int, source: str) -> LayoutError:
    """Points at the byte `wrong` of the text, or of row i where that was made plain."""
    line, column = int(rows.lines[i]), None
    if rows.plain is None:
        before = bytes(text[max(0, wrong - (1 << 24)) : wrong]).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        row = bytes(text[rows.starts[i] : wrong]).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        line, column = line + row.count(b"\n"), len(before) - before.rfind(b"\n")
    word = bytes(text[wrong : wrong + 24]).split()[0].decode("utf-8", "replace")
    word = re.split("[,;]", word)[0] or word
    hint = "Distances are decimal numbers; names with blanks take ten columns in PHYLIP, or a table."
    if word.lower() in ("?", "na", "n/a", "nan", "inf", "-", "none", "null"):
        hint = (
            "No method here makes a tree without a distance: leave out one of the two taxa, or estimate it."
        )
    return LayoutError(
        f"'{word}' is no number", file=source, line=line, column=column, taxon=rows.taxa[i], hint=hint
    )


Form = Literal["square", "lower", "lower with diagonal", "upper", "upper with diagonal"]
Progress = Callable[[int, int], None]
_OF_SIMILARITIES = "It must be 0. Of similarities make distances first: 1 - s, or 100 - s of percents."
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
    base = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def _bad_value(what: int, found: list[float], taxa: list[str], tolerance: float, source: str) -> InputError:
    i, j = int(found[0]), int(found[1])
    cell = f"between '{taxa[i]}' (row {i + 1}) and '{taxa[j]}' (column {j + 1})"
    message, hint = {
        1: (f"the distance {cell} is not finite", "Give every distance a number."),
        2: (f"the distance {cell} is negative", "Distances are zero or more."),
        3: (f"the distance of '{taxa[i]}' to itself (row {i + 1}) is {found[2]:g}", _OF_SIMILARITIES),
        4: (
            f"the distance {cell} is {found[2]:g}, and {found[3]:g} the other way round",
            f"Make the matrix symmetric; up to {tolerance:g} may differ.",
        ),
    }[what]
    return InputError(message, file=source, taxon=taxa[i], hint=hint)
