"""A topology as the CPU engine's kernels want it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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

    def differs_from(self, other: Topology) -> np.ndarray:
        """Nodes that have other children there."""
        return np.flatnonzero((self.left != other.left) | (self.right != other.right))

    def above(self, nodes: np.ndarray) -> np.ndarray:
        """nodes and everything above them, ascending."""
        dirty = np.zeros(len(self.left), bool)
        for node in nodes:
            x = int(node)
            while x >= 0 and not dirty[x]:
                dirty[x] = True
                x = int(self.parent[x])
        return np.flatnonzero(dirty)
