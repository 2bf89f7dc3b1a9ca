"""Trees that stand for a sample: majority-rule consensus, and the one of maximum clade credibility."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from phloem.errors import InputError, InputWarning
from phloem.summary.splits import SplitTable, split_table
from phloem.summary.trace import hpd_interval
from phloem.tree.build import tree_from_parents
from phloem.tree.sample import TreeSample
from phloem.tree.splits import sample_clades, split_members
from phloem.tree.tree import Tree, lengths_of_heights

ConsensusRule = Literal["majority", "allcompat"]
MOST_STATES = 200  # different texts that are states of a trait; more are names of nodes


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
    prob(percent), length_mean, length_median, length_95%HPD; and what the trees say of nodes, as of
    maximum_clade_credibility.
    An unrooted consensus hangs from the node next to tip 0.
    """
    if not 0.5 <= threshold < 1.0:
        raise InputError(f"threshold {threshold} makes no majority", hint="Choose 0.5 or more, below 1.")
    table = runs if isinstance(runs, SplitTable) else split_table(runs)
    probability = table.probability
    informative = np.flatnonzero(~table.trivial)
    order = informative[np.lexsort([-table.sizes[informative], -probability[informative]])]
    majority = order[probability[order] > threshold + 1e-12]
    most = table.sample.n_tips - (2 if table.sample.rooted else 3)
    chosen = order[all_compatible(table.splits[order], most)] if rule == "allcompat" else majority
    return _assembled(table, chosen[np.argsort(table.sizes[chosen], kind="stable")], mass, lengths)


def all_compatible(splits: np.ndarray, most: int) -> np.ndarray:
    """Greedily the rows (n, W) of inner splits or clades, in their order, that are nested in or disjoint from
    all taken before. most: so many can be compatible."""
    taken = np.zeros((max(most, 0), splits.shape[1]), np.uint64)
    chosen: list[int] = []
    for candidate, mine in enumerate(splits):
        if len(chosen) == most:
            break
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
    for name, each in along_of(table.sample).items():
        noted = each.values if isinstance(each, StatesAlong) else each
        for x, own in enumerate([*grouped(noted.ravel(), group, n_tips + k), noted[:, -1]]):
            annotations[x] = annotations.get(x, {}) | _told(name, each, own, mass)
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
    probability = float(np.rint(frequency * table.counted).sum() / table.counted.sum())
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


Heights = Literal["mean", "median", "common-ancestor", "keep"]


def log_clade_credibility(table: SplitTable) -> np.ndarray:
    """(n,) sum of log frequencies of each tree's informative splits (clades, if rooted)."""
    informative = np.append(~table.trivial, False)
    log_probability = np.append(np.log(table.probability), 0.0)
    return np.where(informative[table.which], log_probability[table.which], 0.0).sum(axis=1)


def maximum_clade_credibility(
    runs: SplitTable | TreeSample | Sequence[TreeSample],
    heights: Heights = "mean",
    mass: float = 0.95,
    along: Mapping[str, np.ndarray | StatesAlong] | None = None,
) -> Tree:
    """The sampled tree of the largest product of clade frequencies (the first of equal ones).

    Rooted trees get node heights: mean or median over the trees that have the clade, the mean height of the
    clade's most recent common ancestor over all trees ('common-ancestor'; Heled and Bouckaert 2013, BMC Evol.
    Biol. 13:221), or the sampled tree's own ('keep'). A node never lies below its children: where a
    mean does, it is lifted to theirs. Unrooted trees get mean, median or own branch lengths.
    Annotations: prob; height_mean, height_median, height_95%_HPD (rooted) or length_… (unrooted); of numbers
    of branches or nodes, name → (n, N) of all trees, run after run, NaN where one has none: name (their
    mean), name_median, name_95%_HPD; of states of nodes name (the most frequent), name.prob, name.set,
    name.set.prob. along: these; None: what the sample itself has.
    """
    table = runs if isinstance(runs, SplitTable) else split_table(runs)
    best, sample = int(np.argmax(log_clade_credibility(table))), table.sample
    if not sample.rooted and heights == "common-ancestor":
        raise InputError("unrooted trees have no common ancestors", hint="Use mean, median or keep.")
    values = sample_heights(sample) if sample.rooted else sample.lengths
    standing = Standing("mcc", sample.parent[best], table.which[best], values[best])
    if heights == "common-ancestor":
        values = common_ancestor_heights(table, standing, values)
    return finished(table, standing, values, heights, mass, along)


class StatesAlong(NamedTuple):
    """A discrete trait of the nodes of every tree. values: (n, N) numbers of states, -1 where one has none;
    names: of these."""

    values: np.ndarray
    names: tuple[str, ...]


class Standing(NamedTuple):
    """A tree that stands for a sample. name; parent (N,), in the sample's order; which: (N,) the table's
    split above each node, -1 at the root and absent nodes; own: (N,) its heights or lengths, if it was
    sampled."""

    name: str
    parent: np.ndarray
    which: np.ndarray
    own: np.ndarray | None


def sample_heights(sample: TreeSample) -> np.ndarray:
    """(n, N) node heights above each tree's deepest tip; NaN at absent nodes."""
    depth = np.zeros(sample.lengths.shape)
    rows = np.arange(sample.n_trees)
    for x in range(sample.n_nodes - 2, -1, -1):
        depth[:, x] = depth[rows, sample.parent[:, x]] + sample.lengths[:, x]
    return depth[:, : sample.n_tips].max(axis=1, keepdims=True) - depth


def common_ancestor_heights(table: SplitTable, standing: Standing, heights: np.ndarray) -> np.ndarray:
    """(n, N) height, in every tree, of the common ancestor of each clade of a tree."""
    clades = sample_clades(table.sample)
    rows = np.arange(table.sample.n_trees)
    found = np.full(heights.shape, np.nan)
    for x, split in enumerate(standing.which):
        if split >= 0:
            mine = table.splits[split]
            found[:, x] = heights[rows, ((clades & mine) == mine).all(axis=2).argmax(axis=1)]
    found[:, -1] = heights[:, -1]
    return found


def finished(
    table: SplitTable,
    standing: Standing,
    values: np.ndarray,
    choice: Heights,
    mass: float,
    along: Mapping[str, np.ndarray | StatesAlong] | None = None,
) -> Tree:
    """The tree with chosen heights (or lengths, if unrooted) and annotations; values (n, N), and of numbers
    along branches."""
    sample, parent, probability = table.sample, standing.parent, table.probability
    what = "height" if sample.rooted else "length"
    per_node = _values_of_nodes(table, standing, values, everywhere=choice == "common-ancestor")
    middle = np.median if choice == "median" else np.mean
    chosen = np.full(len(parent), np.nan) if standing.own is None else standing.own.copy()
    annotations: dict[int, dict[str, object]] = {}
    for x, found in enumerate(per_node):
        if found is None:
            continue
        if choice != "keep":
            chosen[x] = middle(found)
        split = int(standing.which[x])
        annotations[x] = {"prob": float(probability[split]) if split >= 0 else 1.0}
        if not np.isnan(found).any():  # as of trees without lengths
            annotations[x] |= {
                f"{what}_mean": float(np.mean(found)),
                f"{what}_median": float(np.median(found)),
                f"{what}_{100 * mass:g}%_HPD": hpd_interval(found, mass),
            }
    for name, each in (along_of(sample) if along is None else along).items():
        for x, own in enumerate(_of_nodes(table, standing, each)):
            if told := _told(name, each, own, mass):  # nothing of nodes that this tree lacks
                annotations.setdefault(x, {}).update(told)
    lengths = chosen if what == "length" else lengths_of_heights(parent, _lifted(parent, chosen))
    kept = TreeSample(sample.taxa, parent[None], lengths[None], sample.rooted).tree(0)
    absent = sample.n_nodes - kept.n_nodes
    moved = {x if x < sample.n_tips else x - absent: each for x, each in annotations.items()}
    return Tree(kept.taxa, kept.parent, kept.lengths, None, moved, sample.rooted, standing.name)


def along_of(sample: TreeSample) -> dict[str, np.ndarray | StatesAlong]:
    """What a sample's trees say of their nodes, texts as states; a warning of such as are too many."""
    found: dict[str, np.ndarray | StatesAlong] = {}
    for name, values in sample.along.items():
        if values.dtype != object:
            found[name] = values
            continue
        there = np.array([value is not None for value in values.ravel()]).reshape(values.shape)
        names, which = np.unique(values[there].astype(str), return_inverse=True)
        if len(names) > MOST_STATES:
            told = f"annotations of nodes '{name}' are {len(names):,} different texts, and are left out"
            warnings.warn(told, InputWarning, stacklevel=2)
            continue
        states = np.full(values.shape, -1, np.int64)
        states[there] = which
        found[name] = StatesAlong(states, tuple(names.tolist()))
    return found


def _of_nodes(
    table: SplitTable, standing: Standing, each: np.ndarray | StatesAlong
) -> list[np.ndarray | None]:
    values = each.values if isinstance(each, StatesAlong) else each
    return _values_of_nodes(table, standing, values, everywhere=False)


def _told(
    name: str, each: np.ndarray | StatesAlong, own: np.ndarray | None, mass: float
) -> dict[str, object]:
    """What values at a node say, of those trees in which it has any."""
    if own is None:
        return {}
    if isinstance(each, StatesAlong):
        known = own[own >= 0]
        return _shares_of_states(name, known, each.names) if len(known) else {}
    known = own[~np.isnan(own)]
    if not len(known):
        return {}
    return {
        name: float(np.mean(known)),
        f"{name}_median": float(np.median(known)),
        f"{name}_{100 * mass:g}%_HPD": hpd_interval(known, mass),
    }


def _shares_of_states(name: str, own: np.ndarray, names: tuple[str, ...]) -> dict[str, object]:
    """Annotations as BEAST and FigTree name them: the most frequent state, its share, all of them."""
    shares = np.bincount(own, minlength=len(names)) / len(own)
    order = [k for k in np.argsort(-shares, kind="stable") if shares[k] > 0]
    return {
        name: names[order[0]],
        f"{name}.prob": float(shares[order[0]]),
        f"{name}.set": tuple(names[k] for k in order),
        f"{name}.set.prob": tuple(float(shares[k]) for k in order),
    }


def _values_of_nodes(
    table: SplitTable, standing: Standing, values: np.ndarray, everywhere: bool
) -> list[np.ndarray | None]:
    """For each node of a tree: the values at that clade wherever it occurs; None at absent nodes."""
    sample = table.sample
    by_split = [] if everywhere else grouped(values.ravel(), table.which.ravel(), table.n_splits)
    found: list[np.ndarray | None] = []
    for x in range(sample.n_nodes):
        split = int(standing.which[x])
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


def grouped(values: np.ndarray, group: np.ndarray, n_groups: int) -> list[np.ndarray]:
    """The values of each group 0…n_groups-1; values whose group is -1 are left out."""
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(n_groups + 1))
    ordered = values[order]
    return [ordered[a:b] for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist())]
