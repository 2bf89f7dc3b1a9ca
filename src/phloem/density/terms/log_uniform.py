"""The log-uniform distribution: Jeffreys' prior of a scale, between limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain, positive_numbers
from phloem.errors import InputError


@dataclass(frozen=True)
class LogUniform:
    """p(x) = 1 / (x log(upper / lower)), lower ≤ x ≤ upper. Without limits it is Jeffreys' 1 / x, which has
    no integral; limits far from where the data want x are as good."""

    lower: float = 1e-6
    upper: float = 1e6
    domain: ClassVar[Domain] = "positive"

    def __post_init__(self) -> None:
        positive_numbers("loguniform", self.lower, self.upper)
        if not self.lower < self.upper:
            raise InputError(f"loguniform needs the smaller number first, not {self.lower:g}, {self.upper:g}")

    def __str__(self) -> str:
        return f"loguniform({self.lower:g},{self.upper:g})"

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        inside = (self.lower <= x) & (x <= self.upper)
        each = -np.log(np.where(inside, x, 1.0)) - math.log(math.log(self.upper / self.lower))
        return np.where(inside, each, -np.inf).sum(-1)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return -1.0 / x

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """lower, upper, and the constant of all k entries."""
        constant = -size * math.log(math.log(self.upper / self.lower))
        return np.array([self.lower, self.upper, constant])


def scalar(x, numbers):
    """The compiled form."""
    total = numbers[2]
    for i in range(x.shape[0]):
        if not (numbers[0] <= x[i] <= numbers[1]):
            return -math.inf
        total -= math.log(x[i])
    return total
