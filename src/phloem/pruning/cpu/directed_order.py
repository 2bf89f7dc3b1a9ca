"""In which order directed messages can be made, many at a time (pruning/gpu/directed.py)."""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled
from phloem.pruning.cpu.directed import beside


@compiled
def _levels(order, back, tips, level):
    """level (4T-6,) int64: of every half-edge 0 at a tip, else one more than those it waits for. Returns the
    highest."""
    highest = 0
    for i in range(len(order) - 1, -1, -1):
        h = order[i]
        level[h] = 0
        if h >= tips:
            a, b = beside(h, tips)
            level[h] = 1 + max(level[back[a]], level[back[b]])
            highest = max(highest, level[h])
    level[back[order[0]]] = 0
    for i in range(len(order)):
        h = order[i]
        if h >= tips:
            a, b = beside(h, tips)
            level[a] = 1 + max(level[back[h]], level[back[b]])
            level[b] = 1 + max(level[back[h]], level[back[a]])
            highest = max(highest, level[a], level[b])
    return highest


@compiled
def _by_level(level, highest, places):
    """places = half-edges by level, and by number within one."""
    first = np.zeros(highest + 2, np.int64)
    for h in range(len(level)):
        first[level[h] + 1] += 1
    for k in range(highest + 1):
        first[k + 1] += first[k]
    for h in range(len(level)):
        places[first[level[h]]] = h
        first[level[h]] += 1


def message_order(order: np.ndarray, back: np.ndarray) -> np.ndarray:
    """(4T-6,) half-edges, each behind those whose messages its own waits for. order: half_edges.preorder."""
    level, places = np.zeros(len(back), np.int64), np.zeros(len(back), np.int64)
    highest = _levels(order, back, (len(back) + 6) // 4, level)
    _by_level(level, highest, places)
    return places
