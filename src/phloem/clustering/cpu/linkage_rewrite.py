"""A round of reciprocal nearest neighbours: the triangle rewritten without the merged rows and columns."""

from __future__ import annotations

import numpy as np

from phloem.clustering.cpu.forms import row_start
from phloem.clustering.cpu.linkage_minima import take_row
from phloem.clustering.cpu.linkage_rows import combined, mean_bits
from phloem.hardware.numba_compile import compiled


@compiled()
def _entries_with(triangle, k, start, uppers, upper_starts, m, out):
    """out[q] ← distance of cluster k, whose row begins at start, from uppers[q], which may come after it."""
    for q in range(m):
        d = uppers[q]
        out[q] = triangle[start + d if d < k else upper_starts[q] + k]


@compiled()
def _merged_columns(x, y, lower_weights, upper_weights, m, constants):
    """x ← combined(x, y), the weights each pair's own."""
    for q in range(m):
        x[q] = combined(x[q], y[q], lower_weights[q], upper_weights[q], constants)


@compiled()
def _pair_with_pairs(x, y, z, w, lower_weights, upper_weights, ranks, m, p, constants):
    """x ← distances of the merged pair p from m merged pairs.

    x, y: of p's lower member from the pairs' lower and upper ones; z, w: of its upper member. The pair that
    merges earlier averages first, as when merging one at a time.
    """
    a, b, rank = lower_weights[p], upper_weights[p], ranks[p]
    for q in range(m):
        c, d = lower_weights[q], upper_weights[q]
        theirs = combined(
            combined(x[q], y[q], c, d, constants), combined(z[q], w[q], c, d, constants), a, b, constants
        )
        ours = combined(
            combined(x[q], z[q], a, b, constants), combined(y[q], w[q], a, b, constants), c, d, constants
        )
        x[q] = theirs if ranks[q] < rank else ours


@compiled()
def rewrite_rows(
    triangle, bits, start, stop, keep, pair_of, pairs_before, pairs, sizes, sums, constants, infinity, minima
):
    """Rows start … stop-1 of the smaller triangle, written in place, and its nearest neighbours (take_row).

    keep: (n',) clusters that remain, ascending; pair_of: (n',) the pair each is the lower member of, or -1;
    pairs_before: (n',) pairs with a lower member before keep[i]. pairs, ordered by lower member: (m,) lower
    and upper members, starts of the upper ones' rows, places of the lower ones in keep, weights of both, and
    ranks in the order of merging. sizes: (n',) leaves. Positions are unsigned: no tests for negative ones.
    A row is written at or before its old place, after it was read; what later rows need lies behind it.
    """
    lowers, uppers, upper_starts, places, lower_weights, upper_weights, ranks = pairs
    m, number = len(lowers), triangle.dtype
    x, y, z, w = np.empty(m, number), np.empty(m, number), np.empty(m, number), np.empty(m, number)
    united, row = np.empty(keep[stop - 1], number), np.empty(stop, number)
    means, no_mask = np.empty(stop, bits.dtype), np.zeros(stop, bits.dtype)
    for i in range(start, stop):
        k, p, count = np.uint64(keep[i]), pair_of[i], pairs_before[i]
        at = row_start(k)
        old = triangle[at : at + k]
        _entries_with(triangle, k, at, uppers, upper_starts, count, y)
        for q in range(count):
            x[q] = old[lowers[q]]
        if p >= 0:
            other_at = upper_starts[p]
            other = triangle[other_at : other_at + k]
            _entries_with(triangle, np.uint64(uppers[p]), other_at, uppers, upper_starts, count, w)
            for q in range(count):
                z[q] = other[lowers[q]]
            _pair_with_pairs(x, y, z, w, lower_weights, upper_weights, ranks, count, p, constants)
            for c in range(k):
                united[c] = combined(old[c], other[c], lower_weights[p], upper_weights[p], constants)
            old = united
        else:
            _merged_columns(x, y, lower_weights, upper_weights, count, constants)
        for j in range(i):
            row[j] = old[keep[j]]
        for q in range(count):
            row[places[q]] = x[q]
        new_at = row_start(i)
        new, new_bits = triangle[new_at : new_at + np.uint64(i)], bits[new_at : new_at + np.uint64(i)]
        new[:] = row[:i]
        if sums:
            mean_bits(new, i, sizes, sizes[i], means)
            take_row(means, i, no_mask, infinity, minima)
        else:
            take_row(new_bits, i, no_mask, infinity, minima)
