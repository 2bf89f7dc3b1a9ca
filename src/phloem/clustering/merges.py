"""What an agglomerative method did: its merges in order, and the tree they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.tree.tree import Tree


@dataclass(frozen=True)
class Merges:
    """n-1 merges of n leaves in order of (distance, lower, upper).

    lower, upper: (n-1,) int64, the smallest leaf of each merged cluster, lower < upper.
    distance: (n-1,) float64 between the two, in the matrix's unit; the node's height is half of it.
    rounds: how many rounds of reciprocal nearest neighbours there were; other merges came one at a time.
    """

    lower: np.ndarray
    upper: np.ndarray
    distance: np.ndarray
    rounds: int = 0

    @property
    def n_leaves(self) -> int:
        return len(self.lower) + 1

    def nodes(self) -> np.ndarray:
        """(n-1, 2) int64: node numbers joined by each merge; leaf x is node x, merge k makes node n + k."""
        n = self.n_leaves
        node = list(range(n))
        joined = []
        for k, (a, b) in enumerate(zip(self.lower.tolist(), self.upper.tolist())):
            joined.append((node[a], node[b]))
            node[a] = n + k
        return np.array(joined, np.int64).reshape(n - 1, 2)

    def tree(self, taxa: Sequence[str]) -> Tree:
        """The ultrametric tree: a node's height is half the distance at which it was made."""
        n = self.n_leaves
        joined = self.nodes()
        parent = np.full(2 * n - 1, -1, np.int32)
        parent[joined.ravel()] = np.repeat(np.arange(n, 2 * n - 1), 2)
        heights = np.concatenate([np.zeros(n), self.distance / 2])
        lengths = np.zeros(2 * n - 1)
        lengths[:-1] = heights[parent[:-1]] - heights[:-1]
        return Tree(taxa=tuple(taxa), parent=parent, lengths=lengths, rooted=True)

    def linkage_matrix(self) -> np.ndarray:
        """(n-1, 4) float64 in SciPy's form: two nodes, distance, leaves below."""
        n = self.n_leaves
        joined = np.sort(self.nodes(), axis=1)
        sizes = np.ones(2 * n - 1)
        for k, (x, y) in enumerate(joined.tolist()):
            sizes[n + k] = sizes[x] + sizes[y]
        return np.column_stack([joined, self.distance, sizes[n:]])
