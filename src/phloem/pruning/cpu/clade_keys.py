"""Keys of the sets of tips below nodes, to find the same subtree under another number."""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@compiled
def clade_keys(left, right):
    """(2T-1,) uint64, equal where the same tips lie below: each tip's hash (splitmix64: Steele, Lea and Flood
    2014), summed. Two different clades of N nodes agree by chance once in 2**64 / N² trees.

    left, right: (T-1,) children of internal node T+k, below their parents.
    """
    n_tips = len(left) + 1
    keys = np.empty(2 * n_tips - 1, np.uint64)
    for x in range(n_tips):
        z = np.uint64(x + 1) * _STEP
        z = (z ^ (z >> np.uint64(30))) * _MIX[0]
        z = (z ^ (z >> np.uint64(27))) * _MIX[1]
        keys[x] = z ^ (z >> np.uint64(31))
    for k in range(n_tips - 1):
        keys[n_tips + k] = keys[left[k]] + keys[right[k]]
    return keys
