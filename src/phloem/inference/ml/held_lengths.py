"""A fit that keeps a tree's branch lengths, as they are or all times one factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import minimize

from phloem.density.parameterisation import LENGTHS, Parameterisation, parameterise
from phloem.density.parts import LengthLinkage
from phloem.density.space import Block, Space
from phloem.errors import InputError, ModelError, NumericalError
from phloem.hardware.blas import one_blas_thread
from phloem.inference.ml.optimize import Progress, starts_of_parts
from phloem.inference.ml.optimum import (
    OptimizeResult,
    PartitionedOptimum,
    Run,
    best_run,
    fields_of_optimum,
    result_of,
)
from phloem.inference.ml.starts import Start
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.term import BlockLikelihood
from phloem.likelihood.tree_likelihood import TreeLikelihood

SCALE = "scale"
_LEAST, _MOST = 1e-6, 1e6  # of the factor
_WALL, _MOST_ROUNDS = 1e8, 20


def require_one_set(linkage: LengthLinkage | None, n_length_classes: int) -> None:
    """InputError where one tree's lengths are not all that there are."""
    if linkage == "unlinked" or n_length_classes > 1:
        what = "parts have lengths of their own" if linkage == "unlinked" else "the model has several sets"
        raise InputError(
            f"--lengths keeps those of one tree, and {what}",
            hint="Say --lengths fitted, or --linkage proportional.",
        )


@one_blas_thread()
def fit_at_lengths(
    likelihood: TreeLikelihood | PartitionedLikelihood,
    scaled: bool,
    progress: Progress | None = None,
    tolerance: float = 1e-4,
) -> OptimizeResult | PartitionedOptimum:
    """Every parameter without a value, and rates of parts, at the lengths where the likelihood stands, or at
    a multiple of them that is fitted too; by L-BFGS-B from the same starts as optimize.optimize. Free numbers
    are those that are fitted or counted in the data: no length is, the factor is one."""
    search = _AtLengths(likelihood, scaled, progress, tolerance)
    runs = [search.climb(start) for start in starts_of_parts([p.model for p in likelihood.part_models])]
    slope = search.settle(best_run(runs).vector)
    return result_of(
        likelihood, fields_of_optimum(likelihood, runs, search.n_free, search.evaluations, slope)
    )


class _AtLengths:
    """The free numbers as coordinates, the factor last if there is one."""

    def __init__(
        self, likelihood: BlockLikelihood, scaled: bool, progress: Progress | None, tolerance: float
    ) -> None:
        self._likelihood, self._progress, self._tolerance = likelihood, progress, tolerance
        self._given = np.atleast_2d(likelihood.branch_lengths)[0].copy()
        longest = float(self._given.max(initial=1.0))
        block = Block(LENGTHS, "positive", self._given, 1e-300, 2.0 * max(longest, 1.0))
        names = parameterise(likelihood.part_models, block, likelihood.linkage)
        self._names: Parameterisation = names
        factor = (Block(SCALE, "positive", np.ones(1), _LEAST, _MOST),) if scaled else ()
        self._space = Space((*(b for b in names.free_space.blocks if b.name not in names.lengths), *factor))
        self._bounds = self._space.coordinate_bounds()
        self.evaluations, self._last = 0, -np.inf

    @property
    def n_free(self) -> int:
        """Fitted, and counted in the data."""
        names = self._names
        read = {r.block for readings in names.readings for r in readings if r.parameter.counted}
        return self._space.n_coordinates + sum(names.space.block(name).n_coordinates for name in read)

    def climb(self, starts: Sequence[Start]) -> Run:
        """In rounds of fresh curvature, until one gains less than the tolerance."""
        values = self._names.block_values(starts) | {SCALE: np.ones(1)}
        x = self._space.inside(self._space.pack({b.name: values[b.name] for b in self._space.blocks}))
        vector = np.clip(self._space.to_coordinates(x), *self._bounds.T)
        value = -self._objective(vector)[0]
        for _ in range(_MOST_ROUNDS if len(vector) else 0):
            before = value
            options = {"maxcor": 30, "maxiter": 1000, "maxfun": 5000, "ftol": 1e-12, "gtol": 1e-5}
            found = minimize(
                self._objective, vector, jac=True, method="L-BFGS-B", bounds=self._bounds, options=options
            )
            value, vector = -float(found.fun), found.x
            if value - before < self._tolerance:
                return Run(value, vector, True)
        return Run(value, vector, not len(vector))

    def settle(self, vector: np.ndarray) -> np.ndarray:
        """Put the likelihood there; the slope's way inside the bounds."""
        slope = self._objective(vector)[1]
        return vector - np.clip(vector - slope, *self._bounds.T)

    def _values(self, vector: np.ndarray) -> tuple[np.ndarray, Mapping[str, np.ndarray]]:
        x = self._space.from_coordinates(vector)
        own = self._space.unpack(x)
        factor = float(own[SCALE][0]) if SCALE in self._space else 1.0
        lengths = {name: factor * self._given for name in self._names.lengths}
        free = {name: value for name, value in own.items() if name != SCALE}
        return x, lengths | free

    def _objective(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """-log L and its derivative; a high wall where the model cannot be evaluated."""
        self.evaluations += 1
        x, values = self._values(vector)
        try:
            self._likelihood.place(self._names, values)
            by_part, gradients = self._likelihood.part_gradients(bool(len(vector)))
        except (NumericalError, ModelError):
            if not np.isfinite(self._last):
                raise
            return -self._last + _WALL, np.zeros_like(vector)
        self._last = float(by_part.sum())
        if self._progress is not None:
            self._progress(self.evaluations, self._last)
        by_block = self._names.pull_back(values, gradients)
        if SCALE in self._space:  # d/d factor of factor · given
            by_block[SCALE] = np.array([sum(by_block[n] @ self._given for n in set(self._names.lengths))])
        slope = np.concatenate([np.empty(0), *(by_block[b.name] for b in self._space.blocks)])
        return -self._last, -self._space.pull_back(x, slope)
