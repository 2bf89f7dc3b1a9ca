"""The maximum clade credibility tree: the sampled tree whose clades are, together, the most probable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from phloem.errors import InputError
from phloem.summary.intervals import grouped, hpd_interval
from phloem.summary.split_table import SplitTable, split_table
from phloem.tree.sample import TreeSample
from phloem.tree.splits import sample_clades
from phloem.tree.tree import Tree, lengths_of_heights

Heights = Literal["mean", "median", "common-ancestor", "keep"]


def log_clade_credibility(table: SplitTable) -> np.ndarray:
    """(n,) sum of log frequencies of each tree's informative splits (clades, if rooted)."""
    informative = np.append(~table.trivial, False)
    log_probability = np.append(np.log(table.probability), 0.0)
    return np.where(informative[table.which], log_probability[table.which], 0.0).sum(axis=1)


def maximum_clade_credibility(
    runs: SplitTable | TreeSample | Sequence[TreeSample], heights: Heights = "mean", mass: float = 0.95
) -> Tree:
    """The sampled tree of the largest product of clade frequencies (the first of equal ones).

    Rooted trees get node heights: mean or median over the trees that have the clade, the mean height of the
    clade's most recent common ancestor over all trees ('common-ancestor'; Heled and Bouckaert 2013, BMC Evol.
    Biol. 13:221), or the sampled tree's own ('keep'). A node never lies below its children: where a
    mean does, it is lifted to theirs. Unrooted trees get mean, median or own branch lengths.
    Annotations: prob; height_mean, height_median, height_95%_HPD (rooted) or length_… (unrooted).
    """
    table = runs if isinstance(runs, SplitTable) else split_table(runs)
    best = int(np.argmax(log_clade_credibility(table)))
    sample = table.sample
    if not sample.rooted:
        if heights == "common-ancestor":
            raise InputError("unrooted trees have no common ancestors", hint="Use mean, median or keep.")
        return _finished(table, best, sample.lengths, heights, mass, "length_{:g}%_HPD", "length")
    values = sample_heights(sample)
    if heights == "common-ancestor":
        values = _common_ancestor_heights(sample, best, values)
    return _finished(table, best, values, heights, mass, "height_{:g}%_HPD", "height")


def sample_heights(sample: TreeSample) -> np.ndarray:
    """(n, N) node heights above each tree's deepest tip; NaN at absent nodes."""
    depth = np.zeros(sample.lengths.shape)
    rows = np.arange(sample.n_trees)
    for x in range(sample.n_nodes - 2, -1, -1):
        depth[:, x] = depth[rows, sample.parent[:, x]] + sample.lengths[:, x]
    return depth[:, : sample.n_tips].max(axis=1, keepdims=True) - depth


def _common_ancestor_heights(sample: TreeSample, best: int, heights: np.ndarray) -> np.ndarray:
    """(n, N) height, in every tree, of the common ancestor of each clade of tree number best."""
    clades = sample_clades(sample)
    rows = np.arange(sample.n_trees)
    found = np.full(heights.shape, np.nan)
    for x in range(sample.n_nodes):
        if x < sample.n_nodes - 1 and sample.parent[best, x] < 0:
            continue
        mine = clades[best, x]
        found[:, x] = heights[rows, ((clades & mine) == mine).all(axis=2).argmax(axis=1)]
    return found


def _finished(
    table: SplitTable, best: int, values: np.ndarray, choice: Heights, mass: float, hpd: str, what: str
):
    """The tree with chosen heights (or lengths) and annotations; values (n, N)."""
    sample = table.sample
    per_node = _values_of_nodes(table, best, values, everywhere=choice == "common-ancestor")
    middle = np.median if choice == "median" else np.mean
    chosen = values[best].copy()
    annotations: dict[int, dict[str, object]] = {}
    probability = table.probability
    for x, found in enumerate(per_node):
        if found is None:
            continue
        if choice != "keep":
            chosen[x] = middle(found)
        split = int(table.which[best, x])
        annotations[x] = {
            "prob": float(probability[split]) if split >= 0 else 1.0,
            f"{what}_mean": float(np.mean(found)),
            f"{what}_median": float(np.median(found)),
            hpd.format(100 * mass): hpd_interval(found, mass),
        }
    parent = sample.parent[best]
    lengths = chosen if what == "length" else lengths_of_heights(parent, _lifted(parent, chosen))
    kept = TreeSample(sample.taxa, parent[None], lengths[None], sample.rooted).tree(0)
    absent = sample.n_nodes - kept.n_nodes
    moved = {x if x < sample.n_tips else x - absent: each for x, each in annotations.items()}
    return Tree(kept.taxa, kept.parent, kept.lengths, None, moved, sample.rooted, "mcc")


def _values_of_nodes(
    table: SplitTable, best: int, values: np.ndarray, everywhere: bool
) -> list[np.ndarray | None]:
    """For each node of tree best: the values at that clade wherever it occurs; None at absent nodes."""
    sample = table.sample
    by_split = [] if everywhere else grouped(values.ravel(), table.which.ravel(), table.n_splits)
    found: list[np.ndarray | None] = []
    for x in range(sample.n_nodes):
        split = int(table.which[best, x])
        root = x == sample.n_nodes - 1
        if split < 0 and not root:
            found.append(None)
        else:
            found.append(values[:, x] if everywhere or root else by_split[split])
    return found if sample.rooted else [*found[:-1], None]


def _lifted(parent: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Heights with every parent raised to its highest child."""
    lifted = heights.copy()
    for x in range(len(parent) - 1):
        if parent[x] >= 0:
            lifted[parent[x]] = max(lifted[parent[x]], lifted[x])
    return lifted
