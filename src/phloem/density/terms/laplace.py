"""The Laplace distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain, positive_numbers


@dataclass(frozen=True)
class Laplace:
    """p(x) = exp(-|x - mean| / scale) / (2 scale), as BEAUti has it on the growth rate of a coalescent."""

    mean: float = 0.0
    scale: float = 1.0
    domain: ClassVar[Domain] = "real"

    def __post_init__(self) -> None:
        positive_numbers("laplace", self.scale)

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return (-math.log(2.0 * self.scale) - np.abs(x - self.mean) / self.scale).sum(-1)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        """0 at the mean, where there is none."""
        return -np.sign(x - self.mean) / self.scale

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """mean, 1 / scale, and the constant of all k entries."""
        return np.array([self.mean, 1.0 / self.scale, -size * math.log(2.0 * self.scale)])


def scalar(x, numbers):
    """The compiled form."""
    total = numbers[2]
    for i in range(x.shape[0]):
        total -= abs(x[i] - numbers[0]) * numbers[1]
    return total
