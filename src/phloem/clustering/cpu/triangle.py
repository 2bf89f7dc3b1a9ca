"""The triangle below the diagonal, row after row: entry (i, j), j < i, lies at i (i - 1) / 2 + j."""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled

TILE = 32


@compiled
def row_start(i):
    """Where row i begins; unsigned, which spares the test for negative indices."""
    i = np.uint64(i)
    return i * (i - np.uint64(1)) >> np.uint64(1)


@compiled
def triangle_row(triangle, i):
    """Entries (i, 0 … i-1)."""
    start = i * (i - 1) // 2
    return triangle[start : start + i]


@compiled
def pack_square(square, first, last, triangle):
    """Rows first … last-1 of a square matrix to the triangle, which may be the square's own memory."""
    for i in range(first, last):
        row = triangle_row(triangle, i)
        for j in range(i):
            row[j] = square[i, j]


@compiled
def pack_condensed(condensed, n, first, last, triangle):
    """Rows first … last-1 from SciPy's vector (0, 1) … (0, n-1), (1, 2) …, by tiles."""
    for top in range(first, last, TILE):
        bottom = min(top + TILE, last)
        for j in range(bottom - 1):
            start = j * (2 * n - j - 1) // 2 - j - 1
            for i in range(max(top, j + 1), bottom):
                triangle[i * (i - 1) // 2 + j] = condensed[start + i]
