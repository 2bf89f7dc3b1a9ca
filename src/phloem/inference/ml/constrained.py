"""A search among the trees that obey a constraint: moves that would break it are not on offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from phloem.clustering.parsimony import Parsimony, bit_planes
from phloem.density.parts import Linkage
from phloem.inference.ml.constrained_messages import ConstrainedMessages, Messages, unconstrained
from phloem.inference.ml.place import ON_CPU, Place
from phloem.inference.ml.searched import (
    Fit,
    Likelihood,
    OneAlignment,
    Searched,
    SearchedPart,
    SeveralParts,
)
from phloem.inference.ml.starts import Start as Values
from phloem.model.record import ParameterValue
from phloem.pruning.interface import Problem
from phloem.tree.constraint import Constraint
from phloem.tree.half_edges import HalfEdges
from phloem.tree.tree import Tree


class ConstrainedParsimony(Parsimony):
    """Trees of few changes that obey: every split is a character that comes first, and changes once, as a
    tree allows that displays it. Where a taxon is added, some branch always obeys."""

    def __init__(self, free: Parsimony, constraint: Constraint) -> None:
        sides = constraint.sides()
        allowed = np.zeros((len(free.words), len(sides), free.words.shape[2]), bool)
        for state in (0, 1):
            allowed[:, :, state] = ((sides == state) | (sides < 0)).T
        super().__init__(*free.alignments, first=np.ascontiguousarray(bit_planes(allowed).transpose(0, 2, 1)))
        self._constraint = constraint

    def random_tree(self, rng: np.random.Generator) -> Tree:
        return self._constraint.resolved(rng)


class Constrained:
    """Data (searched.Searched) of which a tree is sought that obeys."""

    def __init__(self, data: Searched, constraint: Constraint) -> None:
        self.data, self.constraint = data, constraint
        self.taxa, self.n_sites, self.source = data.taxa, data.n_sites, data.source
        self.part_sites = data.part_sites

    @property
    def groups(self) -> list[list[Problem]]:
        return self.data.groups

    @property
    def weights(self) -> list[np.ndarray]:
        return self.data.weights

    @property
    def n_classes(self) -> int:
        return self.data.n_classes

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


def data_of(
    parts: Sequence[SearchedPart],
    linkage: Linkage | None,
    constraint: Constraint | None,
    place: Place = ON_CPU,
) -> Searched:
    """What a tree is sought for: several parts, or the only one (linkage None), under a constraint if there
    is one. ModelError for models that no search can take."""
    found: Searched
    if linkage is None:
        found = OneAlignment(parts[0].alignment, parts[0].model, place)
    else:
        found = SeveralParts(parts, linkage, place)
    return found if constraint is None else Constrained(found, constraint)
