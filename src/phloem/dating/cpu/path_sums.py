"""Sums over tips of their distances from every place on a tree, in linear time."""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled

COUNT, YEARS, DISTANCES, SQUARES, PRODUCTS = range(5)  # Σ 1, Σ t, Σ d, Σ d², Σ d t over the dated tips


@compiled()
def _move(sums, length, out):
    """The same tips, all `length` further away."""
    out[PRODUCTS] = sums[PRODUCTS] + length * sums[YEARS]
    out[SQUARES] = sums[SQUARES] + length * (2.0 * sums[DISTANCES] + length * sums[COUNT])
    out[DISTANCES] = sums[DISTANCES] + length * sums[COUNT]
    out[YEARS], out[COUNT] = sums[YEARS], sums[COUNT]


@compiled()
def path_sums(parent, child_offsets, child_index, lengths, years):
    """(N, 5) twice: over the tips below each node as seen from it, over all others as seen from its parent.

    years: (T,), NaN for tips that do not count.
    """
    n = len(parent)
    below, outside = np.zeros((n, 5)), np.zeros((n, 5))
    moved, gathered = np.empty(5), np.empty(5)
    for x in range(n - 1):
        if x < len(years) and not np.isnan(years[x]):
            below[x, COUNT], below[x, YEARS] = 1.0, years[x]
        _move(below[x], lengths[x], moved)
        below[parent[x]] += moved
    for p in range(n - 1, -1, -1):
        first, last = child_offsets[p], child_offsets[p + 1]
        gathered[:] = 0.0
        if p < n - 1:
            _move(outside[p], lengths[p], gathered)
        for i in range(first, last):
            c = child_index[i]
            outside[c] += gathered
            _move(below[c], lengths[c], moved)
            gathered += moved
        gathered[:] = 0.0
        for i in range(last - 1, first - 1, -1):
            c = child_index[i]
            outside[c] += gathered
            _move(below[c], lengths[c], moved)
            gathered += moved
    return below, outside
