"""Trees put together from the clades of a sample: none of them needs to have been sampled as a whole.

Both maximise the product of their clades' frequencies f(C), by dynamic programming from small clades to
large: the best subtree of a clade is the best pair of parts it may fall into,

    best(C) = log f(C) + max over pairs (A, B) of best(A) + best(B).

"hipstr": pairs that a sampled tree has at that clade (highest independent posterior subtrees; Baele,
Carvalho, Brusselmans, Dudas, Ji, McCrone, Lemey, Suchard and Rambaut 2025, Bioinformatics 41:btaf488). "ccd":
any two sampled clades that make it up, the most probable tree of the clade distribution CCD0 (Berling,
Klawitter, Bouckaert, Xie, Gavryushkin and Drummond 2025, PLoS Comput. Biol. 21:e1012789).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from phloem.errors import InputError
from phloem.summary.splits import SplitTable, split_table
from phloem.summary.trees import (
    Heights,
    Standing,
    StatesAlong,
    common_ancestor_heights,
    finished,
    maximum_clade_credibility,
    sample_heights,
)
from phloem.tree.sample import TreeSample
from phloem.tree.splits import tip_bits
from phloem.tree.tree import Tree

CladeTree = Literal["hipstr", "ccd"]
SUMMARY_TREES = {
    "mcc": "tree of maximum clade credibility",
    "hipstr": "tree of the most credible clades, paired as sampled,",
    "ccd": "tree of the most credible clades",
}
"""Kinds of trees that stand for a sample of dated ones, in words."""


def tree_of_clades(
    runs: SplitTable | TreeSample | Sequence[TreeSample],
    kind: str,
    heights: Heights = "mean",
    mass: float = 0.95,
    along: Mapping[str, np.ndarray | StatesAlong] | None = None,
) -> Tree:
    """mcc: the sampled tree of maximum clade credibility; hipstr or ccd: clade_tree."""
    if kind == "mcc":
        return maximum_clade_credibility(runs, heights, mass, along)
    return clade_tree(runs, "hipstr" if kind == "hipstr" else "ccd", heights, mass, along)


def clade_tree(
    runs: SplitTable | TreeSample | Sequence[TreeSample],
    kind: CladeTree,
    heights: Heights = "mean",
    mass: float = 0.95,
    along: Mapping[str, np.ndarray | StatesAlong] | None = None,
) -> Tree:
    """The tree of the largest product of clade frequencies, heights and annotations as of
    maximum_clade_credibility, but that there is no sampled tree to keep heights of.

    InputError for unrooted trees and for ones with multifurcations."""
    table = runs if isinstance(runs, SplitTable) else split_table(runs)
    if not table.sample.rooted or (table.sample.parent[:, :-1] < 0).any():
        raise InputError(
            f"a {kind} tree is made of rooted, binary trees",
            hint="Choose mcc, or a consensus of these trees.",
        )
    if heights == "keep":
        raise InputError(f"a {kind} tree was not sampled, and has no heights to keep", hint="Choose mean.")
    standing = best_of_clades(table, kind)
    values = sample_heights(table.sample)
    if heights == "common-ancestor":
        values = common_ancestor_heights(table, standing, values)
    return finished(table, standing, values, heights, mass, along)


class Pairs(NamedTuple):
    """Ways in which clades fall into two: whole, one, other: (p,) int64 numbers of splits, whole that of the
    table's size where it is all taxa; by the size of the whole."""

    whole: np.ndarray
    one: np.ndarray
    other: np.ndarray


def best_of_clades(table: SplitTable, kind: CladeTree) -> Standing:
    """The tree that maximises the product of clade frequencies; of equal ones that of the first pairs."""
    n_tips, root = table.sample.n_tips, table.n_splits
    pairs = observed_pairs(table) if kind == "hipstr" else all_pairs(table)
    best = np.append(np.log(table.probability), 0.0)
    chosen = np.full((root + 1, 2), -1, np.int64)
    edges = np.flatnonzero(np.append(True, np.diff(pairs.whole) != 0))
    for begin, end in zip(edges, np.append(edges[1:], len(pairs.whole))):
        scores = best[pairs.one[begin:end]] + best[pairs.other[begin:end]]
        first, whole = begin + int(np.argmax(scores)), pairs.whole[begin]
        best[whole] += scores.max()
        chosen[whole] = pairs.one[first], pairs.other[first]
    found, waiting = [], [root]
    while waiting:
        clade = waiting.pop()
        if chosen[clade, 0] >= 0:
            found.append(clade)
            waiting += chosen[clade].tolist()
    sizes = np.append(table.sizes, n_tips)
    inner = sorted(found, key=lambda clade: (sizes[clade], clade))
    clades = np.concatenate([table.which[0, :n_tips], inner]).astype(np.int64)
    number = {int(clade): x for x, clade in enumerate(clades)}
    parent = np.full(len(clades), -1, np.int32)
    for clade in inner:
        parent[[number[int(part)] for part in chosen[clade]]] = number[int(clade)]
    return Standing(kind, parent, np.where(clades == root, -1, clades), None)


def log_score(table: SplitTable, standing: Standing) -> float:
    """Σ log f of its clades."""
    return float(np.log(table.probability)[standing.which[:-1]].sum())


def observed_pairs(table: SplitTable) -> Pairs:
    """Those of the sampled trees."""
    n_tips, rows = table.sample.n_tips, np.arange(table.sample.n_trees)[:, None]
    children = np.argsort(table.sample.parent[:, :-1], axis=1, kind="stable")  # two of every inner node
    parts = np.sort(table.which[rows, children].reshape(len(rows), n_tips - 1, 2), axis=2)
    whole = table.which[:, n_tips:]
    whole = np.where(whole < 0, table.n_splits, whole)
    found = np.unique(np.concatenate([whole[..., None], parts], axis=2).reshape(-1, 3), axis=0)
    return _by_size(table, found)


def all_pairs(table: SplitTable) -> Pairs:
    """All that two of the sampled clades make up."""
    everything = np.bitwise_or.reduce(tip_bits(table.sample.n_tips), axis=0)
    clades, sizes = np.vstack([table.splits, everything]), np.append(table.sizes, table.sample.n_tips)
    number = {row.tobytes(): i for i, row in enumerate(table.splits)}
    found: list[tuple[int, int, int]] = []
    for whole in np.flatnonzero(sizes > 1):
        smaller = np.flatnonzero(table.sizes <= sizes[whole] // 2)
        inside = ((table.splits[smaller] & clades[whole]) == table.splits[smaller]).all(axis=1)
        ones = smaller[inside]
        for one, rest in zip(ones.tolist(), np.ascontiguousarray(clades[whole] ^ table.splits[ones])):
            other = number.get(rest.tobytes(), -1)
            if other >= 0 and (2 * sizes[one] < sizes[whole] or one < other):
                found.append((int(whole), one, other))
    return _by_size(table, np.array(found, np.int64))


def _by_size(table: SplitTable, rows: np.ndarray) -> Pairs:
    """From rows (p, 3)."""
    sizes = np.append(table.sizes, table.sample.n_tips)
    rows = rows[np.lexsort([rows[:, 2], rows[:, 1], rows[:, 0], sizes[rows[:, 0]]])]
    return Pairs(*rows.T)
