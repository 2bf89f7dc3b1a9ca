"""The beta distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain, positive_numbers


@dataclass(frozen=True)
class Beta:
    """p(x) = Γ(a + b) / (Γ(a) Γ(b)) · x^(a - 1) (1 - x)^(b - 1), 0 < x < 1; mean a / (a + b)."""

    a: float = 2.0
    b: float = 3.0
    domain: ClassVar[Domain] = "unit"

    def __post_init__(self) -> None:
        positive_numbers("beta", self.a, self.b)

    @property
    def _constant(self) -> float:
        return math.lgamma(self.a + self.b) - math.lgamma(self.a) - math.lgamma(self.b)

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        inside = (x > 0) & (x < 1)
        at = np.where(inside, x, 0.5)
        each = self._constant + (self.a - 1.0) * np.log(at) + (self.b - 1.0) * np.log1p(-at)
        return np.where(inside, each, -np.inf).sum(-1)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return (self.a - 1.0) / x - (self.b - 1.0) / (1.0 - x)

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """a - 1, b - 1, and the constant of all k entries."""
        return np.array([self.a - 1.0, self.b - 1.0, size * self._constant])


def scalar(x, numbers):
    """The compiled form."""
    total = numbers[2]
    for i in range(x.shape[0]):
        if x[i] <= 0.0 or x[i] >= 1.0:
            return -math.inf
        total += numbers[0] * math.log(x[i]) + numbers[1] * math.log1p(-x[i])
    return total
