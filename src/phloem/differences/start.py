"""A tree of some of the genomes as the engine has it: rooted at a tip, binary, of distinct genomes only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from phloem.tree.tree import Tree

if TYPE_CHECKING:
    from phloem.differences.cpu.records import Tree as Branches


def take(tree: Tree, tip_of: Mapping[str, int], tips: int, unknown: float, branches: Branches) -> int:
    """Writes branches; returns how many tips there are. tip_of: taxon → tip of the engine, 0 to 0 … n - 1, of
    which every one is there; taxa with the same tip are equal. tips: the engine's. unknown: the length of
    branches without one."""
    lengths = np.where(np.isfinite(tree.lengths), np.maximum(tree.lengths, 0.0), unknown)
    number = [tip_of[name] for name in tree.taxa]
    start = number.index(0)
    hung: list[list[tuple[int, float]]] = [[] for _ in range(tree.n_nodes)]
    seen, free = {0}, tips
    for x, above, length in _outwards(tree, lengths, start):
        if x < tree.n_tips:
            below = [(number[x], 0.0)] if number[x] not in seen else []
            seen.add(number[x])
        else:
            below = hung[x]
        while len(below) > 1:
            pair, below = below[:2], below[2:]
            for side, (child, own) in enumerate(pair):
                branches.parent[child], branches.children[free, side] = free, child
                branches.length[child] = own
            below = [(free, 0.0), *below]
            free += 1
        hung[above] += [(child, own + length) for child, own in below]
    ((child, length),) = hung[start]
    branches.parent[child], branches.children[0, 0], branches.length[child] = 0, child, length
    return len(seen)


def _outwards(tree: Tree, lengths: np.ndarray, start: int) -> list[tuple[int, int, float]]:
    """Every node but tip `start`, its neighbour on the way there, and the length of the branch between; nodes
    come after all that are beyond them."""
    found: list[tuple[int, int, float]] = []
    waiting = [(start, -1)]
    while waiting:
        x, before = waiting.pop()
        near = [(int(c), float(lengths[c])) for c in tree.children(x)]
        if tree.parent[x] >= 0:
            near.append((int(tree.parent[x]), float(lengths[x])))
        for other, length in near:
            if other != before:
                found.append((other, x, length))
                waiting.append((other, x))
    return found[::-1]
