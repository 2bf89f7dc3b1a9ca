"""Rows of a distance matrix checked against its columns and folded into the triangle below the diagonal."""

from __future__ import annotations

import numpy as np

from phloem.clustering.cpu.forms import triangle_row
from phloem.hardware.numba_compile import compiled


@compiled
def _wrong(x, y, tolerance):
    """What is wrong with d(i, j) = x and d(j, i) = y: 0 nothing, 1 not finite, 2 negative, 4 asymmetric."""
    if not (abs(x) < np.inf and abs(y) < np.inf):
        return 1
    if x < 0 or y < 0:
        return 2
    return 4 if abs(x - y) > tolerance * max(1.0, max(x, y)) else 0


@compiled
def _fold(below, above, tolerance, row):
    """row ← means of below and above; returns the place of the first two that are wrong together, or -1."""
    bad = 0
    for j in range(len(row)):
        x, y = np.float64(below[j]), np.float64(above[j])
        fits = (x >= 0) & (y >= 0) & (x < np.inf) & (y < np.inf)
        bad += not (fits & (abs(x - y) <= tolerance * max(1.0, max(x, y))))
        row[j] = 0.5 * (x + y) + 0.0  # which turns -0 into 0
    if bad == 0:
        return -1
    for j in range(len(row)):
        if _wrong(np.float64(below[j]), np.float64(above[j]), tolerance) > 0:
            return j
    return -1


@compiled
def fold_rows(buffer, first, start, stop, has_below, has_above, tolerance, entries, found):
    """Check the rows start … stop-1 against their columns; entries ← the means of both.

    buffer: (rows, n), the matrix's rows from `first` on. What lies below the diagonal counts if has_below,
    above it if has_above; the columns of earlier rows lie in entries (store_columns). found: (4,), gets i, j,
    d(i, j), d(j, i) where something is wrong. Returns 0 or what: see _wrong; 3 the diagonal.
    """
    above = np.empty(stop, entries.dtype)
    for i in range(start, stop):
        row, below = triangle_row(entries, i), buffer[i - first]
        if has_above:
            above[:first] = row[:first]
            for j in range(first, i):
                above[j] = buffer[j - first, i]
        x, y = below[:i] if has_below else above[:i], above[:i] if has_above else below[:i]
        diagonal = np.float64(below[i])
        if not abs(diagonal) <= tolerance:
            found[0] = found[1] = i
            found[2] = diagonal
            return 3
        j = _fold(x, y, tolerance, row)
        if j >= 0:
            found[0], found[1], found[2], found[3] = i, j, x[j], y[j]
            return _wrong(np.float64(x[j]), np.float64(y[j]), tolerance)
    return 0


@compiled
def store_columns(buffer, first, last, start, stop, entries):
    """Entries (i, j) ← buffer[j - first, i] for rows j of first … last-1 and columns i of start … stop-1."""
    for i in range(start, stop):
        row = triangle_row(entries, i)
        for j in range(first, last):
            row[j] = buffer[j - first, i]
