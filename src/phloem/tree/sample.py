"""Many trees of the same taxa as two arrays, the form in which a sampler stores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phloem.errors import InputError
from phloem.tree.along import Along, Notes, empty, joined
from phloem.tree.build import node_levels
from phloem.tree.match import match_taxa
from phloem.tree.reroot import unroot
from phloem.tree.tree import Tree


@dataclass(frozen=True)
class TreeSample:
    """n trees of the same taxa, each row in the record's order (children before parents, root last).

    parent: (n, N) int32, -1 at the root and at absent nodes (a row with multifurcations has fewer nodes than
    the widest one; its absent nodes come right after the tips).
    lengths: (n, N) float64 of the branch above each node. rooted: whether the root's position matters.
    along: what the trees say of their nodes besides, where that was asked for.
    """

    taxa: tuple[str, ...]
    parent: np.ndarray
    lengths: np.ndarray
    rooted: bool
    along: Along = field(default_factory=dict)

    @property
    def n_trees(self) -> int:
        return len(self.parent)

    @property
    def n_tips(self) -> int:
        return len(self.taxa)

    @property
    def n_nodes(self) -> int:
        return self.parent.shape[1]

    def tree(self, i: int) -> Tree:
        """Row i as a tree."""
        present = np.flatnonzero(np.append(self.parent[i, :-1] >= 0, True))
        number = np.full(self.n_nodes + 1, -1, np.int32)
        number[present] = np.arange(len(present))
        parent = number[self.parent[i, present]]
        return Tree(self.taxa, parent, self.lengths[i, present], rooted=self.rooted)

    def ordered_as(self, taxa: tuple[str, ...]) -> TreeSample:
        """The same trees with their tips in another order. InputError for other taxa."""
        if self.taxa == taxa:
            return self
        if set(self.taxa) != set(taxa):
            told = f"these trees are of other taxa: {difference_of_taxa(self.taxa, taxa)}"
            raise InputError(told, hint="Summarise trees of the same taxa.")
        place = {name: i for i, name in enumerate(self.taxa)}
        columns = np.arange(self.n_nodes)
        columns[: self.n_tips] = [place[name] for name in taxa]
        return self._moved(taxa, (slice(None), columns))

    def select(self, rows: slice | np.ndarray) -> TreeSample:
        """The sample's rows given by a slice or an index array."""
        return self._moved(self.taxa, rows)

    def _moved(self, taxa: tuple[str, ...], where: Any) -> TreeSample:
        along = {name: values[where] for name, values in self.along.items()}
        return TreeSample(taxa, self.parent[where], self.lengths[where], self.rooted, along)


def sample_of_trees(trees: Sequence[Tree], noted: bool = False, before: int = 0) -> TreeSample:
    """Trees of the same taxa as a sample, tips in the order of the first; noted: with what they say of their
    nodes, of which a warning says what has no place in it. before: trees of the file that stand before them,
    for errors."""
    if not trees:
        raise InputError("there are no trees to summarise", hint="Check the burn-in and the tree file.")
    rooted = {tree.rooted for tree in trees}
    if len(rooted) > 1:
        raise InputError("some trees are rooted and some are not", hint="Root or unroot all of them.")
    if not trees[0].rooted:
        trees = [unroot(tree) if len(tree.children(tree.n_nodes - 1)) == 2 else tree for tree in trees]
    taxa = trees[0].taxa
    n_nodes = max(tree.n_nodes for tree in trees)
    parent = np.full((len(trees), n_nodes), -1, np.int32)
    lengths = np.full((len(trees), n_nodes), np.nan)
    notes = Notes(*parent.shape)
    for i, tree in enumerate(trees):
        tree = _matched(tree, taxa, before + i)
        shift = n_nodes - tree.n_nodes
        place = np.arange(tree.n_nodes)
        place[tree.n_tips :] += shift
        parent[i, place[:-1]] = tree.parent[:-1] + shift
        lengths[i, place] = tree.lengths
        if noted:
            notes.add(i, place, tree.annotations)
    notes.tell()
    return TreeSample(taxa, parent, lengths, rooted.pop(), notes.columns)


def _matched(tree: Tree, taxa: tuple[str, ...], number: int) -> Tree:
    """Tree number `number`, from 0, with its tips in the order of the first one's."""
    try:
        return match_taxa(tree, taxa)
    except InputError:
        told = f"tree {number + 1} and the first differ in taxa: {difference_of_taxa(tree.taxa, taxa)}"
        hint = "Summarise trees of the same taxa; gene trees that lack some are for phloem concordance."
        raise InputError(told, hint=hint) from None


def difference_of_taxa(own: Sequence[str], others: Sequence[str]) -> str:
    """Which taxa one has more and which it lacks, three each; "" where they are the same."""
    of_own, of_others = set(own), set(others)
    more = [name for name in own if name not in of_others]
    lacks = [name for name in others if name not in of_own]
    told = []
    for words, names in (("it has", more), ("it lacks", lacks)):
        if names:
            rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
            told.append(f"{words} {', '.join(repr(name) for name in names[:3])}{rest}")
    return "; ".join(told)


def concatenate(samples: Sequence[TreeSample]) -> TreeSample:
    """The trees of several samples (runs) one after the other, tips in the order of the first."""
    first = samples[0]
    if any(sample.rooted != first.rooted for sample in samples):
        raise InputError("some samples are of rooted trees, some not", hint="Summarise runs of one analysis.")
    n_nodes = max(sample.n_nodes for sample in samples)
    widened = [_widened(sample.ordered_as(first.taxa), n_nodes) for sample in samples]
    parent = np.concatenate([sample.parent for sample in widened])
    lengths = np.concatenate([sample.lengths for sample in widened])
    along = joined([sample.along for sample in widened], [sample.parent.shape for sample in widened])
    return TreeSample(first.taxa, parent, lengths, first.rooted, along)


def _widened(sample: TreeSample, n_nodes: int) -> TreeSample:
    """The same trees with absent nodes after the tips, up to n_nodes in all."""
    extra, tips = n_nodes - sample.n_nodes, sample.n_tips
    if extra == 0:
        return sample
    moved = np.where(sample.parent < 0, -1, sample.parent + extra)
    parent = np.insert(moved, [tips] * extra, -1, axis=1).astype(np.int32)

    def wider(values: np.ndarray) -> np.ndarray:
        absent = empty((sample.n_trees, extra), values.dtype == object)
        return np.concatenate([values[:, :tips], absent, values[:, tips:]], axis=1)

    along = {name: wider(values) for name, values in sample.along.items()}
    return TreeSample(sample.taxa, parent, wider(sample.lengths), sample.rooted, along)


def sample_of_arrays(
    taxa: Sequence[str], parent: np.ndarray, lengths: np.ndarray, rooted: bool = False
) -> TreeSample:
    """A sample from parent pointers whose internal nodes are numbered in any order.

    parent: (n, N), tips 0…T-1, -1 at the root, which may be any internal node. lengths: (n, N).
    """
    parent = np.asarray(parent, np.int32)
    n, n_nodes = parent.shape
    n_tips = len(taxa)
    _check_arrays(parent, n_tips, rooted)
    inner = np.arange(n_tips, n_nodes)
    if np.all(parent[:, n_tips:-1] > inner[:-1]) and np.all(parent[:, -1] == -1):
        return TreeSample(tuple(taxa), parent, np.asarray(lengths, np.float64), rooted)
    flat = np.where(parent < 0, -1, parent + np.arange(n)[:, None] * n_nodes).ravel()
    level = node_levels(flat).reshape(n, n_nodes)
    old = np.concatenate(
        [np.tile(np.arange(n_tips), (n, 1)), n_tips + np.argsort(-level[:, n_tips:], axis=1, kind="stable")],
        axis=1,
    )
    number = np.empty_like(old)
    np.put_along_axis(number, old, np.arange(n_nodes)[None], axis=1)
    moved = np.take_along_axis(parent, old, axis=1)
    renamed = np.where(moved < 0, -1, np.take_along_axis(number, np.maximum(moved, 0), axis=1))
    return TreeSample(tuple(taxa), renamed.astype(np.int32), np.take_along_axis(lengths, old, axis=1), rooted)


def _check_arrays(parent: np.ndarray, n_tips: int, rooted: bool) -> None:
    n, n_nodes = parent.shape
    if n == 0:
        raise InputError("there are no trees to summarise", hint="Check the burn-in and the tree file.")
    if np.any((parent < 0).sum(axis=1) != 1) or (parent >= n_nodes).any():
        raise InputError("each tree needs exactly one root", hint="Mark one node of each row with parent -1.")
    root = np.argmax(parent < 0, axis=1)
    degree = (parent == root[:, None]).sum(axis=1)
    if not rooted and n_tips > 2 and np.any(degree < 3):
        hint = "Give 2T-2 nodes and let the root have three children."
        raise InputError("an unrooted tree has a root of two children", hint=hint)
