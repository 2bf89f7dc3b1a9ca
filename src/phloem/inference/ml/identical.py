"""Identical sequences: kept out of a search, and put back on the tree that it found.

Beside its equal a sequence adds nothing: the likelihood of both is at its highest with no length between
them, and is then that of one. So the optimum with all of them is the optimum without, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phloem.data.alignment import Alignment
from phloem.tree.build import suppress_unary, tree_from_parents
from phloem.tree.match import match_taxa
from phloem.tree.tree import Tree


@dataclass(frozen=True, eq=False)
class Distinct:
    """alignment: all taxa, of the first part. kept: (U,) rows, of equal ones the first. of: (T,) for every
    row, its place in kept."""

    alignment: Alignment
    kept: np.ndarray
    of: np.ndarray

    @property
    def copies(self) -> str:
        """How many, in words."""
        return "1 identical sequence" if self.n_copies == 1 else f"{self.n_copies} identical sequences"

    @property
    def n_copies(self) -> int:
        return len(self.of) - len(self.kept)

    def rows_of(self, alignment: Alignment) -> Alignment:
        """The distinct sequences of these taxa, such as of resampled columns."""
        if not self.n_copies:
            return alignment
        taxa = tuple(alignment.taxa[i] for i in self.kept.tolist())
        return replace(alignment, taxa=taxa, codes=np.ascontiguousarray(alignment.codes[self.kept]))

    def groups(self) -> dict[str, list[str]]:
        """Name that was kept → names that are equal to it."""
        taxa, found = self.alignment.taxa, dict[str, list[str]]()
        for i in np.setdiff1d(np.arange(len(self.of)), self.kept).tolist():
            found.setdefault(taxa[self.kept[self.of[i]]], []).append(taxa[i])
        return found

    def taken_out(self, tree: Tree) -> Tree:
        """A tree of all taxa without the copies. InputError as match_taxa."""
        matched = match_taxa(tree, self.alignment.taxa)
        if not self.n_copies:
            return matched
        stays = np.zeros(matched.n_nodes, bool)
        stays[self.kept] = True
        for x in range(matched.n_nodes - 1):
            stays[matched.parent[x]] |= stays[x]
        nodes = np.flatnonzero(stays)
        number = np.full(matched.n_nodes + 1, -1)
        number[nodes] = np.arange(len(nodes))
        names = [matched.taxa[x] if x < matched.n_tips else None for x in nodes.tolist()]
        parent, lengths = number[matched.parent[nodes]], matched.lengths[nodes]
        taxa = self.rows_of(self.alignment).taxa
        thinned = tree_from_parents(names, parent, lengths, taxa=taxa, rooted=matched.rooted)
        return suppress_unary(thinned, "by degree")

    def put_back(self, tree: Tree) -> Tree:
        """A tree of the distinct sequences with every copy beside its equal, no length between them."""
        if not self.n_copies:
            return tree
        labels = tree.labels or (None,) * tree.n_nodes
        names: list[str | None] = [*tree.taxa, *labels[tree.n_tips :]]
        parent, lengths = tree.parent.tolist(), tree.lengths.tolist()
        tip = {name: x for x, name in enumerate(tree.taxa)}
        for name, copies in self.groups().items():
            for copy in copies:
                x, joint = tip[name], len(names)
                names += [None, copy]
                parent += [parent[x], joint]
                lengths += [lengths[x], 0.0]
                parent[x], lengths[x] = joint, 0.0
        taxa = self.alignment.taxa
        moved = dict(tree.annotations)
        return tree_from_parents(
            names, parent, lengths, taxa=taxa, annotations=moved, rooted=tree.rooted, name=tree.name
        )


def distinct(alignment: Alignment, *others: Alignment, apart: bool = False) -> Distinct:
    """Which sequences are identical, ambiguous characters and gaps included. others: further parts of the
    same taxa, which have to be identical too. apart: take all as distinct."""
    rows = np.arange(alignment.n_taxa)
    if apart:
        return Distinct(alignment, rows, rows)
    place: dict[bytes, int] = {}
    rows_of_parts = zip(*(part.codes for part in (alignment, *others)))
    whole = (b"".join(row.tobytes() for row in of_parts) for of_parts in rows_of_parts)
    of = np.array([place.setdefault(row, len(place)) for row in whole])
    kept = np.unique(of, return_index=True)[1]
    return Distinct(alignment, kept, of)


def listed(groups: dict[str, list[str]], most: int = 5) -> Sequence[str]:
    """Sentences for people."""
    lines = [f"{', '.join(copies)} identical to {name}" for name, copies in list(groups.items())[:most]]
    return lines if len(groups) <= most else [*lines, f"and {len(groups) - most:,} groups more"]
