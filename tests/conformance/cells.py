"""Cells, of the sampler and of partitions, as an engine of the table: a forest of one chain and one part."""

from __future__ import annotations

import numpy as np

from phloem.model.record import SiteModel
from phloem.pruning.cpu.cell_memory import Part
from phloem.pruning.cpu.cell_records import ForestTrees
from phloem.pruning.cpu.forest import Forest
from phloem.pruning.interface import EngineGradient, Problem
from phloem.pruning.topology import Topology


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
