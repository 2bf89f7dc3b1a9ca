"""Rounds of linkage in a triangle, and the rows they read: nearest neighbours, averages, identical rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phloem.clustering.cpu.forms import row_start, triangle_row
from phloem.hardware.numba_compile import compiled

# Rows of a distance matrix: nearest neighbour, average of two rows.
#
# Distances are non-negative, so their bit patterns order as integers do: the minimum of a row is an integer
# minimum, which vectorises, where a floating-point one (with its rules for NaN) does not.


UPGMA, WPGMA, COMPLETE = 0, 1, 2
ROUNDING = 4 * np.finfo(np.float64).eps  # of reference.linkage.counting_unit
ROWS_BLOCK = 32  # numbers in a few vectors: in whole blocks no loop has a remainder of single numbers


class Rule(NamedTuple):
    """How distances are averaged: by a method, as sums over leaf pairs or not, with `combined`'s constants.

    infinity: its bits, in the distances' size.
    """

    method: int
    sums: bool
    constants: tuple[float, float, float]
    infinity: Any


@compiled()
def block_of(i):
    """Where the block of i begins."""
    return np.uint64(ROWS_BLOCK) * np.uint64(i // ROWS_BLOCK)


@compiled()
def first_lowest(bits, n, infinity):
    """The first place of the smallest of bits[:n], infinity in the rest of the last block."""
    best, place, end = infinity, np.int64(n), block_of(n + ROWS_BLOCK - 1)
    for k in range(end):
        best = min(best, bits[k])
    for k in range(end):
        place = min(place, np.int64(k) if bits[k] == best else np.int64(n))
    return place


@compiled()
def lowest(bits, n, infinity):
    """Smallest of bits[:n]."""
    best = infinity
    for j in range(n):
        value = bits[j]
        best = value if value < best else best
    return best


@compiled()
def _lowest_alive(bits, mask, n, infinity):
    """Smallest of bits[:n] where mask is 0 (mask is infinity's bits at dead columns)."""
    best = infinity
    for j in range(n):
        value = max(bits[j], mask[j])
        best = value if value < best else best
    return best


@compiled()
def first_equal(bits, mask, n, target):
    """First j < n with bits[j] == target and mask[j] == 0; n if there is none."""
    j = 0
    while j + 64 <= n:
        hits = 0
        for k in range(j, j + 64):
            hits += bits[k] == target
        if hits > 0:
            for k in range(j, j + 64):
                if bits[k] == target and mask[k] == 0:
                    return k
        j += 64
    while j < n and not (bits[j] == target and mask[j] == 0):
        j += 1
    return j


@compiled()
def mean_bits(sums, n, sizes, size, out):
    """out[:n] ← bit patterns of sums / (size × sizes); float64 only."""
    for j in range(n):
        out[j] = np.float64(sums[j] / (size * sizes[j])).view(np.int64)


@compiled()
def nearest_before(row, bits, mask, n, rule, sizes, size, means):
    """(distance as bits, place) of the first closest of n clusters.

    means: scratch for the averages of a row of sums.
    """
    if rule.sums:
        mean_bits(row, n, sizes, size, means)
        best = _lowest_alive(means, mask, n, rule.infinity)
        return best, first_equal(means, mask, n, best)
    best = _lowest_alive(bits, mask, n, rule.infinity)
    return best, first_equal(bits, mask, n, best)


@compiled()
def combined(x, y, weight_x, weight_y, constants):
    """reference.linkage.combine for two numbers; constants: (one_up, tiny, cap), cap 2 leaves a sum alone."""
    low, high = min(x, y), max(x, y)
    return min(max(x * weight_x + y * weight_y, low * constants[0] + constants[1]), high * constants[2])


@compiled()
def extremes(bits, first, last, known):
    """Bits of the smallest, the smallest positive and the largest of bits[first:last] and those known."""
    smallest, positive, largest = known
    nothing = largest * 0
    for k in range(np.uint64(first), np.uint64(last)):
        value = bits[k]
        smallest, largest = min(smallest, value), max(largest, value)
        positive = min(positive, value if value > nothing else positive)
    return smallest, positive, largest


@compiled()
def are_whole(distances, unit, first, last):
    """Whether distances[first:last] are whole numbers of units (reference.linkage.counting_unit)."""
    block = np.uint64(1024)
    begin, end = np.uint64(first), np.uint64(last)
    while begin < end:
        stop, broken = min(begin + block, end), 0
        for k in range(begin, stop):
            count = distances[k] / unit
            broken += not abs(count - np.rint(count)) <= ROUNDING * count
        if broken > 0:
            return False
        begin = stop
    return True


@compiled()
def count(distances, unit, first, last):
    """distances[first:last] in units, whole numbers."""
    for k in range(np.uint64(first), np.uint64(last)):
        distances[k] = np.rint(distances[k] / unit)


# Rounds of linkage in a triangle: nearest neighbours, the merged rows and columns dropped, identical rows.
#
# A round of reciprocal nearest neighbours rewrites the triangle without the merged ones, and the same pass
# finds every nearest neighbour: an entry counts for its row and for its column.


BLOCK = np.uint64(64)


class Round(NamedTuple):
    """Which clusters remain after a round, and which pairs merge; positions are unsigned: no tests for
    negative ones.

    keep: (n',) clusters that remain, ascending; pair_of: (n',) the pair each is the lower member of, or -1;
    pairs_before: (n',) pairs with a lower member before keep[i]. The rest, ordered by lower member: (m,)
    lower and upper members, starts of the upper ones' rows, places of the lower ones in keep, weights of
    both, and ranks in the order of merging.
    """

    keep: np.ndarray
    pair_of: np.ndarray
    pairs_before: np.ndarray
    lowers: np.ndarray
    uppers: np.ndarray
    upper_starts: np.ndarray
    places: np.ndarray
    lower_weights: np.ndarray
    upper_weights: np.ndarray
    ranks: np.ndarray


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
def scan_rows(triangle, bits, start, stop, sizes, rule, minima):
    """take_row for the rows start … stop-1; returns the largest entry's bits."""
    sums, infinity = rule.sums, rule.infinity
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
def rewrite_rows(triangle, bits, start, stop, change, sizes, rule, minima):
    """Rows start … stop-1 of the smaller triangle, written in place, and its nearest neighbours (take_row).

    sizes: (n',) leaves of the clusters that remain.
    A row is written at or before its old place, after it was read; what later rows need lies behind it.
    """
    keep, pair_of, pairs_before, lowers, uppers, upper_starts, places, lower_weights, upper_weights, ranks = (
        change
    )
    sums, constants, infinity = rule.sums, rule.constants, rule.infinity
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


ROWS = 16  # looked at together: a cache line of a copy's row


@compiled()
def _compare_with(bits, first, last, i, j):
    """(bits that differ, zeros of row j) between rows i > j at the clusters first … last-1, all after j."""
    differ, zeros, ours_at, theirs_at = bits[0] ^ bits[0], 0, row_start(first) + j, row_start(i)
    for k in range(first, last):
        ours = bits[ours_at]
        if i < k:
            differ |= ours ^ bits[ours_at + i - j]
        elif i > k:
            differ |= ours ^ bits[theirs_at + k]
        zeros += ours == 0
        ours_at += k
    return differ, zeros


@compiled()
def compare_rows(bits, start, stop, copies, originals, copies_before, same, zeros):
    """Compare the distances of each copy and its original from the clusters start … stop-1.

    copies, originals: (m,) unsigned positions, originals[c] < copies[c], ordered by original; copies_before:
    (n,) how many originals come before a cluster. same: (m,) 1, becomes 0 where any distance differs; zeros:
    (m,) grows by the original's distances of zero.
    """
    for first in range(start, stop, ROWS):
        last = np.uint64(min(first + ROWS, stop))
        for c in range(copies_before[last - np.uint64(1)]):
            i, j = copies[c], originals[c]
            differ, none = _compare_with(bits, max(np.uint64(first), j + np.uint64(1)), last, i, j)
            same[c] &= differ == 0
            zeros[c] += none
    for c in range(len(copies)):
        if same[c] and start <= copies[c] < stop:
            j = np.int64(originals[c])
            ours, theirs = triangle_row(bits, j), triangle_row(bits, np.int64(copies[c]))[:j]
            alike, none = 0, 0
            for k in range(j):
                alike += ours[k] == theirs[k]
                none += ours[k] == 0
            same[c] &= alike == j
            zeros[c] += none
