"""The log-normal distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain, positive_numbers


@dataclass(frozen=True)
class LogNormal:
    """log x is normal with mean `location` and standard deviation `scale`; median exp(location)."""

    location: float = 0.0
    scale: float = 1.0
    domain: ClassVar[Domain] = "positive"

    def __post_init__(self) -> None:
        positive_numbers("log-normal", self.scale)

    @property
    def _constant(self) -> float:
        return -math.log(self.scale) - 0.5 * math.log(2.0 * math.pi)

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        log_x = np.log(np.where(x > 0, x, 1.0))
        each = self._constant - log_x - 0.5 * ((log_x - self.location) / self.scale) ** 2
        return np.where(x > 0, each, -np.inf).sum(-1)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return -(1.0 + (np.log(x) - self.location) / self.scale**2) / x

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """location, 1 / scale, and the constant of all k entries."""
        return np.array([self.location, 1.0 / self.scale, size * self._constant])


def scalar(x, numbers):
    """The compiled form."""
    total = numbers[2]
    for i in range(x.shape[0]):
        if x[i] <= 0.0:
            return -math.inf
        log_x = math.log(x[i])
        deviation = (log_x - numbers[0]) * numbers[1]
        total -= log_x + 0.5 * deviation * deviation
    return total
