"""Distances along a tree, for the tests of what is made from distances."""

from __future__ import annotations

import numpy as np


def path_lengths(tree) -> np.ndarray:
    """(T, T) distances between tips along the tree."""
    n, t = tree.n_nodes, tree.n_tips
    to_root = np.zeros((n, n))
    for x in range(n - 2, -1, -1):
        to_root[x] = to_root[tree.parent[x]]
        to_root[x, x] = tree.lengths[x]
    return np.abs(to_root[:t, None] - to_root[None, :t]).sum(-1)
