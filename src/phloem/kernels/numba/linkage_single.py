"""Single linkage: its merges never move a nearest neighbour farther, so no row is ever scanned twice."""

from __future__ import annotations

import numpy as np

from phloem.kernels.numba.compile import compiled
from phloem.kernels.numba.linkage_rows import lowest


@compiled()
def _closest(nearest_bits, n, infinity):
    """First cluster whose nearest neighbour is closest."""
    best = lowest(nearest_bits, n, infinity)
    for k in range(n):
        if nearest_bits[k] == best:
            return k
    return 0


@compiled()
def single_merges(bits, nearest, nearest_bits, infinity, merged, merged_bits):
    """Merge the closest pair n-1 times; bits: (n, n) integer view, infinite diagonal; nearest known.

    Pairs are ordered by (distance, smaller name, larger name); a cluster keeps its smallest leaf's place.
    """
    n = len(nearest)
    alive = np.ones(n, np.bool_)
    for step in range(n - 1):
        a = _closest(nearest_bits, n, infinity)
        b = nearest[a]
        merged[step, 0], merged[step, 1], merged_bits[step] = a, b, nearest_bits[a]
        alive[b], nearest_bits[b] = False, infinity
        best, place = infinity, a
        for k in range(n):
            if not alive[k] or k == a:
                continue
            value = min(bits[a, k], bits[b, k])
            bits[a, k] = value
            bits[k, a] = value
            if value < best:
                best, place = value, k
            if nearest[k] == b or (value == nearest_bits[k] and a < nearest[k]):
                nearest[k] = a
        nearest[a], nearest_bits[a] = place, best
