"""Maximum likelihood of branch lengths and model parameters on a fixed tree, by the gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from phloem.errors import InputError, ModelError, NumericalError
from phloem.inference.ml.coordinates import Coordinates
from phloem.inference.ml.starts import Start, restarts
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.parameter import ParameterValue
from phloem.tree.tree import Tree

Progress = Callable[[int, float], None]

_FIRST_LENGTHS = 1e-6, 2.0  # the tree's own lengths are moved in here; above, log L hardly feels a branch
_PLAIN_LENGTH = 0.1  # of every branch, where the tree's own lengths are a worse start
_WALL = 1e8  # added to -log L where a trial step leaves the model's domain
_MOST_ROUNDS = 20


@dataclass(frozen=True, eq=False)
class OptimizeResult:
    """The best point found; the likelihood that was given stands there too.

    branch_lengths (B,) aligned with branch_names; parameters: every parameter's value; tree and model_text
    carry them. starting_log_likelihoods: what each start reached. converged: whether the last round gained
    less than the tolerance. largest_derivative: of log L in the free coordinates (coordinates.py).
    n_free: numbers fitted, branch lengths included (the two at the base of a tree count once if the model is
    reversible). aic: 2 n_free - 2 log L. bic: n_free log(sites) - 2 log L.
    """

    log_likelihood: float
    branch_names: tuple[str, ...]
    branch_lengths: np.ndarray
    parameters: dict[str, ParameterValue]
    tree: Tree
    model_text: str
    starting_log_likelihoods: tuple[float, ...]
    n_free: int
    evaluations: int
    converged: bool
    largest_derivative: float
    aic: float
    bic: float


def optimize(
    likelihood: TreeLikelihood, tolerance: float = 1e-4, progress: Progress | None = None
) -> OptimizeResult:
    """Fit every branch length, and every parameter without a value in the model, on the fixed topology.

    SciPy's L-BFGS-B (Byrd et al. 1995) in transformed coordinates, from several starts where the likelihood
    has several peaks, each repeated with fresh curvature until a round gains less than tolerance log units.
    progress is called with the number of evaluations and the log-likelihood.
    """
    if not 0 < tolerance < np.inf:
        raise InputError(f"the tolerance must be a positive number, not {tolerance}", hint="Try 1e-4.")
    search = _Search(likelihood, tolerance, progress)
    runs = []
    lengths = search.first_lengths()
    for start in restarts(likelihood.model.free):
        value, vector, converged = search.run(lengths, start)
        runs.append((value, vector, converged))
        lengths = search.coordinates.unpack(max(runs, key=lambda r: r[0])[1])[0]
    return _result(search, runs)


class _Search:
    """Evaluates and climbs; counts evaluations."""

    def __init__(self, likelihood: TreeLikelihood, tolerance: float, progress: Progress | None) -> None:
        self.likelihood = likelihood
        one_substitution = 1 / likelihood.alignment.n_sites
        self.coordinates = Coordinates(likelihood.model.free, len(likelihood.branch_names), one_substitution)
        self.evaluations = 0
        self._tolerance, self._progress = tolerance, progress
        self._bounds = self.coordinates.bounds()
        self._last = -np.inf

    def first_lengths(self) -> np.ndarray:
        """The tree's branch lengths, or equal ones that fit better: a tree may have none, or be in years."""
        own = np.clip(self.likelihood.branch_lengths, *_FIRST_LENGTHS)
        values = self.likelihood.model.start_values()
        candidates = [own, np.full_like(own, _PLAIN_LENGTH)]
        return min(candidates, key=lambda lengths: self.objective(self.coordinates.pack(lengths, values))[0])

    def run(self, lengths: np.ndarray, start: Start) -> tuple[float, np.ndarray, bool]:
        """Climb from one start: (log-likelihood, vector, whether the last round gained almost nothing)."""
        likelihood = self.likelihood
        values = likelihood.model.start_values() | start
        vector = self.coordinates.pack(lengths, values)
        value = -self.objective(vector)[0]
        for _ in range(_MOST_ROUNDS):
            found = minimize(
                self.objective,
                vector,
                jac=True,
                method="L-BFGS-B",
                bounds=self._bounds,
                options={"maxcor": 30, "maxiter": 1000, "maxfun": 5000, "ftol": 1e-12, "gtol": 1e-5},
            )
            gain, value, vector = -found.fun - value, -float(found.fun), found.x
            if gain < self._tolerance:
                return value, vector, True
        return value, vector, False

    def objective(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """-log L and its derivative; a high wall where the model cannot be evaluated."""
        lengths, values = self.coordinates.unpack(vector)
        self.evaluations += 1
        try:
            self.likelihood.set(branch_lengths=lengths, parameters=values)
            gradient = self.likelihood.gradient(parameters=bool(self.coordinates.parameters))
        except (NumericalError, ModelError):
            if not np.isfinite(self._last):
                raise
            return -self._last + _WALL, np.zeros_like(vector)
        self._last = gradient.log_likelihood
        if self._progress is not None:
            self._progress(self.evaluations, gradient.log_likelihood)
        return -gradient.log_likelihood, -self.coordinates.derivative(vector, gradient)


def _result(search: _Search, runs) -> OptimizeResult:
    likelihood = search.likelihood
    _, vector, converged = max(runs, key=lambda run: run[0])
    slope = search.objective(vector)[1]
    likelihood.set(parameters=_mean_rate_one(likelihood.parameters))
    value, n_free = likelihood.log_likelihood(), _free_numbers(likelihood, len(vector))
    return OptimizeResult(
        log_likelihood=value,
        branch_names=likelihood.branch_names,
        branch_lengths=likelihood.branch_lengths,
        parameters=likelihood.parameters,
        tree=likelihood.tree,
        model_text=likelihood.model_text,
        starting_log_likelihoods=tuple(run[0] for run in runs),
        n_free=n_free,
        evaluations=search.evaluations,
        converged=converged,
        largest_derivative=float(np.abs(slope).max(initial=0.0)),
        aic=2 * n_free - 2 * value,
        bic=n_free * float(np.log(likelihood.alignment.n_sites)) - 2 * value,
    )


def _free_numbers(likelihood: TreeLikelihood, n_coordinates: int) -> int:
    """Coordinates less the redundant: one a simplex, one of relative rates, one of two basal branches."""
    tree = likelihood.tree
    one_basal_branch = likelihood.root_is_free and len(tree.children(tree.n_nodes - 1)) == 2
    redundant = sum(p.kind == "simplex" or p.name == "rates" for p in likelihood.model.free)
    return n_coordinates - redundant - one_basal_branch


def _mean_rate_one(values: dict[str, ParameterValue]) -> dict[str, ParameterValue]:
    """Free rates as they act, with weighted mean 1, in ascending order."""
    if "rates" not in values or "weights" not in values:
        return {}
    weights, rates = np.asarray(values["weights"]), np.asarray(values["rates"])
    order = np.argsort(rates)
    return {"rates": (rates / (weights @ rates))[order], "weights": weights[order]}
