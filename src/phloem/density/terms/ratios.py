"""Ratios of exponential variables to one of their kind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain, positive_numbers


@dataclass(frozen=True)
class Ratios:
    """x_i = N_i / D of independent exponentials, D's mean `rate` times that of every N_i: with rate 1 the ω_i
    of classes of sites whose rates dN_i and dS are all alike beforehand (MrBayes' m3omegapr=exponential).

    p(x) = K! rate^K / (1 + rate Σ x)^(K + 1), x_i > 0: ∫ Π N_i' of the densities over D.
    """

    rate: float = 1.0
    domain: ClassVar[Domain] = "positive"

    def __post_init__(self) -> None:
        positive_numbers("ratios", self.rate)

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        k = x.shape[-1]
        total = self.rate * np.where(x > 0, x, 0.0).sum(-1)
        found = math.lgamma(k + 1) + k * math.log(self.rate) - (k + 1) * np.log1p(total)
        return np.where((x > 0).all(-1), found, -np.inf)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        slope = -(x.shape[-1] + 1) * self.rate / (1.0 + self.rate * x.sum(-1, keepdims=True))
        return np.broadcast_to(slope, x.shape).copy()

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """The rate, and the constant."""
        return np.array([self.rate, math.lgamma(size + 1) + size * math.log(self.rate)])


def scalar(x, numbers):
    """The compiled form."""
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] <= 0.0:
            return -math.inf
        total += x[i]
    return numbers[1] - (x.shape[0] + 1) * math.log1p(numbers[0] * total)
