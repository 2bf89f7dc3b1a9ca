"""Maximum likelihood of branch lengths and model parameters on a fixed tree, by the gradient."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import overload

import numpy as np
from scipy.optimize import minimize

from phloem.density.parameterisation import LENGTHS, PARTITION_RATES, Parameterisation, parameterise
from phloem.density.space import Block
from phloem.density.target import Target
from phloem.errors import InputError, ModelError, NumericalError
from phloem.hardware.blas import one_blas_thread
from phloem.inference.ml.criteria import criteria, free_numbers
from phloem.inference.ml.optimum import (
    OptimizeResult,
    PartitionedOptimum,
    Run,
    best_run,
    fields_of_optimum,
    result_of,
)
from phloem.inference.ml.starts import Start, restarts
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.term import BlockLikelihood, LikelihoodTerm
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.model import Model
from phloem.model.site_rates import gamma_rates

Progress = Callable[[int, float], None]

SHORTEST, LONGEST = 1e-8, 100.0  # expected substitutions per site
_FIRST_LENGTHS = 1e-6, 2.0  # the tree's own lengths are moved in here; above, log L hardly feels a branch
_PLAIN_LENGTH = 0.1  # of every branch, where the tree's own lengths are a worse start
_WALL = 1e8  # added to -log L where a trial step leaves the model's domain
_MOST_ROUNDS = 20
_FIRST_STEPS = 15
_SHARE = 10.0  # of how many numbers the changes in all the data tell, as steps are scaled
_ROUNDING = 1e-12  # relative: so near to its bound a number is at it


@overload
def optimize(
    likelihood: TreeLikelihood, tolerance: float = 1e-4, progress: Progress | None = None
) -> OptimizeResult: ...
@overload
def optimize(
    likelihood: PartitionedLikelihood, tolerance: float = 1e-4, progress: Progress | None = None
) -> PartitionedOptimum: ...
@one_blas_thread()
def optimize(likelihood, tolerance=1e-4, progress=None):
    """Fit every branch length, and every parameter without a value in the model, on the fixed topology.

    SciPy's L-BFGS-B (Byrd et al. 1995) in unconstrained coordinates, from several starts where the likelihood
    has several peaks, each repeated with fresh curvature until a round gains less than tolerance log units.
    Parts may prefer different starts, so a last climb begins where each of several parts fitted best.
    All parts of a partitioned likelihood are fitted together, with their rates if lengths are proportional;
    parts that share nothing are fitted one after another.
    progress is called with the number of evaluations and the log-likelihood.
    """
    if not 0 < tolerance < np.inf:
        raise InputError(f"the tolerance must be a positive number, not {tolerance}", hint="Try 1e-4.")
    if isinstance(likelihood, PartitionedLikelihood) and likelihood.parts_are_independent:
        best = _one_after_another(likelihood, tolerance, progress)
    else:
        best = _together(likelihood, tolerance, progress)
    return result_of(likelihood, best)


@overload
def refine(
    likelihood: TreeLikelihood,
    starts: Sequence[Start] = ({},),
    tolerance: float = 1e-4,
    most: int = 1000,
    least_gain: float = 0.0,
) -> OptimizeResult: ...
@overload
def refine(
    likelihood: PartitionedLikelihood,
    starts: Sequence[Sequence[Start]],
    tolerance: float = 1e-4,
    most: int = 1000,
    least_gain: float = 0.0,
) -> PartitionedOptimum: ...
def refine(likelihood, starts=({},), tolerance=1e-4, most=1000, least_gain=0.0):
    """optimize from where the likelihood stands, its parameters replaced by those of every start, of parts by
    those of every part: for a tree on the way, whose neighbours were fitted. Rounds of a climb are so many
    steps at most, end at a step that gains less than least_gain, and are repeated until one gains less than
    the tolerance."""
    search = _Search(likelihood, tolerance, None)
    by_part = [(s,) if isinstance(likelihood, TreeLikelihood) else s for s in starts]
    runs = [search.climb(search.coordinates(search.standing(s)), most, least_gain) for s in by_part]
    return result_of(likelihood, _settle(search, runs))


def _together(likelihood: BlockLikelihood, tolerance: float, progress: Progress | None) -> dict:
    """The fields of Optimum; puts the likelihood there."""
    search = _Search(likelihood, tolerance, progress)
    runs: list[Run] = []
    lengths = search.first_lengths()
    for start in starts_of_parts([part.model for part in likelihood.part_models]):
        runs.append(search.run(lengths, start, fitted=bool(runs)))
        lengths = search.lengths_of(best_run(runs).vector)
    if len(runs) > 1 and len(likelihood.part_models) > 1:
        runs.append(search.climb(search.best_of_parts(runs)))
    return _settle(search, runs)


def refine_each(
    likelihood: PartitionedLikelihood,
    starts: Sequence[Mapping[str, Start]],
    tolerance: float = 1e-4,
    most: int = 1000,
) -> PartitionedOptimum:
    """refine of parts that share nothing, one after another. starts: by name of the part."""

    def fit(alone: TreeLikelihood, name: str, _: list[OptimizeResult]) -> OptimizeResult:
        return refine(alone, [s.get(name, {}) for s in starts], tolerance, most)

    return result_of(likelihood, _each(likelihood, fit))


def _one_after_another(
    likelihood: PartitionedLikelihood, tolerance: float, progress: Progress | None
) -> dict:
    """The fields of Optimum where no two parts share a number; puts the likelihood there."""

    def fit(alone: TreeLikelihood, _: str, fits: list[OptimizeResult]) -> OptimizeResult:
        done = sum(f.evaluations for f in fits), sum(f.log_likelihood for f in fits)
        return optimize(alone, tolerance, None if progress is None else _after(progress, *done))

    return _each(likelihood, fit)


def _each(
    likelihood: PartitionedLikelihood,
    fit: Callable[[TreeLikelihood, str, list[OptimizeResult]], OptimizeResult],
) -> dict:
    """A part stops when it has arrived: fitted together, all would be evaluated until the last one has."""
    fits: list[OptimizeResult] = []
    for part in likelihood.part_models:
        fits.append(fit(likelihood.alone(part.name), part.name, fits))
        likelihood.set(
            branch_lengths={part.name: fits[-1].branch_lengths / part.site_length}
            if len(likelihood.parts) > 1
            else fits[-1].branch_lengths,
            parameters={part.name: fits[-1].parameters},
        )
    n_sites = sum(part.n_sites for part in likelihood.part_models)
    value, n_free = likelihood.log_likelihood(), sum(f.n_free for f in fits)
    return {
        "log_likelihood": value,
        "starting_log_likelihoods": (value,),
        "n_free": n_free,
        "evaluations": sum(f.evaluations for f in fits),
        "converged": all(f.converged for f in fits),
        "largest_derivative": max(f.largest_derivative for f in fits),
        **criteria(value, n_free, n_sites)._asdict(),
    }


def _after(progress: Progress, evaluations: int, log_likelihood: float) -> Progress:
    return lambda n, value: progress(evaluations + n, log_likelihood + value)


def fit_parameterisation(likelihood: BlockLikelihood) -> Parameterisation:
    """The blocks of a fit. A length's coordinate is linear below one change in all the data."""
    lengths = likelihood.branch_lengths
    one_set = lengths if likelihood.linkage.lengths != "unlinked" else np.atleast_2d(lengths)[0]
    n_sites = sum(part.n_sites for part in likelihood.part_models)
    block = Block(LENGTHS, "positive", one_set.ravel(), SHORTEST, LONGEST, linear_below=1.0 / n_sites)
    return parameterise(likelihood.part_models, block, likelihood.linkage)


def starts_of_parts(models: Sequence[Model]) -> list[list[Start]]:
    """For every run, where the parameters of every part begin that do not begin at their own start."""
    by_part = [restarts(model.free) for model in models]
    return [[own[k % len(own)] for own in by_part] for k in range(max(map(len, by_part)))]


class _Search:
    """Evaluates and climbs; counts evaluations."""

    def __init__(self, likelihood: BlockLikelihood, tolerance: float, progress: Progress | None) -> None:
        self.likelihood = likelihood
        self.parameterisation = fit_parameterisation(likelihood)
        self.space = self.parameterisation.free_space
        self.target = Target(self.space, (LikelihoodTerm(likelihood, self.parameterisation),))
        self.evaluations = 0
        self._tolerance, self._progress = tolerance, progress
        self._bounds = self.space.coordinate_bounds()
        self._last = -np.inf

    def coordinates(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """(m,) inside the bounds."""
        x = self.space.inside(self.space.pack({b.name: values[b.name] for b in self.space.blocks}))
        return np.clip(self.space.to_coordinates(x), *self._bounds.T)

    def standing(self, starts: Sequence[Start]) -> dict[str, np.ndarray]:
        """The values of all blocks where the likelihood stands, but for the parameters of parts in starts."""
        likelihood, names = self.likelihood, self.parameterisation
        if isinstance(likelihood, TreeLikelihood):
            return names.block_values([likelihood.parameters | starts[0]]) | {
                LENGTHS: likelihood.branch_lengths.ravel()
            }
        assert isinstance(likelihood, PartitionedLikelihood)
        values = names.block_values([v | s for v, s in zip(likelihood.parameters.values(), starts)])
        by_part = np.broadcast_to(
            likelihood.branch_lengths, (len(names.lengths), len(values[names.lengths[0]]))
        )
        values |= dict(zip(names.lengths, by_part))
        for entry, rate in zip(names.rates, likelihood.partition_rates):
            if entry >= 0:
                values[PARTITION_RATES][entry] = rate * names.rate_shares[entry]
        return values

    def natural(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """By block; a coordinate at its bound is a number at its bound, not one beside it by rounding."""
        x = self.space.from_coordinates(vector)
        for bound in self.space.bounds().T:
            near = np.abs(x - bound) <= _ROUNDING * np.abs(bound)
            x = np.where(near & np.isfinite(bound), bound, x)
        return self.space.unpack(x)

    def lengths_of(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """Branch lengths by block."""
        values = self.space.unpack(self.space.from_coordinates(vector))
        return {name: values[name] for name in dict.fromkeys(self.parameterisation.lengths)}

    def first_lengths(self) -> dict[str, np.ndarray]:
        """The tree's branch lengths, or equal ones that fit better: a tree may have none, or be in years.

        Under +H equal sets of lengths are spread apart: classes that start alike would stay alike.
        """
        values = self.parameterisation.block_values([])
        names, now = self.parameterisation.lengths, self.likelihood.branch_lengths
        spread, shared = np.ones_like(now), len(set(names)) == 1
        if shared and now.ndim == 2 and (now == now[0]).all():
            spread = spread * gamma_rates(1.0, len(now), "mean")[:, None]
        rows = (1, -1) if shared else now.shape  # of parts that share a set: the same one again
        own = dict(zip(names, np.clip(now * spread, *_FIRST_LENGTHS).reshape(rows)))
        plain = dict(zip(names, (_PLAIN_LENGTH * spread).reshape(rows)))
        return min((own, plain), key=lambda lengths: self.objective(self.coordinates(values | lengths))[0])

    def run(self, lengths: Mapping[str, np.ndarray], starts: list[Start], fitted: bool) -> Run:
        """Climb from one start. Where its lengths may be anything the first steps do not go by them."""
        vector = self.coordinates(self.parameterisation.block_values(starts) | dict(lengths))
        if not fitted:
            vector = self._round(self._last, vector, np.ones(len(vector)), _FIRST_STEPS)[1]
        return self.climb(vector)

    def best_of_parts(self, runs: list[Run]) -> np.ndarray:
        """Every block from the run in which the parts that read it fit best, the others from the best run."""
        arrived, by_part = [], []
        for run in runs:
            self.objective(run.vector)
            arrived.append(self.space.unpack(self.space.from_coordinates(run.vector)))
            by_part.append(self.likelihood.part_gradients(False)[0])
        values = dict(arrived[max(range(len(runs)), key=lambda k: runs[k].log_likelihood)])
        for block in values.keys() - set(self.parameterisation.lengths):
            readers = [any(r.block == block for r in own) for own in self.parameterisation.readings]
            if any(readers):
                best = max(range(len(runs)), key=lambda k: by_part[k][readers].sum())
                values[block] = arrived[best][block]
        return self.coordinates(values)

    def climb(self, vector: np.ndarray, most: int = 1000, least_gain: float = 0.0) -> Run:
        """To the top of the hill that the vector stands on, or towards it: in rounds of L-BFGS-B until one
        gains less than the tolerance, which end at a step that gains less than least_gain; so many steps at
        most."""
        value = -self.objective(vector)[0]
        for _ in range(_MOST_ROUNDS):
            before = value
            value, vector, steps = self._round(value, vector, self._changes(vector) ** 0.5, most, least_gain)
            if value - before < self._tolerance:
                return Run(value, vector, True)
            if steps >= most:
                break
        return Run(value, vector, False)

    def _round(
        self, value: float, vector: np.ndarray, scale: np.ndarray, most: int, least_gain: float = 0.0
    ) -> tuple[float, np.ndarray, int]:
        """The value, where, and the number of steps. scale: (m,), makes coordinates alike in curvature."""
        found = minimize(
            self._scaled_objective,
            vector * scale,
            args=(scale,),
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds * scale[:, None],
            options={
                "maxcor": 30,
                "maxiter": most,
                "maxfun": 5000,
                "ftol": max(least_gain / max(abs(value), 1.0), 1e-12),
                "gtol": 1e-5,
            },
        )
        return -float(found.fun), found.x / scale, found.nit

    def _changes(self, vector: np.ndarray) -> np.ndarray:
        """(m,) about how many changes in the data tell of a coordinate, which is its curvature: of a length's
        logarithm those on the branch, of other numbers a share of all in the parts that have them. Steps by
        it halve the evaluations; of a hundred parts, without the parts' shares, a thousand were too few."""
        values = self.space.unpack(self.space.from_coordinates(vector))
        lengths, sites = set(self.parameterisation.lengths), self._sites_of_blocks()
        on_branches = {name: np.maximum(sites[name] * values[name], 1.0) for name in lengths}
        a_site = sum(on_branches[name].sum() / sites[name] for name in lengths) / (len(lengths) * _SHARE)
        return np.concatenate(
            [
                on_branches.get(b.name, np.full(b.n_coordinates, max(a_site * sites[b.name], 1.0)))
                for b in self.space.blocks
            ]
        )

    def _sites_of_blocks(self) -> dict[str, float]:
        """Of all parts that read a block; of the rates of parts those of a mean part."""
        names, sites = self.parameterisation, dict[str, float]()
        for part, lengths, own in zip(self.likelihood.part_models, names.lengths, names.readings):
            for block in {lengths, *(reading.block for reading in own)}:
                sites[block] = sites.get(block, 0.0) + part.n_sites
        total = sum(part.n_sites for part in self.likelihood.part_models)
        return sites | {PARTITION_RATES: total / max(len(names.rate_shares), 1)}

    def projected_slope(self, vector: np.ndarray) -> np.ndarray:
        """How far a step down the derivative of -log L leads inside the bounds: 0 at a bounded optimum."""
        return vector - np.clip(vector - self.objective(vector)[1], *self._bounds.T)

    def _scaled_objective(self, z: np.ndarray, scale: np.ndarray) -> tuple[float, np.ndarray]:
        minus, slope = self.objective(z / scale)
        return minus, slope / scale

    def objective(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """-log L and its derivative; a high wall where the model cannot be evaluated."""
        self.evaluations += 1
        try:
            value, slope = self.target.at(vector, jacobian=False)
        except (NumericalError, ModelError):
            if not np.isfinite(self._last):
                raise
            return -self._last + _WALL, np.zeros_like(vector)
        self._last = value
        if self._progress is not None:
            self._progress(self.evaluations, value)
        return -value, -slope


def _settle(search: _Search, runs: list[Run]) -> dict:
    """The fields of Optimum; puts the likelihood there."""
    likelihood, vector = search.likelihood, best_run(runs).vector
    slope = search.projected_slope(vector)
    likelihood.place(search.parameterisation, search.natural(vector))
    n_free = free_numbers(likelihood, search.parameterisation)
    return fields_of_optimum(likelihood, runs, n_free, search.evaluations, slope)
