"""The normal distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain, positive_numbers


@dataclass(frozen=True)
class Normal:
    """Mean `mean`, standard deviation `scale`."""

    mean: float = 0.0
    scale: float = 1.0
    domain: ClassVar[Domain] = "real"

    def __post_init__(self) -> None:
        positive_numbers("normal", self.scale)

    @property
    def _constant(self) -> float:
        return -math.log(self.scale) - 0.5 * math.log(2.0 * math.pi)

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return (self._constant - 0.5 * ((x - self.mean) / self.scale) ** 2).sum(-1)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return (self.mean - x) / self.scale**2

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """mean, 1 / scale, and the constant of all k entries."""
        return np.array([self.mean, 1.0 / self.scale, size * self._constant])


def scalar(x, numbers):
    """The compiled form."""
    total = numbers[2]
    for i in range(x.shape[0]):
        deviation = (x[i] - numbers[0]) * numbers[1]
        total -= 0.5 * deviation * deviation
    return total
