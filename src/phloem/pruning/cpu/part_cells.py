"""The parts of an alignment on one tree as the cells of a forest of one chain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phloem.model.record import SiteModel
from phloem.pruning.cpu.cell_memory import Part
from phloem.pruning.cpu.cell_records import ForestTrees
from phloem.pruning.cpu.forest import Forest
from phloem.pruning.cpu.model_numbers import has_real_eigen
from phloem.pruning.interface import EngineGradient, Problem
from phloem.pruning.topology import Topology

# Entries (tips × patterns × states × categories) from which on a part is worth several threads of its own.
LARGEST_CELL = 1_000_000


def suits_a_cell(problem: Problem, model: SiteModel) -> bool:
    """Whether a part is evaluated as a cell under this model: double precision, one set of branch lengths,
    sites that are independent, real eigensystems, and not too large for one thread."""
    entries = problem.tip_codes.size * problem.state_sets.shape[1] * problem.n_categories
    plain = problem.precision == "float64" and model.n_length_classes == 1 and problem.order is None
    return plain and entries <= LARGEST_CELL and has_real_eigen(model)


class PartCells:
    """parts: the numbers of those that are cells. Lengths (N,) and models are given for every part there is;
    a model without a real eigensystem leaves its cell as it was, and what it says then is nobody's."""

    def __init__(
        self, problems: Sequence[Problem], models: Sequence[SiteModel], parts: Sequence[int], threads: int
    ) -> None:
        self.parts = tuple(parts)
        own = [_part(problems[i], models[i], row) for row, i in enumerate(parts)]
        self._forest = Forest(own, 1, hangs=False, keeps=False, threads=threads)
        self._topology = Topology.build(problems[parts[0]].left, problems[parts[0]].right)
        self._known: list[SiteModel | None] = [None] * len(parts)

    def log_likelihoods(self, lengths: Sequence[np.ndarray], models: Sequence[SiteModel]) -> np.ndarray:
        """Of the cells, in their order."""
        return self._forest.from_scratch(self._ready(lengths, models))[0][0]

    def gradients(
        self, lengths: Sequence[np.ndarray], models: Sequence[SiteModel], parameters: bool
    ) -> list[EngineGradient]:
        """Of the cells, in their order."""
        trees = self._ready(lengths, models)
        values, by_length = self._forest.from_scratch(trees, gradient=True, parameters=parameters)
        return [
            EngineGradient(value, d, self._forest.site_model_gradient(0, row) if parameters else None)
            for row, (value, d) in enumerate(zip(values[0].tolist(), by_length[0]))
        ]

    def site_log_likelihoods(self, part: int) -> np.ndarray:
        """(P,) of the last evaluation."""
        return self._forest.cells[0][self.parts.index(part)].site_log

    def _ready(self, lengths: Sequence[np.ndarray], models: Sequence[SiteModel]) -> ForestTrees:
        """Models that changed are written; the tree with a row of lengths for every cell."""
        for row, i in enumerate(self.parts):
            if models[i] is not self._known[row] and has_real_eigen(models[i]):
                self._forest.propose_model(0, row, models[i])
                self._known[row] = models[i]
        t, every = self._topology, np.arange(len(self._topology.left))
        rows = np.array([[lengths[i] for i in self.parts]], np.float64)
        return ForestTrees(t.left[None], t.right[None], t.parent[None], every[None], rows)


def _part(problem: Problem, model: SiteModel, row: int) -> Part:
    return Part(
        problem.tip_codes,
        problem.state_sets,
        problem.pattern_weights,
        problem.ascertained,
        model.process,
        model.length_class,
        row,
        problem.repeats,
    )
