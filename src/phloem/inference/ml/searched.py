"""What is searched with: the data of one part or several, their models, and the numbers of both on a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from phloem.clustering.parsimony import Parsimony
from phloem.data.alignment import Alignment
from phloem.data.patterns import SitePatterns, site_patterns
from phloem.data.translation import columns_of_site
from phloem.density.parts import Linkage
from phloem.inference.ml.constrained_messages import Messages
from phloem.inference.ml.optimize import SHORTEST, refine, refine_each, starts_of_parts
from phloem.inference.ml.optimum import OptimizeResult, PartitionedOptimum
from phloem.inference.ml.place import ON_CPU, Place, require_searchable
from phloem.inference.ml.searchable import refuse, refuse_classes
from phloem.inference.ml.starts import Start as Values
from phloem.inference.ml.starts import restarts
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.parts import in_part, part_lengths
from phloem.likelihood.problem import engine_problem
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.model import Model
from phloem.model.record import ParameterValue
from phloem.model.site_rates import gamma_rates
from phloem.pruning.cpu.directed_sets import DirectedSets
from phloem.pruning.interface import Problem
from phloem.pruning.tree_messages import OneSetMessages
from phloem.tree.half_edges import HalfEdges, half_edges, tree_of
from phloem.tree.layout import tree_layout
from phloem.tree.tree import Tree

Fit = OptimizeResult | PartitionedOptimum
Likelihood = TreeLikelihood | PartitionedLikelihood
RATES = "partition_rates"  # the value of several parts together


class Searched(Protocol):
    """The data of a search and what depends on how many parts they have.

    Values are the numbers of the models, and the rates of parts, by name. taxa: tips are numbered as they
    are. weights: of the patterns, part by part, as the messages have them.
    """

    @property
    def taxa(self) -> tuple[str, ...]: ...

    @property
    def n_sites(self) -> int: ...

    @property
    def source(self) -> str | None: ...

    @property
    def n_classes(self) -> int:
        """Classes of sites with branch lengths of their own (+H): 1 where there are none."""

    @property
    def groups(self) -> list[list[Problem]]:
        """The data of every set of branch lengths, part by part."""

    @property
    def weights(self) -> list[np.ndarray]: ...

    @property
    def part_sites(self) -> Mapping[str, float]:
        """By name what every part counts in means over sites."""

    @property
    def free(self) -> frozenset[str]:
        """Names of the values that are fitted."""

    def parsimony(self) -> Parsimony: ...

    def messages(self, radius: int, threads: int) -> Messages: ...

    def put(self, messages: Messages, values: Values) -> None:
        """Make these the numbers of the messages."""

    def start_values(self) -> Values: ...

    def starts(self, given: Mapping[str, ParameterValue] | None) -> Sequence[Values]:
        """Of the first fit: none but the values given, if there are any."""

    def edges(self, tree: Tree) -> HalfEdges:
        """With the tree's lengths, in every set of them."""

    def likelihood(self, edges: HalfEdges, values: Values, threads: int | None) -> Likelihood: ...

    def refined(
        self,
        likelihood: Likelihood,
        starts: Sequence[Values] = ({},),
        tolerance: float = 1e-4,
        most: int = 1000,
    ) -> Fit: ...

    def values_of(self, fit: Fit) -> Values: ...

    def edges_of(self, fit: Fit) -> HalfEdges: ...


def _trees_of(edges: HalfEdges, taxa: tuple[str, ...]) -> list[Tree]:
    """One for every set of lengths."""
    columns = edges.lengths.reshape(len(edges.back), -1).T
    return [tree_of(HalfEdges(edges.back, own), taxa) for own in columns]


def _edges_of_sets(trees: Sequence[Tree], taxa: tuple[str, ...]) -> HalfEdges:
    """The way back: trees of one shape."""
    sets = [half_edges(tree, taxa) for tree in trees]
    return HalfEdges(sets[0].back, np.stack([one.lengths for one in sets], 1))


def _lengths_of(tree: Tree, taxa: tuple[str, ...]) -> np.ndarray:
    """(B,) as a likelihood has them."""
    return tree_layout(tree, taxa).tree.lengths[:-1]


def _problem(patterns: SitePatterns, model: Model) -> Problem:
    none = np.zeros(0, np.int32)
    return engine_problem(patterns, model, (none, none))


def idle_tips_cut(edges: HalfEdges, groups: Sequence[Sequence[Problem]]) -> HalfEdges:
    """With the shortest length at tips of which no data tell, where any is as good: steps on rounding errors
    lead far away, and the tree's length with them. groups: of every set of lengths."""
    found, columns = edges.copy(), edges.lengths.reshape(len(edges.back), len(groups), -1).copy()
    for k, problems in enumerate(groups):
        silent = [np.all(np.all(p.state_sets, axis=1)[p.tip_codes], axis=1) for p in problems]
        tips = np.flatnonzero(np.all(silent, axis=0))
        columns[tips, k] = columns[edges.back[tips], k] = SHORTEST
    return found._replace(lengths=columns.reshape(edges.lengths.shape))


class OneAlignment:
    """One alignment under one model; lengths are (4T-6, K) where that has K classes with branch lengths of
    their own. Errors: InputError for fewer than three taxa, ModelError as refuse and for such classes on a
    GPU; messages on a GPU: DeviceError (pruning/gpu/directed.GpuMessages)."""

    def __init__(self, alignment: Alignment, model: Model, place: Place = ON_CPU) -> None:
        if alignment.n_taxa < 3:
            require_searchable(alignment.taxa, alignment.source, ())
        refuse(model)
        if place != ON_CPU:
            refuse_classes(model, "a search on a GPU", "Say --device cpu.")
        self.alignment, self.model, self.n_classes = alignment, model, model.n_length_classes
        self.taxa, self.n_sites, self.source = alignment.taxa, alignment.n_sites, alignment.source
        self.part_sites = {"": float(alignment.n_sites)}
        self._problem, self._place = _problem(site_patterns(alignment), model), place
        place.require_room(self.taxa, self.source, [[self._problem]])

    @property
    def groups(self) -> list[list[Problem]]:
        return [[self._problem]]

    @property
    def weights(self) -> list[np.ndarray]:
        return [self._problem.pattern_weights]

    @property
    def free(self) -> frozenset[str]:
        return frozenset(p.name for p in self.model.free)

    def parsimony(self) -> Parsimony:
        return Parsimony(self.alignment)

    def messages(self, radius: int, threads: int) -> Messages:
        return self._place.messages([self._problem], radius, threads, self.n_classes)

    def put(self, messages: Messages, values: Values) -> None:
        assert isinstance(messages, OneSetMessages)
        messages.set_models([self.model.evaluate(values)], [1.0])

    def start_values(self) -> Values:
        return self.model.start_values()

    def starts(self, given: Mapping[str, ParameterValue] | None) -> Sequence[Values]:
        return restarts(self.model.free) if given is None else ({},)

    def edges(self, tree: Tree) -> HalfEdges:
        """Lengths of classes by rising rate: if they began alike they would stay alike."""
        one = half_edges(tree, self.taxa)
        if self.n_classes == 1:
            return one
        return HalfEdges(one.back, np.multiply.outer(one.lengths, gamma_rates(1.0, self.n_classes, "mean")))

    def likelihood(self, edges: HalfEdges, values: Values, threads: int | None) -> TreeLikelihood:
        trees = _trees_of(edges, self.taxa)
        device = self._place.device
        threads = None if device == "gpu" else threads
        found = TreeLikelihood(self.alignment, trees[0], self.model, device, threads=threads)
        if len(trees) > 1:
            found.set(branch_lengths=np.array([_lengths_of(tree, self.taxa) for tree in trees]))
        found.set(parameters=values)
        return found

    def refined(
        self,
        likelihood: Likelihood,
        starts: Sequence[Values] = ({},),
        tolerance: float = 1e-4,
        most: int = 1000,
    ) -> OptimizeResult:
        assert isinstance(likelihood, TreeLikelihood)
        return refine(likelihood, starts, tolerance, most)

    def values_of(self, fit: Fit) -> Values:
        assert isinstance(fit, OptimizeResult)
        return fit.parameters

    def edges_of(self, fit: Fit) -> HalfEdges:
        assert isinstance(fit, OptimizeResult)
        if self.n_classes == 1:
            return self.edges(fit.tree)
        last = fit.tree.lengths[-1]
        trees = [replace(fit.tree, lengths=np.append(own, last)) for own in fit.branch_lengths]
        return _edges_of_sets(trees, self.taxa)


@dataclass(frozen=True, eq=False)
class SearchedPart:
    """A part of the data and its model; all have the same taxa in the same order."""

    name: str
    alignment: Alignment
    model: Model


class SeveralParts:
    """Parts with models of their own on one topology, with branch lengths as linkage says. Values are called
    part, tab, parameter. Errors: as OneAlignment, with the part's name."""

    n_classes = 1

    def __init__(self, parts: Sequence[SearchedPart], linkage: Linkage, place: Place = ON_CPU) -> None:
        first, self._place = parts[0].alignment, place
        self.taxa, self.source, self.linkage = first.taxa, first.source, linkage
        if len(self.taxa) < 3:
            require_searchable(self.taxa, self.source, ())
        self.part_sites = {p.name: p.alignment.n_sites * columns_of_site(p.alignment) for p in parts}
        problems = []
        for part in parts:
            with in_part(part.name):
                refuse(part.model)
                refuse_classes(part.model, "a search with parts", "Leave +H out, or search one alignment.")
                problems.append(_problem(site_patterns(part.alignment), part.model))
        self.parts, self._problems = tuple(parts), problems
        self.n_sites = sum(part.alignment.n_sites for part in parts)
        place.require_room(self.taxa, self.source, self.groups)

    @cached_property
    def _sets(self) -> list[list[int]]:
        """Numbers of the parts of every set of branch lengths."""
        if self.linkage.lengths != "unlinked":
            return [list(range(len(self.parts)))]
        own: dict[tuple[str, ...], list[int]] = {}
        for i, part in enumerate(self.parts):
            group = next((g for g in self.linkage.together if part.name in g), (part.name,))
            own.setdefault(group, []).append(i)
        return list(own.values())

    @cached_property
    def _units(self) -> np.ndarray:
        """(L,) how long a character of every part is."""
        return np.array(part_lengths([part.alignment.alphabet.kind for part in self.parts]))

    @property
    def groups(self) -> list[list[Problem]]:
        return [[self._problems[i] for i in own] for own in self._sets]

    @property
    def weights(self) -> list[np.ndarray]:
        return [one.pattern_weights for own in self.groups for one in own]

    @property
    def free(self) -> frozenset[str]:
        return frozenset({RATES} | {f"{part.name}\t{p.name}" for part in self.parts for p in part.model.free})

    def parsimony(self) -> Parsimony:
        return Parsimony(*(part.alignment for part in self.parts))

    def messages(self, radius: int, threads: int) -> Messages:
        return self._place.of_sets([self._place.messages(own, radius, threads) for own in self.groups])

    def put(self, messages: Messages, values: Values) -> None:
        rates = np.asarray(values[RATES]) * self._units
        sets = messages.sets if isinstance(messages, DirectedSets) else (messages,)
        by_part = self._by_part(values)
        for one, own in zip(sets, self._sets):
            assert isinstance(one, OneSetMessages)
            models = [self.parts[i].model.evaluate(by_part[self.parts[i].name]) for i in own]
            one.set_models(models, rates[own].tolist())

    def start_values(self) -> Values:
        by_part = {part.name: part.model.start_values() for part in self.parts}
        return _flat(by_part) | {RATES: np.ones(len(self.parts))}

    def starts(self, given: Mapping[str, ParameterValue] | None) -> Sequence[Values]:
        if given is not None:
            return ({},)
        names = [part.name for part in self.parts]
        several = starts_of_parts([part.model for part in self.parts])
        return [_flat(dict(zip(names, own))) for own in several]

    def edges(self, tree: Tree) -> HalfEdges:
        one = half_edges(tree, self.taxa)
        if len(self._sets) == 1:
            return one
        return HalfEdges(one.back, np.repeat(one.lengths[:, None], len(self._sets), axis=1))

    def likelihood(self, edges: HalfEdges, values: Values, threads: int | None) -> PartitionedLikelihood:
        trees = _trees_of(edges, self.taxa)
        parts: dict[str, tuple[Alignment, Model | str]]
        parts = {part.name: (part.alignment, part.model) for part in self.parts}
        device = self._place.device
        threads = None if device == "gpu" else threads
        found = PartitionedLikelihood(parts, trees[0], self.linkage, device, threads=threads)
        if len(trees) > 1:
            lengths = [_lengths_of(tree, self.taxa) for tree in trees]
            by_set = {self.parts[own[0]].name: one for own, one in zip(self._sets, lengths)}
            found.set(branch_lengths=by_set)
        if self.linkage.lengths == "proportional":
            found.set(partition_rates=np.asarray(values[RATES]))
        found.set(parameters=self._by_part(values))
        return found

    def refined(
        self,
        likelihood: Likelihood,
        starts: Sequence[Values] = ({},),
        tolerance: float = 1e-4,
        most: int = 1000,
    ) -> PartitionedOptimum:
        assert isinstance(likelihood, PartitionedLikelihood)
        by_part = [self._by_part(start) for start in starts]
        if likelihood.parts_are_independent:
            return refine_each(likelihood, by_part, tolerance, most)
        named = [[start.get(part.name, {}) for part in self.parts] for start in by_part]
        return refine(likelihood, named, tolerance, most)

    def values_of(self, fit: Fit) -> Values:
        assert isinstance(fit, PartitionedOptimum)
        return _flat(fit.parameters) | {RATES: fit.partition_rates}

    def edges_of(self, fit: Fit) -> HalfEdges:
        assert isinstance(fit, PartitionedOptimum)
        if len(self._sets) == 1:
            return half_edges(fit.tree, self.taxa)
        trees = []
        for i in (own[0] for own in self._sets):
            tree = fit.part_trees[self.parts[i].name]
            trees.append(replace(tree, lengths=tree.lengths / self._units[i]))
        return _edges_of_sets(trees, self.taxa)

    def _by_part(self, values: Mapping[str, ParameterValue]) -> dict[str, dict[str, ParameterValue]]:
        found: dict[str, dict[str, ParameterValue]] = {part.name: {} for part in self.parts}
        for name, value in values.items():
            part, tab, parameter = name.partition("\t")
            if tab:
                found[part][parameter] = value
        return found


def _flat(by_part: Mapping[str, Mapping[str, ParameterValue]]) -> Values:
    return {f"{part}\t{name}": value for part, own in by_part.items() for name, value in own.items()}
