"""A binary topology by node, and what of it is still there in another one, whatever its nodes are called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.pruning.cpu.column_classes import clade_keys, mark_ancestors, tip_keys

# A binary topology by node, as the engines' kernels want it.


@dataclass(frozen=True)
class Topology:
    """left, right, parent: (N,) int64, -1 where there is none; children come before their parents."""

    left: np.ndarray
    right: np.ndarray
    parent: np.ndarray

    @staticmethod
    def build(left: np.ndarray, right: np.ndarray) -> Topology:
        """left, right: (T-1,) children of the internal nodes."""
        n_tips = len(left) + 1
        tips = np.full(n_tips, -1, np.int64)
        parent = np.full(2 * n_tips - 1, -1, np.int64)
        parent[left] = parent[right] = np.arange(n_tips, 2 * n_tips - 1)
        return Topology(
            np.concatenate([tips, np.asarray(left, np.int64)]),
            np.concatenate([tips, np.asarray(right, np.int64)]),
            parent,
        )

    def with_ancestors(self, nodes: np.ndarray) -> np.ndarray:
        """(N,) bool: the nodes and everything above them. IndexError where there is no such node."""
        marked = np.zeros(len(self.left), bool)
        marked[nodes] = True
        mark_ancestors(self.parent, marked)
        return marked


# What of a tree is still there in another one, whatever its nodes are called.


@dataclass(frozen=True)
class Match:
    """topology: the new one, children in the old order where they are the same two. old_node: (N,) the old
    node with the same tips below, any that is left over where there is none. moved: ascending, new nodes
    without an old one of the same children, whose columns are therefore others; nodes above them have the
    columns they had.
    """

    topology: Topology
    old_node: np.ndarray
    moved: np.ndarray


def match_clades(old: Topology, left: np.ndarray, right: np.ndarray) -> Match:
    """Compare a new topology with the old one. left, right: (T-1,) its children."""
    n_tips = len(left) + 1
    new = Topology.build(left, right)
    tips = tip_keys(n_tips)
    old_keys, keys = (clade_keys(tips, t.left[n_tips:], t.right[n_tips:]) for t in (old, new))
    order = np.argsort(old_keys)
    old_node = order[np.minimum(np.searchsorted(old_keys, keys, sorter=order), len(order) - 1)]
    same = old_keys[old_node] == keys
    spare = np.ones(len(keys), bool)
    spare[old_node[same]] = False
    old_node[~same] = np.flatnonzero(spare)
    internal = np.arange(n_tips, len(keys))
    a, b = old_node[new.left[internal]], old_node[new.right[internal]]
    c, d = old.left[old_node[internal]], old.right[old_node[internal]]
    swapped = internal[(a == d) & (b == c)]
    new.left[swapped], new.right[swapped] = new.right[swapped], new.left[swapped]
    kept = same[internal] & same[new.left[internal]] & same[new.right[internal]]
    kept &= ((a == c) & (b == d)) | ((a == d) & (b == c))
    return Match(new, old_node, internal[~kept])
