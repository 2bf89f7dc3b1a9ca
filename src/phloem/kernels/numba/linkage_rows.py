"""Rows of a distance matrix: nearest neighbour, average of two rows.

Distances are non-negative, so their bit patterns order as integers do: the minimum of a row is an integer
minimum, which vectorises, where a floating-point one (with its rules for NaN) does not.
"""

from __future__ import annotations

import numpy as np

from phloem.kernels.numba.compile import compiled


@compiled()
def lowest(bits, n, infinity):
    """Smallest of bits[:n]."""
    best = infinity
    for j in range(n):
        value = bits[j]
        best = value if value < best else best
    return best


@compiled()
def lowest_alive(bits, mask, n, infinity):
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
def lowest_mean(sums, mask, n, infinity, sizes, size):
    """Smallest bit pattern of sums[:n] / (size × sizes) where mask is 0."""
    best = infinity
    for j in range(n):
        value = max(np.float64(sums[j] / (size * sizes[j])).view(np.int64), mask[j])
        best = value if value < best else best
    return best


@compiled()
def first_equal_mean(sums, mask, n, target, sizes, size):
    """First j < n whose mean has the bit pattern target; n if there is none."""
    for j in range(n):
        if np.float64(sums[j] / (size * sizes[j])).view(np.int64) == target and mask[j] == 0:
            return j
    return n


@compiled()
def nearest_neighbour(row, bits, mask, n, infinity, sizes, size, sums):
    """(distance as bits, place) of the first closest cluster; sums: the row holds sums over leaf pairs."""
    if sums:
        best = lowest_mean(row, mask, n, infinity, sizes, size)
        return best, first_equal_mean(row, mask, n, best, sizes, size)
    best = lowest_alive(bits, mask, n, infinity)
    return best, first_equal(bits, mask, n, best)


@compiled()
def combined(x, y, weight_x, weight_y, constants):
    """reference.linkage.combine for two numbers; constants: (one_up, tiny, cap), cap 2 leaves a sum alone."""
    low, high = min(x, y), max(x, y)
    return min(max(x * weight_x + y * weight_y, low * constants[0] + constants[1]), high * constants[2])


@compiled()
def combine_rows(x, y, n, weight_x, weight_y, constants):
    """x[:n] ← combined(x, y)."""
    one_up, tiny, cap = constants
    for j in range(n):
        low, high = min(x[j], y[j]), max(x[j], y[j])
        x[j] = min(max(x[j] * weight_x + y[j] * weight_y, low * one_up + tiny), high * cap)


@compiled()
def scan_rows(distances, bits, slots, start, stop, n, mask, infinity, sizes, sums, nearest, nearest_bits):
    """Nearest neighbour (the first of equals) of the clusters start … stop-1 among n columns."""
    for i in range(start, stop):
        s = slots[i]
        nearest_bits[i], nearest[i] = nearest_neighbour(
            distances[s], bits[s], mask, n, infinity, sizes, sizes[i], sums
        )
