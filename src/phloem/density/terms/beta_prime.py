"""The beta prime distribution: a ratio whose share is beta distributed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain, positive_numbers


@dataclass(frozen=True)
class BetaPrime:
    """p(x) = Γ(a + b) / (Γ(a) Γ(b)) · x^(a - 1) (1 + x)^(-a - b), x > 0: x / (1 + x) is Beta(a, b), as
    MrBayes has kappa (tratiopr) and omega (omegapr)."""

    a: float = 1.0
    b: float = 1.0
    domain: ClassVar[Domain] = "positive"

    def __post_init__(self) -> None:
        positive_numbers("betaprime", self.a, self.b)

    @property
    def _constant(self) -> float:
        return math.lgamma(self.a + self.b) - math.lgamma(self.a) - math.lgamma(self.b)

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        at = np.where(x > 0, x, 1.0)
        each = self._constant + (self.a - 1.0) * np.log(at) - (self.a + self.b) * np.log1p(at)
        return np.where(x > 0, each, -np.inf).sum(-1)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return (self.a - 1.0) / x - (self.a + self.b) / (1.0 + x)

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """a - 1, a + b, and the constant of all k entries."""
        return np.array([self.a - 1.0, self.a + self.b, size * self._constant])


def scalar(x, numbers):
    """The compiled form."""
    total = numbers[2]
    for i in range(x.shape[0]):
        if x[i] <= 0.0:
            return -math.inf
        total += numbers[0] * math.log(x[i]) - numbers[1] * math.log1p(x[i])
    return total
