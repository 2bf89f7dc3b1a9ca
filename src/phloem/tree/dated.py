"""Rooted binary trees whose nodes have heights: times before the youngest tip, or before a fixed date.

Flat arrays of N = 2T-1 nodes: tips are 0 … T-1, the root is last, the others have any number. heights: in the
unit of the dates. order: nodes by height, so children before parents; events in time for a tree prior, and
the way up for a likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from phloem.errors import InputError
from phloem.tree.tree import Tree, lengths_of_heights, node_heights


@dataclass(frozen=True, eq=False)
class DatedTree:
    """parent, left, right (N,) int64, -1 where there is none; heights (N,); order (N,) int64."""

    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    heights: np.ndarray
    order: np.ndarray

    @property
    def n_tips(self) -> int:
        return (len(self.parent) + 1) // 2

    def tree(self, taxa: Sequence[str]) -> Tree:
        """As the record of phloem.tree: internal nodes by height, lengths in the unit of the heights."""
        parent, heights, _ = self.sorted()
        return Tree(tuple(taxa), parent.astype(np.int32), lengths_of_heights(parent, heights))

    def sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """parent (N,) and heights (N,) with internal nodes numbered by height, and the number that each of
        those nodes has here."""
        own = np.concatenate([np.arange(self.n_tips), self.order[self.order >= self.n_tips]])
        number = np.empty(len(own), np.int64)
        number[own] = np.arange(len(own))
        above = self.parent[own]
        return np.where(above < 0, -1, number[above]), self.heights[own], own


def dated_tree(parent: np.ndarray, heights: np.ndarray) -> DatedTree:
    """From parents (N,), the root last, and heights; InputError where a node is no older than its child."""
    parent, heights = np.asarray(parent, np.int64), np.asarray(heights, np.float64)
    left, right = np.full(len(parent), -1, np.int64), np.full(len(parent), -1, np.int64)
    for x in range(len(parent) - 1):
        side = left if left[parent[x]] < 0 else right
        side[parent[x]] = x
    if not (heights[parent[:-1]] > heights[:-1]).all():
        raise InputError("a node of a dated tree is not older than its children", hint="Check the dates.")
    return DatedTree(parent, left, right, heights, np.argsort(heights, kind="stable"))


def with_tip_heights(tree: Tree, heights: np.ndarray, shortest: float) -> DatedTree:
    """A rooted binary tree in units of time with these heights (T,) of its tips: inner nodes keep theirs, or
    are lifted until every branch is at least `shortest` long."""
    return lifted_tree(tree.parent, np.append(heights, node_heights(tree)[tree.n_tips :]), shortest)


def lifted_tree(parent: np.ndarray, heights: np.ndarray, shortest: float) -> DatedTree:
    """From parents (N,), which come after their children, and heights (N,), of which those of inner nodes are
    raised until every branch is at least `shortest` long."""
    own = np.array(heights, np.float64)
    for x in range(len(own) - 1):
        own[parent[x]] = max(own[parent[x]], own[x] + shortest)
    return dated_tree(parent, own)


def random_dated_tree(
    tip_heights: np.ndarray,
    rng: np.random.Generator,
    waiting: Callable[[float, int], float],
    clades: Sequence[np.ndarray] = (),
) -> DatedTree:
    """A tree of lineages that join at random, backwards in time.

    tip_heights: (T,). waiting: (height, n pairs of lineages that may join) → how long until one does, drawn
    anew at every tip and every joining, as for a coalescent. clades: (T,) bool each, nested or disjoint sets
    of tips, which lineages do not leave until they are one.
    """
    n_tips = len(tip_heights)
    parent, heights = np.full(2 * n_tips - 1, -1, np.int64), np.zeros(2 * n_tips - 1)
    heights[:n_tips] = tip_heights
    inside = [frozenset(c for c, members in enumerate(clades) if members[x]) for x in range(n_tips)]
    missing = [int(np.sum(members)) for members in clades]  # lineages still to come together
    arriving = np.argsort(tip_heights, kind="stable").tolist()[::-1]
    rooms: dict[frozenset[int], list[int]] = {}  # lineages by the clades that hold them
    t, new = 0.0, n_tips
    while new < len(parent):
        pairs = [len(own) * (len(own) - 1) // 2 for own in rooms.values()]
        after = t + waiting(t, sum(pairs)) if sum(pairs) else np.inf
        if arriving and heights[arriving[-1]] <= after:
            x = arriving.pop()
            t = float(heights[x])
            rooms.setdefault(_held(inside[x], missing), []).append(x)
            continue
        t = float(after)
        room = list(rooms)[int(rng.choice(len(pairs), p=np.array(pairs) / sum(pairs)))]
        own = rooms[room]
        a, b = own.pop(int(rng.integers(len(own)))), own.pop(int(rng.integers(len(own))))
        parent[[a, b]], heights[new] = new, t
        for c in room:
            missing[c] -= 1
        rooms.setdefault(_held(room, missing), []).append(new)
        new += 1
    return dated_tree(parent, heights)


def _held(clades: frozenset[int], missing: list[int]) -> frozenset[int]:
    """Those clades whose lineages are not one yet."""
    return frozenset(c for c in clades if missing[c] > 1)
