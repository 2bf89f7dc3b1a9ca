"""Linkage one merge at a time, where few clusters are each other's nearest (Müllner 2011, generic algorithm).

Cluster i answers for the pairs with the clusters before it, a contiguous row. bound[i] never exceeds their
smallest distance, since a merge brings nobody nearer than both its members were; where the nearest one has
merged and moved away the row is stale, and is read again only once its bound is the smallest of all.
"""

from __future__ import annotations

import numpy as np

from phloem.clustering.cpu.forms import row_start, triangle_row
from phloem.clustering.cpu.linkage_rows import combined, lowest, mean_bits, nearest_before
from phloem.hardware.numba_compile import compiled

ROWS = 256


@compiled()
def _read_row(triangle, bits, k, mask, infinity, sizes, sums, means, bound, nearest, stale):
    """Cluster k's bound becomes exact."""
    bound[k], nearest[k] = nearest_before(
        triangle_row(triangle, k), triangle_row(bits, k), mask, k, infinity, sizes, sizes[k], sums, means
    )
    stale[k] = False


@compiled()
def _closest(triangle, bits, n, mask, infinity, sizes, sums, means, bound, nearest, stale):
    """(lower, upper) of the closest pair, of equals the first by lower, then upper."""
    while True:
        best = lowest(bound, n, infinity)
        a, b, j = n, n, 0
        while j < n:
            stop, hits = min(j + 64, n), 0
            for k in range(j, stop):
                hits += bound[k] == best
            if hits > 0:
                for k in range(j, stop):
                    if bound[k] == best and stale[k]:
                        _read_row(
                            triangle, bits, k, mask, infinity, sizes, sums, means, bound, nearest, stale
                        )
                    if bound[k] == best and nearest[k] < a:
                        a, b = nearest[k], k
            j = stop
        if b < n:
            return a, b


@compiled()
def _merge(triangle, n, a, b, weight_a, weight_b, constants, x, y):
    """Distances of the union of a and b in a's place; those from clusters after a are left in x too.

    A column is one number a cache line: those of a few rows are read, combined and written while the lines
    are in the cache.
    """
    row, other = triangle_row(triangle, a), triangle_row(triangle, b)
    for k in range(a):
        row[k] = combined(row[k], other[k], weight_a, weight_b, constants)
    for first in range(a + 1, n, ROWS):
        last, after_b = min(first + ROWS, n), max(first, b + 1)
        at = row_start(first) + np.uint64(a)
        for k in range(first, last):
            x[k] = triangle[at]
            at += np.uint64(k)
        for k in range(first, min(last, b)):
            y[k] = other[k]
        at = row_start(after_b) + np.uint64(b)
        for k in range(after_b, last):
            y[k] = triangle[at]
            at += np.uint64(k)
        for k in range(first, last):
            x[k] = combined(x[k], y[k], weight_a, weight_b, constants)
        at = row_start(first) + np.uint64(a)
        for k in range(first, last):
            triangle[at] = x[k]
            at += np.uint64(k)


@compiled()
def _take_column(column, n, a, b, mask, bound, nearest, stale):
    """Clusters after a compare their bound with the union's distance column[k] (bits); b is gone."""
    j = a + 1
    while j < n:
        stop, hits = min(j + 64, n), 0
        for k in range(j, stop):
            value, near = max(column[k], mask[k]), nearest[k]
            hits += (value < bound[k]) | ((value == bound[k]) & (a < near)) | (near == a) | (near == b)
        if hits > 0:
            for k in range(j, stop):
                value = max(column[k], mask[k])
                if value < bound[k]:
                    bound[k], nearest[k], stale[k] = value, a, False
                elif nearest[k] == a or nearest[k] == b or (value == bound[k] and a < nearest[k]):
                    if value == bound[k] and not stale[k]:
                        nearest[k] = a
                    else:
                        stale[k] = True
        j = stop


@compiled()
def merge_in_sequence(
    triangle, bits, n, alive, mask, sizes, weighting, constants, infinity, bound, nearest, fewest, x, x_bits,
    merged, merged_bits,
):  # fmt: skip
    """Merge the closest pair until `fewest` clusters live; returns how many merges were made.

    alive, mask: (n,) all alive, mask zero; b's mask becomes infinity's bits when b merges into a. weighting:
    0 by size (UPGMA), 1 halves (WPGMA), 2 ones (complete linkage), 3 ones, the entries being sums over leaf
    pairs. bound, nearest: nearest among the clusters before, exact.
    x, x_bits: (n,) scratch and its integer view. merged: (≥ n-1, 2) positions, merged_bits their distances.
    """
    stale, y, means = np.zeros(n, np.bool_), np.empty(n, triangle.dtype), np.empty(n, bits.dtype)
    weights, sums = np.empty(2, triangle.dtype), weighting == 3
    for made in range(n - fewest):
        a, b = _closest(triangle, bits, n, mask, infinity, sizes, sums, means, bound, nearest, stale)
        merged[made, 0], merged[made, 1], merged_bits[made] = a, b, bound[b]
        total = sizes[a] + sizes[b]
        if weighting == 0:
            weights[0], weights[1] = sizes[a] / total, sizes[b] / total
        else:
            weights[:] = 0.5 if weighting == 1 else 1.0
        _merge(triangle, n, a, b, weights[0], weights[1], constants, x, y)
        sizes[a] = total
        alive[b], mask[b], bound[b], nearest[b], stale[b] = False, infinity, infinity, -1, False
        if sums:
            mean_bits(x, n, sizes, total, means)
            _take_column(means, n, a, b, mask, bound, nearest, stale)
        else:
            _take_column(x_bits, n, a, b, mask, bound, nearest, stale)
        _read_row(triangle, bits, a, mask, infinity, sizes, sums, means, bound, nearest, stale)
    return n - fewest
