"""Nearest neighbours by one pass over a triangle: every entry counts for its row and for its column."""

from __future__ import annotations

import numpy as np

from phloem.clustering.cpu.forms import row_start
from phloem.clustering.cpu.linkage_rows import first_equal, lowest, mean_bits
from phloem.hardware.numba_compile import compiled

BLOCK = np.uint64(64)


@compiled()
def take_row(bits, i, no_mask, infinity, minima):
    """Let row i's entries bits[:i] count: the first smallest for cluster i, each for its column's cluster.

    minima: (n,) arrays: distance (bits) and place of the nearest cluster before; the same of the nearest
    after among the rows taken so far, which must come in ascending order, so that the first of equals stays.
    Few entries improve on their column, so a block is looked at first and changed only if one does.
    """
    before_bits, before, after_bits, after = minima
    best = lowest(bits, i, infinity)
    before_bits[i] = best
    before[i] = first_equal(bits, no_mask, i, best)
    j, n = np.uint64(0), np.uint64(i)
    while j < n:
        stop = min(j + BLOCK, n)
        nearer = 0
        for k in range(j, stop):
            nearer += bits[k] < after_bits[k]
        if nearer > 0:
            for k in range(j, stop):
                if bits[k] < after_bits[k]:
                    after_bits[k], after[k] = bits[k], i
        j = stop


@compiled()
def scan_rows(triangle, bits, start, stop, sizes, sums, infinity, minima):
    """take_row for the rows start … stop-1; returns the largest entry's bits. sums: entries are sums."""
    means, no_mask = np.empty(stop, bits.dtype), np.zeros(stop, bits.dtype)
    largest = np.zeros(1, bits.dtype)[0]
    for i in range(start, stop):
        at = row_start(i)
        row = bits[at : at + np.uint64(i)]
        for j in range(i):
            largest = max(largest, row[j])
        if sums:
            mean_bits(triangle[at : at + np.uint64(i)], i, sizes, sizes[i], means)
            take_row(means, i, no_mask, infinity, minima)
        else:
            take_row(row, i, no_mask, infinity, minima)
    return largest
