"""The exponential distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain, positive_numbers


@dataclass(frozen=True)
class Exponential:
    """p(x) = rate · exp(-rate · x), x ≥ 0; mean 1 / rate."""

    rate: float = 1.0
    domain: ClassVar[Domain] = "positive"

    def __post_init__(self) -> None:
        positive_numbers("exponential", self.rate)

    def __str__(self) -> str:
        return f"exponential({self.rate:g})"

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return np.where(x < 0, -np.inf, math.log(self.rate) - self.rate * x).sum(-1)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return np.full_like(x, -self.rate)

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """rate and k log rate."""
        return np.array([self.rate, size * math.log(self.rate)])


def scalar(x, numbers):
    """The compiled form."""
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            return -math.inf
        total += x[i]
    return numbers[1] - numbers[0] * total
