"""How far a tree of distances is to be trusted: bootstrap support, cophenetic correlation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from phloem.data.distance_matrix import DistanceTriangle
from phloem.errors import InputError
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import sample_splits, tree_splits
from phloem.tree.tree import Tree


def bootstrap_support(
    tree: Tree,
    n_sites: int,
    build: Callable[[np.ndarray], Tree],
    replicates: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Tree:
    """The tree labelled with the percentage of replicate trees that have each split (clade, if rooted).

    build: (n_sites,) columns of the alignment → tree of the same taxa. Replicate k draws its columns from the
    stream (seed, k), so any one can be repeated alone; an InputError of its own says which one it was.
    """
    splits = sample_splits(sample_of_trees([tree]))[0]
    keys = [split.tobytes() for split in splits]
    counts = dict.fromkeys(keys, 0)
    for k in range(replicates):
        columns = np.random.default_rng([seed, k]).integers(0, n_sites, n_sites)
        try:
            replicate = build(columns)
        except InputError as error:
            raise InputError(
                f"in bootstrap replicate {k + 1}: {error.message}", file=error.file, hint=error.hint
            ) from None
        for split in tree_splits(replicate):
            if (key := split.tobytes()) in counts:
                counts[key] += 1
        if progress is not None:
            progress(k + 1, replicates)
    inner = range(tree.n_tips, tree.n_nodes - 1)
    labels: list[str | None] = [None] * tree.n_nodes
    for x in inner:
        labels[x] = f"{100 * counts[keys[x]] / replicates:.0f}"
    return dataclasses.replace(tree, labels=tuple(labels))


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
