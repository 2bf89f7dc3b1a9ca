"""Forests, of the sampler and of partitions, as engines of the table: one cell on the CPU, and two chains
on a GPU, the second of which is company."""

from __future__ import annotations

import numpy as np

from phloem.model.record import SiteModel
from phloem.pruning.cpu.cell_memory import Part
from phloem.pruning.cpu.cell_records import ForestTrees
from phloem.pruning.cpu.forest import Forest
from phloem.pruning.interface import EngineGradient, Problem
from phloem.pruning.topology import Topology, match_clades


def part_of(problem: Problem, model: SiteModel, first_lengths: int = 0) -> Part:
    return Part(
        problem.tip_codes,
        problem.state_sets,
        problem.pattern_weights,
        problem.ascertained,
        model.process,
        model.length_class,
        first_lengths,
        problem.repeats,
    )


def trees_of(left: np.ndarray, right: np.ndarray, lengths: np.ndarray) -> ForestTrees:
    """One chain's tree; left, right (T-1,) children of the internal nodes; lengths (N,) or (K, N)."""
    t = Topology.build(left, right)
    order = np.arange(len(t.left))[None]
    own = np.array(np.atleast_2d(lengths))[None]
    return ForestTrees(t.left[None].copy(), t.right[None].copy(), t.parent[None].copy(), order, own)


class CellEvaluator:
    """What the table asks of an engine (pruning/interface.py: Evaluator), of one cell."""

    name = "cells"

    def __init__(self, problem: Problem) -> None:
        self._problem, self._forest = problem, None
        self._model: SiteModel | None = None
        self._topology = self._proposed = (problem.left, problem.right)

    def log_likelihood(self, lengths: np.ndarray, model: SiteModel) -> float:
        self._forest = self._forest or Forest([part_of(self._problem, model)], 1, hangs=False)
        self._forest.propose_model(0, 0, model)
        return float(self._forest.from_scratch(trees_of(*self._topology, lengths))[0][0, 0])

    def site_log_likelihoods(self) -> np.ndarray:
        return self._forest.cells[0][0].site_log

    def gradient(self, lengths: np.ndarray, model: SiteModel, parameters: bool = False) -> EngineGradient:
        self.log_likelihood(lengths, model)
        trees = trees_of(*self._topology, lengths)
        values, branches = self._forest.from_scratch(trees, gradient=True, parameters=parameters)
        by_length = branches[0] if np.ndim(lengths) > 1 else branches[0, 0]
        site_model = self._forest.site_model_gradient(0, 0) if parameters else None
        return EngineGradient(float(values[0, 0]), by_length, site_model)

    def propose(self, lengths, changed, model=None, left=None, right=None) -> float:
        self._proposed = self._topology if left is None else (left, right)
        if model is not None:
            self._forest.propose_model(0, 0, model)
        return float(self._forest.evaluate(trees_of(*self._proposed, lengths))[0, 0])

    def accept(self) -> None:
        self._forest.settle()
        self._topology = self._proposed

    def reject(self) -> None:
        self._forest.settle(np.array([False]))


class ChainsOnDevice:
    """Two chains of a GpuForest; the first is the table's, and the second has its tree with longer branches.
    Nodes of the forest keep their numbers, whatever a proposal calls them."""

    name = "gpu chains"

    def __init__(self, problem: Problem) -> None:
        self._problem, self._forest = problem, None
        self._topology = Topology.build(problem.left, problem.right)
        self._node = np.arange(len(self._topology.left))
        self._pending = self._topology, self._node

    def log_likelihood(self, lengths: np.ndarray, model: SiteModel) -> float:
        from phloem.pruning.gpu.forest import GpuForest

        if self._forest is None:
            children = [np.stack([side] * 2) for side in (self._problem.left, self._problem.right)]
            n_sets, n_processes = model.n_length_classes, len(model.processes)
            self._forest = GpuForest(self._problem, *children, n_sets=n_sets, n_processes=n_processes)
        own = np.empty_like(lengths)
        own[..., self._node] = lengths
        return float(self._forest.start(np.stack([own, own * 1.5]), [model] * 2)[0])

    def site_log_likelihoods(self) -> np.ndarray:
        return self._forest.site_log_likelihoods(0)

    def gradient(self, lengths: np.ndarray, model: SiteModel, parameters: bool = False) -> EngineGradient:
        value = self.log_likelihood(lengths, model)
        found = self._forest.gradient(np.array([True, parameters]), parameters)[0][:, self._node]
        site_model = self._forest.site_model_gradient(0) if parameters else None
        return EngineGradient(value, found.reshape(np.shape(lengths)), site_model)

    def propose(self, lengths, changed, model=None, left=None, right=None) -> float:
        forest, node, other = self._forest, self._node, np.isin(self._node, changed)
        topology = self._topology
        if left is not None:
            match = match_clades(topology, left, right)
            topology, node, other = match.topology, node[match.old_node], np.ones(len(node), bool)
            for x in match.moved:
                forest.set_children(0, node[x], node[topology.left[x]], node[topology.right[x]])
        for x in np.flatnonzero(other[:-1]):
            forest.set_branch(0, node[x], lengths[..., x])
            forest.set_branch(1, x, 0.3)
        if model is not None:
            forest.set_model(0, model)
        self._pending = topology, node
        return float(forest.evaluate()[0])

    def accept(self) -> None:
        self._forest.settle(np.array([True, False]))
        self._topology, self._node = self._pending

    def reject(self) -> None:
        self._forest.settle(np.array([False, True]))
