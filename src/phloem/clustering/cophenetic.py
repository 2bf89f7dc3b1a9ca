"""How well a tree keeps the distances it was made from."""

from __future__ import annotations

import numpy as np

from phloem.data.distance_triangle import DistanceTriangle
from phloem.tree.tree import Tree

PAIRS = 1 << 22  # compared at a time


def cophenetic_correlation(tree: Tree, distances: np.ndarray | DistanceTriangle) -> float:
    """Pearson's correlation of path lengths in the tree with the distances, over all pairs of tips.

    Sokal and Rohlf 1962 for ultrametric trees. distances: (T, T), or a triangle, in the order of the tree's
    tips. NaN where either has no variance.
    """
    n, parent = tree.n_nodes, tree.parent.tolist()
    depth = np.zeros(n)
    for x in range(n - 2, -1, -1):
        depth[x] = depth[parent[x]] + tree.lengths[x]
    members: dict[int, np.ndarray] = {tip: np.array([tip]) for tip in range(tree.n_tips)}
    sums = np.zeros(5)
    entries = distances.entries if isinstance(distances, DistanceTriangle) else distances
    shift = (float(entries.mean()), float(2 * (depth[: tree.n_tips].mean() - depth[-1])))
    for x in range(tree.n_tips, n):
        below = members.pop(int(tree.children(x)[0]))
        for child in tree.children(x)[1:].tolist():
            other = members.pop(child)
            step = max(1, PAIRS // len(other))
            for start in range(0, len(below), step):
                part = below[start : start + step]
                sums += _sums(distances, depth, part, other, float(depth[x]), shift)
            below = np.concatenate([below, other])
        members[x] = below
    d, p, dd, pp, dp = sums / (tree.n_tips * (tree.n_tips - 1) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float((dp - d * p) / np.sqrt((dd - d * d) * (pp - p * p)))


def _sums(
    distances: np.ndarray | DistanceTriangle,
    depth: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    top: float,
    shift: tuple[float, float],
) -> np.ndarray:
    """Σ d, Σ p, Σ d², Σ p², Σ d p over the pairs of two clades that meet at depth `top`, both shifted."""
    between = distances.between(a, b) if isinstance(distances, DistanceTriangle) else distances[np.ix_(a, b)]
    d = between.astype(np.float64) - shift[0]
    p = depth[a][:, None] + depth[b] - 2 * top - shift[1]
    return np.array([d.sum(), p.sum(), np.vdot(d, d), np.vdot(p, p), np.vdot(d, p)])
