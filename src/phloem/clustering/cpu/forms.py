"""The forms distances come in, and the triangle that linkage works in.

TRIANGLE: below the diagonal, row after row, entry (i, j), j < i, at i (i - 1) / 2 + j. CONDENSED: SciPy's
vector (0, 1) … (0, n-1), (1, 2) …. SQUARE: rows of n, of which what is below the diagonal counts.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled

TRIANGLE, CONDENSED, SQUARE = 0, 1, 2
TILE = 256


@compiled
def row_start(i):
    """Where row i of a triangle begins; unsigned, which spares the test for negative indices."""
    i = np.uint64(i)
    return i * (i - np.uint64(1)) >> np.uint64(1)


@compiled
def triangle_row(triangle, i):
    """Entries (i, 0 … i-1)."""
    start = i * (i - 1) // 2
    return triangle[start : start + i]


@compiled
def entry_of(form, n, i, j):
    """Where the distance of i and j < i lies."""
    i, j, n = np.uint64(i), np.uint64(j), np.uint64(n)
    if form == CONDENSED:
        return row_start(n) - row_start(n - j) + i - j - np.uint64(1)
    return i * n + j if form == SQUARE else row_start(i) + j


@compiled
def row_of(given, form, n, i, row):
    """row[:n] ← the distances of i from all, zero from itself; negative zeros become zeros."""
    one, size, x = np.uint64(1), np.uint64(n), np.uint64(i)
    at, step = entry_of(form, n, x, 0), one
    for j in range(x):
        row[j] = given[at] + 0
        if form == CONDENSED:
            step = size - j - one - one
        at += step
    row[x] = 0
    for j in range(x + one, size):
        row[j] = given[entry_of(form, n, j, x)] + 0
    return row


@compiled
def pack_square(square, first, last, triangle):
    """Rows first … last-1 of a square matrix to the triangle, which may be the square's own memory."""
    for i in range(first, last):
        row = triangle_row(triangle, i)
        for j in range(i):
            row[j] = square[i, j]


@compiled
def pack_condensed(condensed, n, first, last, triangle):
    """Rows first … last-1 from SciPy's vector, by tiles."""
    for top in range(first, last, TILE):
        bottom = min(top + TILE, last)
        for j in range(bottom - 1):
            start = j * (2 * n - j - 1) // 2 - j - 1
            for i in range(max(top, j + 1), bottom):
                triangle[i * (i - 1) // 2 + j] = condensed[start + i]


@compiled
def first_asymmetry(square, rows, tolerance, nothing):
    """Where an entry of some rows first differs from its mirror image, i n + j, or one of the diagonal from
    zero, or -1.

    tolerance: relative; nothing: what counts as zero, relative to the largest entry of these rows. Missing
    and infinite distances are nobody's business here, if both sides have them.
    """
    n, largest = len(square), 0.0
    for i in rows:
        for j in range(n):
            size = abs(square[i, j])
            largest = max(largest, size) if size < np.inf else largest
    for i in rows:
        for j in range(n):
            x, y = square[i, j], square[j, i]
            close = abs(x - y) <= nothing * largest + tolerance * abs(y) and abs(y) < np.inf
            if not (close or x == y or (np.isnan(x) and np.isnan(y))):
                return i * n + j
    for i in range(n):
        if not abs(square[i, i]) <= nothing * largest:
            return i * n + i
    return -1
