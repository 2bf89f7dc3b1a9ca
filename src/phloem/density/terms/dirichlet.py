"""The Dirichlet distribution on a simplex."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from phloem.density.terms.term import Domain, positive_numbers
from phloem.errors import InputError


@dataclass(frozen=True)
class Dirichlet:
    """p(x) = Γ(Σ a) / Π Γ(a_i) · Π x_i^(a_i - 1), by the first k - 1 entries.

    concentration: a number for every entry, or one for all; 1 is the flat density. Where k = 2 it is the beta
    distribution of the first entry.
    """

    concentration: float | tuple[float, ...] = 1.0
    domain: ClassVar[Domain] = "simplex"

    def __post_init__(self) -> None:
        positive_numbers("dirichlet", *np.atleast_1d(self.concentration))

    def _concentrations(self, size: int) -> np.ndarray:
        a = np.atleast_1d(np.asarray(self.concentration, np.float64))
        if len(a) not in (1, size):
            raise InputError(f"dirichlet has {len(a)} concentrations for {size} entries")
        return np.broadcast_to(a, size)

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        a = self._concentrations(x.shape[-1])
        with np.errstate(divide="ignore"):
            powers = np.where(a == 1.0, 0.0, (a - 1.0) * np.log(x))
        return gammaln(a.sum()) - gammaln(a).sum() + powers.sum(-1)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        powers = self._concentrations(x.shape[-1]) - 1.0
        return powers / np.where(powers == 0.0, 1.0, x)

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """log Γ(Σ a) - Σ log Γ(a), then a - 1."""
        a = self._concentrations(size)
        return np.array([gammaln(a.sum()) - gammaln(a).sum(), *(a - 1.0)])


def scalar(x, numbers):
    """The compiled form."""
    total = numbers[0]
    for i in range(x.shape[0]):
        if numbers[i + 1] != 0.0:
            total += numbers[i + 1] * math.log(x[i])
    return total
