"""Simultaneous joining in rounds (reference/nj_simultaneous.py); each function does a range of rows or pairs.

Cluster i of n is row slots[i] of the matrix and column i of its first n columns.
"""

from __future__ import annotations

import numpy as np

from phloem.clustering.cpu.nj_exact import _lowest_shifted, _place_of
from phloem.hardware.numba_compile import compiled

SHORT = 64  # entries compared before a refuted pair is given up


@compiled
def nearest_rows(distances, slots, n, shift, begin, end, partner, lowest):
    """partner[i]: first j of smallest d_ij + shift_j (no such sum is negative), lowest[i]: that sum."""
    for i in range(begin, end):
        row = distances[slots[i]]
        left = _lowest_shifted(row, shift, i)
        right = _lowest_shifted(row[i + 1 :], shift[i + 1 :], n - i - 1)
        if left <= right:
            partner[i], lowest[i] = _place_of(row, shift, i, left), left
        else:
            partner[i], lowest[i] = i + 1 + _place_of(row[i + 1 :], shift[i + 1 :], n - i - 1, right), right


@compiled
def _is_deepest(row, seen, n, i, j, r, value):
    """Whether no k but i, j, r has d_ik - d_kr below value."""
    for start in range(0, n, SHORT):
        lowest = np.inf
        for k in range(start, min(start + SHORT, n)):
            difference = np.float64(row[k]) - np.float64(seen[k])
            lowest = difference if difference < lowest and k != i and k != j and k != r else lowest
        if lowest < value:
            return False
    return True


@compiled
def confirm_pairs(distances, slots, n, lower, upper, references, begin, end, confirmed):
    """confirmed[p]: whether some reference sees lower[p] and upper[p] as each other's deepest relatives."""
    for p in range(begin, end):
        i, j = lower[p], upper[p]
        x, y = distances[slots[i]], distances[slots[j]]
        ij = np.float64(x[j])
        for r in references:
            if r != i and r != j:
                seen = distances[slots[r]]
                if _is_deepest(x, seen, n, i, j, r, ij - np.float64(seen[j])) and _is_deepest(
                    y, seen, n, i, j, r, ij - np.float64(seen[i])
                ):
                    confirmed[p] = True
                    break


@compiled
def average_rows(distances, slots, n, lower, upper, ab, begin, end):
    """Row lower[p] becomes the mean of the pair's rows less half the distance within the pair."""
    for p in range(begin, end):
        x, y = distances[slots[lower[p]]], distances[slots[upper[p]]]
        for k in range(n):
            x[k] = (np.float64(x[k]) + np.float64(y[k]) - ab[p]) / 2


@compiled
def average_columns(distances, slots, stays, other, within, begin, end, sums):
    """Rows of the clusters that stay get the columns that stay, averaged with column `other` where it is ≥ 0.

    within: distance within each such pair. slots: of the clusters that stay. sums: Σ_j of the new row.
    Returns the smallest entry.
    """
    lowest = 0.0
    for i in range(begin, end):
        row, total = distances[slots[i]], 0.0
        for j in range(len(stays)):
            value = np.float64(row[stays[j]])
            if other[j] >= 0:
                value = (value + np.float64(row[other[j]]) - within[j]) / 2
            row[j] = value if i != j else 0.0
            total += np.float64(row[j])
            lowest = min(lowest, np.float64(row[j]))
        sums[i] = total
    return lowest
