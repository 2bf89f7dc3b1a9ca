"""A search among the trees that obey a constraint: moves that would break it are not on offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from phloem.clustering.parsimony import RADIUS, Parsimony, ParsimonyTree
from phloem.inference.ml.constrained_messages import ConstrainedMessages, Messages, unconstrained
from phloem.inference.ml.searched import Fit, Likelihood, Searched
from phloem.inference.ml.starts import Start as Values
from phloem.model.record import ParameterValue
from phloem.tree.constraint import Constraint
from phloem.tree.half_edges import HalfEdges, half_edges
from phloem.tree.tree import Tree

_MOST_COPIES = 8  # of a split, in words of 64 characters
_MOST_BYTES = 1 << 28  # of parsimony's sets


class ConstrainedParsimony(Parsimony):
    """Trees of few changes that obey: every split is a character that counts so much that its single change
    is worth any that a move could save. A tree that breaks one all the same is not used."""

    def __init__(self, free: Parsimony, constraint: Constraint) -> None:
        sides = constraint.sides()
        own, n = free.words, len(sides)
        size = 8 * own.shape[2] * 4 * own.shape[0] * n  # bytes of a copy
        copies = max(1, min(own.shape[1] + 1, _MOST_COPIES, _MOST_BYTES // size))
        words = np.zeros((own.shape[0], n, own.shape[2]), np.uint64)
        everything = np.uint64(2**64 - 1)
        for state in (0, 1):
            words[:, :, state] = np.where((sides == state) | (sides < 0), everything, np.uint64(0)).T
        super().__init__(*free.alignments, further=np.repeat(words, copies, axis=1))
        self._constraint, self._changes = constraint, 64 * copies * n

    def tree(self, rng: np.random.Generator, radius: int = RADIUS) -> ParsimonyTree:
        found = super().tree(rng, radius)
        if self._constraint.obeyed(half_edges(found.tree, self.alignment.taxa).back):
            score = found.score - self._changes
            lengths = found.tree.lengths * (max(score, 1) / found.score)
            return ParsimonyTree(replace(found.tree, lengths=lengths), score)
        tree = self._constraint.resolved(rng)
        return ParsimonyTree(tree, self.score(tree) - self._changes)

    def ratcheted(self, back: np.ndarray, rng: np.random.Generator, radius: int = RADIUS) -> np.ndarray:
        found = super().ratcheted(back, rng, radius)
        return found if self._constraint.obeyed(found) else back.copy()

    def random_tree(self, rng: np.random.Generator) -> Tree:
        return self._constraint.resolved(rng)


class Constrained:
    """Data (searched.Searched) of which a tree is sought that obeys."""

    def __init__(self, data: Searched, constraint: Constraint) -> None:
        self.data, self.constraint = data, constraint
        self.taxa, self.n_sites, self.source = data.taxa, data.n_sites, data.source

    @property
    def weights(self) -> list[np.ndarray]:
        return self.data.weights

    @property
    def free(self) -> frozenset[str]:
        return self.data.free

    def parsimony(self) -> Parsimony:
        return ConstrainedParsimony(self.data.parsimony(), self.constraint)

    def messages(self, radius: int, threads: int) -> Messages:
        return ConstrainedMessages(unconstrained(self.data.messages(radius, threads)), self.constraint)

    def put(self, messages: Messages, values: Values) -> None:
        self.data.put(unconstrained(messages), values)

    def start_values(self) -> Values:
        return self.data.start_values()

    def starts(self, given: Mapping[str, ParameterValue] | None) -> Sequence[Values]:
        return self.data.starts(given)

    def edges(self, tree: Tree) -> HalfEdges:
        """RuntimeError for a tree that does not obey: every tree of the search comes by here."""
        return self._obeying(self.data.edges(tree))

    def likelihood(self, edges: HalfEdges, values: Values, threads: int | None) -> Likelihood:
        """RuntimeError as edges."""
        return self.data.likelihood(self._obeying(edges), values, threads)

    def refined(
        self,
        likelihood: Likelihood,
        starts: Sequence[Values] = ({},),
        tolerance: float = 1e-4,
        most: int = 1000,
    ) -> Fit:
        return self.data.refined(likelihood, starts, tolerance, most)

    def values_of(self, fit: Fit) -> Values:
        return self.data.values_of(fit)

    def edges_of(self, fit: Fit) -> HalfEdges:
        return self._obeying(self.data.edges_of(fit))

    def _obeying(self, edges: HalfEdges) -> HalfEdges:
        for split in self.constraint.missing(edges.back):
            raise RuntimeError(f"a tree of the search breaks the constraint: {self.constraint.names(split)}")
        return edges
