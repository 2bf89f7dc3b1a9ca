"""What a kernel needs to know of a model: numbers only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class EigenSystem:
    """Q = right · diag(values) · left; real for reversible models, complex where Q needs it.

    values: (S,), right: (S, S), left: (S, S) = inverse of right.
    """

    values: np.ndarray
    right: np.ndarray
    left: np.ndarray


@dataclass(frozen=True)
class SiteModel:
    """A model with every parameter set, for one evaluation of the likelihood.

    rate_matrix: (S, S), rows sum to 0, one expected substitution per unit of branch length.
    frequencies: (S,) stationary frequencies of rate_matrix.
    root_frequencies: (S,) state distribution at the root (= frequencies unless the model says otherwise).
    eigen: its eigensystem, or None where rate_matrix is (nearly) defective: then use the matrix exponential.
    rates, weights: (C,) rate and weight of each category whose rate is not 0.
    invariant: weight of the class of invariable sites; weights.sum() + invariant = 1.
    """

    rate_matrix: np.ndarray
    frequencies: np.ndarray
    root_frequencies: np.ndarray
    eigen: EigenSystem | None
    rates: np.ndarray
    weights: np.ndarray
    invariant: float = 0.0

    @property
    def real_eigen(self) -> EigenSystem | None:
        """The eigensystem if it is real, which compiled kernels want; the others exponentiate in NumPy."""
        return None if self.eigen is None or np.iscomplexobj(self.eigen.values) else self.eigen


@dataclass(frozen=True)
class SiteModelGradient:
    """d log-likelihood / d field of SiteModel, entries taken as independent (no constraint applied)."""

    rate_matrix: np.ndarray
    root_frequencies: np.ndarray
    rates: np.ndarray
    weights: np.ndarray
    invariant: float
