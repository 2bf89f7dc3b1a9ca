"""Consensus trees of a posterior sample: 50% majority rule, or with all further compatible splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from phloem.errors import InputError
from phloem.summary.intervals import grouped, hpd_interval
from phloem.summary.split_table import SplitTable, split_table
from phloem.tree.build import tree_from_parents
from phloem.tree.sample import TreeSample
from phloem.tree.splits import split_members
from phloem.tree.tree import Tree

ConsensusRule = Literal["majority", "allcompat"]


def consensus_tree(
    runs: SplitTable | TreeSample | Sequence[TreeSample],
    rule: ConsensusRule = "majority",
    threshold: float = 0.5,
    mass: float = 0.95,
    lengths: Literal["mean", "median"] = "mean",
) -> Tree:
    """The consensus of all runs' trees.

    rule 'majority' keeps splits in more than threshold (≥ 0.5) of the trees; 'allcompat' adds the others from
    the most frequent down as long as they contradict no split kept so far (ties: the larger split first).
    Branch lengths are means over the trees that have the branch (MrBayes 3.2.7 writes medians, here an
    option). Annotations, as in MrBayes' .con.tre: prob, prob_stddev and prob_range (between runs),
    prob(percent), length_mean, length_median, length_95%HPD.
    An unrooted consensus hangs from the node next to tip 0.
    """
    if not 0.5 <= threshold < 1.0:
        raise InputError(f"threshold {threshold} makes no majority", hint="Choose 0.5 or more, below 1.")
    table = runs if isinstance(runs, SplitTable) else split_table(runs)
    probability = table.probability
    informative = np.flatnonzero(~table.trivial)
    order = informative[np.lexsort([-table.sizes[informative], -probability[informative]])]
    majority = order[probability[order] > threshold + 1e-12]
    chosen = _all_compatible(table, order) if rule == "allcompat" else majority
    return _assembled(table, chosen[np.argsort(table.sizes[chosen], kind="stable")], mass, lengths)


def _all_compatible(table: SplitTable, candidates: np.ndarray) -> np.ndarray:
    """Greedily the candidates, in their order, that are nested in or disjoint from all taken before."""
    n_words = table.splits.shape[1]
    most = table.sample.n_tips - (2 if table.sample.rooted else 3)
    taken = np.zeros((max(most, 0), n_words), np.uint64)
    chosen: list[int] = []
    for candidate in candidates.tolist():
        if len(chosen) == most:
            break
        mine = table.splits[candidate]
        others = taken[: len(chosen)]
        shared = others & mine
        disjoint = ~shared.any(axis=1)
        nested = (shared == mine).all(axis=1) | (shared == others).all(axis=1)
        if np.all(disjoint | nested):
            taken[len(chosen)] = mine
            chosen.append(candidate)
    return np.array(chosen, np.int64)


def _assembled(table: SplitTable, chosen: np.ndarray, mass: float, middle: str) -> Tree:
    """The tree of compatible splits given from small to large, with lengths and annotations."""
    n_tips, k = table.sample.n_tips, len(chosen)
    parent = parents_of_splits(table.splits[chosen], n_tips)
    split_of = np.concatenate([_tip_splits(table), chosen])
    node_of = np.full(table.n_splits, -1, np.int64)
    node_of[split_of] = np.arange(n_tips + k)
    group = np.where(table.which >= 0, node_of[table.which], -1).ravel()
    values_of = grouped(table.sample.lengths.ravel(), group, n_tips + k)
    annotations = {x: _length_annotation(values, mass) for x, values in enumerate(values_of)}
    for x in range(n_tips + k):
        annotations[x] = _support_annotation(table, int(split_of[x])) | annotations[x]
    average = np.median if middle == "median" else np.mean
    means = [float(average(values)) for values in values_of]
    names = [*table.sample.taxa, *(None,) * (k + 1)]
    return tree_from_parents(
        names, parent, [*means, 0.0], taxa=table.sample.taxa, annotations=annotations,
        rooted=table.sample.rooted, name="consensus",
    )  # fmt: skip


def parents_of_splits(splits: np.ndarray, n_tips: int) -> np.ndarray:
    """Parent pointers of tips, compatible splits (k, W) from small to large, and a root: (T + k + 1,)."""
    k = len(splits)
    members = split_members(splits, n_tips)
    root = n_tips + k
    parent = np.full(root + 1, root, np.int64)
    parent[root] = -1
    if k:
        parent[:n_tips] = np.where(members.any(axis=0), n_tips + members.argmax(axis=0), root)
    for i in range(k - 1):
        holds = ((splits[i + 1 :] & splits[i]) == splits[i]).all(axis=1)
        if holds.any():
            parent[n_tips + i] = n_tips + i + 1 + int(holds.argmax())
    return parent


def _tip_splits(table: SplitTable) -> np.ndarray:
    """(T,) the number of the split above each tip."""
    return table.which[0, : table.sample.n_tips]


def _support_annotation(table: SplitTable, split: int) -> dict[str, object]:
    frequency = table.frequency[:, split]
    per_run = np.bincount(table.run)
    probability = float(frequency @ per_run / per_run.sum())
    values: dict[str, object] = {"prob": probability}
    if table.n_runs > 1:
        values["prob_stddev"] = float(frequency.std(ddof=1))
        values["prob_range"] = (float(frequency.min()), float(frequency.max()))
    return values | {"prob(percent)": str(int(100 * probability + 0.5))}


def _length_annotation(lengths: np.ndarray, mass: float) -> dict[str, object]:
    if np.isnan(lengths).any():
        return {}
    return {
        "length_mean": float(np.mean(lengths)),
        "length_median": float(np.median(lengths)),
        f"length_{100 * mass:g}%HPD": hpd_interval(lengths, mass),
    }
