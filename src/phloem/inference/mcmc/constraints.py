"""Splits that every tree must have: their keys, and random trees that have them.

The prior is then uniform over the topologies that have all of them: a proposal without one has density 0, so
every move stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.errors import InputError
from phloem.pruning.cpu.column_classes import tip_keys

Splits = Sequence[Sequence[int]]  # numbers of the tips on one side


def sides_without_tip_0(constraints: Splits, n_tips: int) -> list[frozenset[int]]:
    """Of every split the side that lies below a node of a tree rooted beside tip 0, small ones first.

    Splits that every tree has are left out. Errors: InputError for two that no tree has both of.
    """
    found = set()
    for tips in constraints:
        side = frozenset(tips) if 0 not in tips else frozenset(range(n_tips)) - frozenset(tips)
        if 1 < len(side) < n_tips - 1:
            found.add(side)
    sides = sorted(found, key=lambda side: (len(side), sorted(side)))
    for i, small in enumerate(sides):
        for large in sides[i + 1 :]:
            if small & large and not small <= large:
                raise InputError(
                    "two constraints contradict each other: no tree has both splits",
                    hint="Make one contain the other, or have no taxon in common.",
                )
    return sides


def split_keys(constraints: Splits, n_tips: int) -> np.ndarray:
    """(n,) uint64, the key of every set of tips that must lie below some node."""
    keys = tip_keys(n_tips)
    sides = sides_without_tip_0(constraints, n_tips)
    return np.array([keys[sorted(side)].sum(dtype=np.uint64) for side in sides], np.uint64)


def has_splits(splits: np.ndarray, left: np.ndarray, right: np.ndarray, order: np.ndarray) -> bool:
    """Whether a tree (N,) has all sets of tips below its nodes; splits: their keys."""
    n_tips = len(left) // 2 + 1
    keys = [*tip_keys(n_tips).tolist(), *(0 for _ in range(n_tips - 1))]
    for x in order:
        if x >= n_tips:
            keys[x] = (keys[left[x]] + keys[right[x]]) % 2**64
    return set(splits.tolist()) <= set(keys)


def constrained_tree(
    n_tips: int, rng: np.random.Generator, constraints: Splits
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parent, left and right (N,) of a random tree that has the splits: pairs inside of each, at random."""
    root = 2 * n_tips - 2
    parent, left, right = (np.full(root + 1, -1, np.int64) for _ in range(3))
    tops: dict[int, frozenset[int]] = {tip: frozenset([tip]) for tip in range(1, n_tips)}
    node = n_tips
    for side in [*sides_without_tip_0(constraints, n_tips), frozenset(range(1, n_tips))]:
        inside = [top for top, tips in tops.items() if tips <= side]
        while len(inside) > 1:
            a, b = (inside.pop(int(rng.integers(len(inside)))) for _ in range(2))
            left[node], right[node], parent[a], parent[b] = a, b, node, node
            tops[node] = tops.pop(a) | tops.pop(b)
            inside.append(node)
            node += 1
    left[root], right[root] = node - 1, 0
    parent[[0, node - 1]] = root
    return parent, left, right
