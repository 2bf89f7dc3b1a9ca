"""What a kernel needs to know of a model: numbers only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from phloem.errors import ModelError


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


@dataclass(frozen=True)
class SiteModel:
    """A model with every parameter set, for one evaluation of the likelihood.

    A site is of category c with probability weights[c] and then evolves by the process process[c] along
    rates[c] times the branch lengths of class length_class[c], or it is invariable:
    L = Σ_c weights[c] L(processes[process[c]], rates[c] · lengths[length_class[c]])
        + invariant · Σ_s invariant_frequencies[s] [all tips allow s].

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

    processes: one a process. rates, weights: (C,). invariant_frequencies: (S,).
    """

    processes: tuple[ProcessGradient, ...]
    rates: np.ndarray
    weights: np.ndarray
    invariant: float
    invariant_frequencies: np.ndarray
