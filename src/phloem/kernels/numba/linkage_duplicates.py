"""Identical rows of a distance matrix, which merge at height zero before anything else."""

from __future__ import annotations

import numpy as np

from phloem.kernels.numba.compile import compiled


@compiled()
def _rows_equal(x, y, i, j, n):
    """bits x[k] == y[k] for every k < n but i and j."""
    for k in range(0, n, 256):
        stop = min(k + 256, n)
        different = 0
        for l in range(k, stop):
            different += x[l] != y[l]
        for l in (i, j):
            if k <= l < stop:
                different -= x[l] != y[l]
        if different > 0:
            return False
    return True


@compiled()
def duplicate_rows(bits, nearest, nearest_bits):
    """For every row the first row identical to it (itself if none).

    A class counts only if nothing outside it is at distance zero from it: then the greedy order merges the
    class first, lowest names first, and the merged row is the row itself.
    """
    n = len(nearest)
    first = np.arange(n)
    members = np.zeros(n, np.int64)
    for i in range(n):
        j = nearest[i]
        if nearest_bits[i] == 0 and j < i and first[j] == j and _rows_equal(bits[i], bits[j], i, j, n):
            first[i] = j
            members[j] += 1
    for j in range(n):
        if members[j] > 0:
            zeros = 0
            for k in range(n):
                zeros += bits[j, k] == 0
            if zeros != members[j]:
                members[j] = 0
    for i in range(n):
        if members[first[i]] == 0:
            first[i] = i
    return first
