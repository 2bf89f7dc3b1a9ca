"""A binary topology by node, as the engines' kernels want it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.pruning.cpu.ancestors import mark_ancestors


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
