"""Rows from any file folded into the triangle below the diagonal, a batch at a time."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np

from phloem.clustering.cpu import distance_fold
from phloem.errors import InputError

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
            distance_fold.store_columns(buffer, first, last, int(columns[t]), int(columns[t + 1]), entries)
        return distance_fold.fold_rows(
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
