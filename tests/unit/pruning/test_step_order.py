"""The order of steps of a post-order pass on many programs."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from phloem.pruning.cpu.schedule import list_schedule


def _forest(rng, n_tips: int, n_trees: int):
    """(parent, depth, n_tiles) of random trees, tips first; roots have no tiles."""
    parents, depths, tiles = [], [], []
    for k in range(n_trees):
        parent, free = np.full(2 * n_tips - 1, -1), list(range(n_tips))
        for x in range(n_tips, 2 * n_tips - 1):
            for _ in range(2):
                parent[free.pop(int(rng.integers(len(free))))] = x
            free.append(x)
        depth = np.zeros(len(parent), np.int64)
        for x in range(len(parent) - 2, -1, -1):
            depth[x] = depth[parent[x]] + 1
        n_tiles = rng.integers(1, 6, len(parent))
        n_tiles[-1] = 0
        parents.append(np.where(parent >= 0, parent + k * len(parent), -1))
        depths.append(depth)
        tiles.append(n_tiles)
    return np.concatenate(parents), np.concatenate(depths), np.concatenate(tiles)


def _depends_on_later(order, node, parent) -> bool:
    """Whether a tile comes before one of a node that it waits for."""
    last = np.zeros(len(parent), np.int64)
    last[node[order]] = np.arange(len(order))
    first = np.full(len(parent), len(order))
    np.minimum.at(first, node[order], np.arange(len(order)))
    has = np.isin(np.arange(len(parent)), node) & (parent >= 0)
    return bool((first[parent[has]] < last[has]).any())


def _time(order, node, parent, n_programs: int) -> int:
    """Steps of one time unit, each program taking the next of the list and waiting for what it needs."""
    free, ready = [0] * n_programs, np.zeros(len(parent), np.int64)
    for x in node[order]:
        end = max(heapq.heappop(free), ready[x]) + 1
        heapq.heappush(free, end)
        if parent[x] >= 0:
            ready[parent[x]] = max(ready[parent[x]], end)
    return max(free)


@pytest.mark.parametrize(("n_tips", "n_trees", "n_programs"), [(2, 1, 4), (30, 1, 8), (30, 5, 16), (9, 3, 1)])
def test_every_tile_once_after_what_it_waits_for(n_tips, n_trees, n_programs):
    parent, depth, n_tiles = _forest(np.random.default_rng(n_tips), n_tips, n_trees)
    node = np.repeat(np.arange(len(parent)), n_tiles)
    order = list_schedule(np.cumsum(n_tiles) - n_tiles, n_tiles, parent, depth, n_programs)
    assert np.array_equal(np.sort(order), np.arange(len(node)))
    assert not _depends_on_later(order, node, parent)
    assert _depends_on_later(order[::-1], node, parent) == (n_tips > 2)  # negative control


def test_programs_wait_less_than_level_by_level():
    parent, depth, n_tiles = _forest(np.random.default_rng(3), 100, 1)
    level = np.zeros(len(parent), np.int64)
    for x in range(len(parent) - 1):
        level[parent[x]] = max(level[parent[x]], level[x] + 1)
    node = np.repeat(np.arange(len(parent)), n_tiles)
    order = list_schedule(np.cumsum(n_tiles) - n_tiles, n_tiles, parent, depth, 32)
    by_level = np.argsort(level[node], kind="stable")
    least = -(-len(node) // 32)
    assert least <= _time(order, node, parent, 32) < _time(by_level, node, parent, 32)
