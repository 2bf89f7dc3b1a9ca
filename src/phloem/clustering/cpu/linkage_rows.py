"""Rows of a distance matrix: nearest neighbour, average of two rows.

Distances are non-negative, so their bit patterns order as integers do: the minimum of a row is an integer
minimum, which vectorises, where a floating-point one (with its rules for NaN) does not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phloem.hardware.numba_compile import compiled

UPGMA, WPGMA, COMPLETE = 0, 1, 2
ROUNDING = 4 * np.finfo(np.float64).eps  # of reference.linkage.counting_unit
BLOCK = 32  # numbers in a few vectors: in whole blocks no loop has a remainder of single numbers


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
    return np.uint64(BLOCK) * np.uint64(i // BLOCK)


@compiled()
def first_lowest(bits, n, infinity):
    """The first place of the smallest of bits[:n], infinity in the rest of the last block."""
    best, place, end = infinity, np.int64(n), block_of(n + BLOCK - 1)
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
