"""What a model is to the kernels, and the named parameters it is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from phloem.errors import ModelError

# Named parameters of a model: their kind, their elements and what values they may take.


ParameterKind = Literal["positive", "unit", "simplex", "real", "interval", "choice"]
ParameterValue = float | np.ndarray
Values = Mapping[str, ParameterValue]

SIMPLEX_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class Parameter:
    """One parameter of a model: a number, or a vector when it has elements.

    kind: positive (≥ 0), unit (0 ≤ x < 1), simplex (entries ≥ 0 that sum to 1), real, interval (between
    two numbers that its model knows), or choice (the number of one of upper + 1 models).
    elements: the name of every entry of a vector; () for a number. aliases: other names the grammar accepts.
    value: the fixed value, or None where the parameter is free (optimised or sampled).
    start: where a free parameter starts; lower, upper: bounds of an optimiser (of every entry).
    reference: of rates that are multiples of a rate of 1, the name of that rate; those of one model with the
    same reference are, together with it, known up to a factor. relative: only the ratios among the entries
    matter. Both say what a prior can be on: shares that sum to 1. counted: the value was counted in the data,
    so a comparison of models counts it among the free numbers. tied: a rate that may be equal to others, and
    a sampler averages over which ones are.
    """

    name: str
    kind: ParameterKind
    elements: tuple[str, ...] = ()
    value: ParameterValue | None = None
    start: ParameterValue = 1.0
    lower: float = 1e-4
    upper: float = 1e4
    aliases: tuple[str, ...] = ()
    reference: str | None = None
    relative: bool = False
    counted: bool = False
    tied: bool = False

    @property
    def size(self) -> int:
        return len(self.elements) or 1

    @property
    def is_free(self) -> bool:
        return self.value is None

    @property
    def averaged(self) -> bool:
        """Whether it is free and stands for many models, over which only a sampler averages."""
        return self.is_free and (self.tied or self.kind == "choice")

    def checked(self, value: ParameterValue) -> ParameterValue:
        """The value as float or float64 array of the right shape; ModelError where it is not allowed.

        A simplex whose entries sum to 1 within 1e-3 (printed frequencies are rounded) is divided by its sum.
        """
        try:
            array = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            raise ModelError(
                f"parameter '{self.name}' is no number: {value!r}", hint="Give a number."
            ) from None
        shape = (len(self.elements),) if self.elements else ()
        if array.shape != shape:
            raise ModelError(f"parameter '{self.name}' needs {self.size} value(s), got {array.size}")
        if not np.isfinite(array).all():
            raise ModelError(
                f"parameter '{self.name}' is not a finite number: {array}", hint="Give a number."
            )
        if self.kind not in ("real", "interval") and (array < 0).any():
            raise ModelError(f"parameter '{self.name}' must not be negative: {array}", hint="Give 0 or more.")
        if self.kind == "unit" and (array >= 1).any():
            raise ModelError(
                f"parameter '{self.name}' must be at least 0 and below 1: {array}", hint="Give a proportion."
            )
        if self.kind == "choice" and (array != np.floor(array) or array > self.upper):
            raise ModelError(
                f"parameter '{self.name}' is the number of a model: {array}",
                hint=f"Give a whole number from 0 to {self.upper:.0f}.",
            )
        if self.kind == "simplex":
            array = self._normalised(array)
        return array if self.elements else float(array)

    def _normalised(self, array: np.ndarray) -> np.ndarray:
        total = array.sum()
        if abs(total - 1) > SIMPLEX_TOLERANCE:
            raise ModelError(
                f"the entries of '{self.name}' sum to {total:.6g}, not to 1",
                hint=f"Give {self.size} values ({', '.join(self.elements)}) that sum to 1.",
            )
        return array if abs(total - 1) < 1e-14 * self.size else array / total


def simplex(name: str, elements: tuple[str, ...], start: np.ndarray | None = None) -> Parameter:
    """A free simplex parameter that starts at equal entries unless told otherwise."""
    if start is None:
        start = np.full(len(elements), 1.0 / len(elements))
    return Parameter(name, "simplex", elements, None, start, 1e-6, 1.0)


def softmax_gradient(x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """d/dz of f(softmax(z)) where x = softmax(z) and gradient = df/dx, entries taken as independent.

    d/dz_i = x_i (g_i - Σ_j x_j g_j). Shapes (..., K) → (..., K).
    """
    return x * (gradient - (x * gradient).sum(-1, keepdims=True))


def as_number(x: np.ndarray) -> ParameterValue:
    """A float, or, of many sets of values at once, the array."""
    return float(x) if x.ndim == 0 else x


# What a kernel needs to know of a model: numbers only. Of many models at once (together.py), arrays have a
# first axis more.


@dataclass(frozen=True)
class EigenSystem:
    """Q = right · diag(values) · left; real for reversible models, complex where Q needs it.

    values: (S,), right: (S, S), left: (S, S) = inverse of right.
    """

    values: np.ndarray
    right: np.ndarray
    left: np.ndarray


@dataclass(frozen=True)
class ProcessNumbers:
    """One substitution process; a mixture has several.

    rate_matrix: (S, S), rows sum to 0. Its scale is the model's affair: the mean rate over all sites is one
    expected substitution per unit of branch length unless the model says otherwise (docs/models.md).
    frequencies: (S,) stationary frequencies of rate_matrix.
    root_frequencies: (S,) state distribution at the root (= frequencies unless the model says otherwise).
    eigen: its eigensystem, or None where rate_matrix is (nearly) defective: then use the matrix exponential.
    """

    rate_matrix: np.ndarray
    frequencies: np.ndarray
    root_frequencies: np.ndarray
    eigen: EigenSystem | None

    @property
    def real_eigen(self) -> EigenSystem | None:
        """The eigensystem if it is real, which compiled kernels want; the others exponentiate in NumPy."""
        return None if self.eigen is None or np.iscomplexobj(self.eigen.values) else self.eigen


def is_reversible(process: ProcessNumbers) -> np.ndarray:
    """(...) whether the position of the root is free: π_i Q_ij = π_j Q_ji, and the root has frequencies π."""
    flow = process.frequencies[..., None] * process.rate_matrix
    apart = np.abs(flow - flow.swapaxes(-2, -1)).max((-2, -1))
    same_root = np.abs(process.root_frequencies - process.frequencies).max(-1) <= 1e-9
    return (apart <= 1e-9 * np.abs(flow).max((-2, -1))) & same_root


@dataclass(frozen=True)
class SiteModel:
    """A model with every parameter set, for one evaluation of the likelihood.

    A site is of category c with probability weights[c] and then evolves by the process process[c] along
    rates[c] times the branch lengths of class length_class[c], or it is invariable:
    L = Σ_c weights[c] L(processes[process[c]], rates[c] · lengths[length_class[c]])
        + invariant · Σ_s invariant_frequencies[s] [all tips allow s].

    That is of a site alone. Under neighbours (C, C) the categories of the sites are a Markov chain along the
    sequence that starts from weights, its stationary distribution: neighbours[a, b] is the probability of b
    after a (pruning/reference/neighbours.py).

    processes: one or more over the same S states. process: (C,) int64 index into them.
    rates, weights: (C,) of the categories whose rate is not 0. length_class: (C,) int64, the set of branch
    lengths that a category uses: 0 for all but under GHOST.
    invariant: weight of the class of invariable sites; weights.sum() + invariant = 1.
    invariant_frequencies: (S,) state distribution of invariable sites.
    """

    processes: tuple[ProcessNumbers, ...]
    process: np.ndarray
    rates: np.ndarray
    weights: np.ndarray
    length_class: np.ndarray
    invariant: float
    invariant_frequencies: np.ndarray
    neighbours: np.ndarray | None = None

    @staticmethod
    def of_one(
        process: ProcessNumbers, rates: np.ndarray, weights: np.ndarray, invariant: float = 0.0
    ) -> SiteModel:
        """One process and one set of branch lengths in every category."""
        zeros = np.zeros(len(rates), np.int64)
        return SiteModel((process,), zeros, rates, weights, zeros, invariant, process.root_frequencies)

    @property
    def n_categories(self) -> int:
        return len(self.rates)

    @cached_property
    def n_length_classes(self) -> int:
        """K: branch lengths are (N,) where it is 1, else (K, N)."""
        return int(self.length_class.max()) + 1

    @property
    def single(self) -> ProcessNumbers:
        """The process of a model that has one, and one set of branch lengths; ModelError where it has more.

        For code that can only have one.
        """
        if len(self.processes) > 1 or self.n_length_classes > 1:
            raise ModelError(
                f"a mixture of {len(self.processes)} processes over {self.n_length_classes} set(s) of branch "
                "lengths is given where one process is needed",
                hint="Choose a model that is no mixture here.",
            )
        return self.processes[0]

    @cached_property
    def root_frequencies(self) -> np.ndarray:
        """(C, S) state distribution at the root of every category."""
        return np.stack([p.root_frequencies for p in self.processes])[self.process]

    def by_category(self, lengths: np.ndarray) -> np.ndarray:
        """(B,) or (K, B) branch lengths → (C, B), those that every category uses, without its rate."""
        return np.atleast_2d(lengths)[self.length_class]


@dataclass(frozen=True)
class ProcessGradient:
    """d log-likelihood / d field of ProcessNumbers: rate_matrix (S, S), root_frequencies (S,)."""

    rate_matrix: np.ndarray
    root_frequencies: np.ndarray


@dataclass(frozen=True)
class SiteModelGradient:
    """d log-likelihood / d field of SiteModel, entries taken as independent (no constraint applied).

    processes: one a process. rates, weights: (C,). invariant_frequencies: (S,). neighbours: (C, C), or None.
    """

    processes: tuple[ProcessGradient, ...]
    rates: np.ndarray
    weights: np.ndarray
    invariant: float
    invariant_frequencies: np.ndarray
    neighbours: np.ndarray | None = None
