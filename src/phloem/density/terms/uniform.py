"""The uniform distribution on an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain
from phloem.errors import InputError


@dataclass(frozen=True)
class Uniform:
    """p(x) = 1 / (upper - lower) for lower ≤ x ≤ upper."""

    lower: float = 0.0
    upper: float = 1.0
    domain: ClassVar[Domain] = "real"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.upper - self.lower) and self.lower < self.upper):
            raise InputError(
                f"uniform needs two finite numbers, the smaller first, not {self.lower:g}, {self.upper:g}",
                hint="A flat density without an end is no distribution; give one that is surely beyond what "
                "can be, such as uniform(0,1) of a clock's substitutions a site and year.",
            )

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        inside = (self.lower <= x) & (x <= self.upper)
        return np.where(inside, -math.log(self.upper - self.lower), -np.inf).sum(-1)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return np.zeros_like(x)

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """lower, upper, and the constant of all k entries."""
        return np.array([self.lower, self.upper, -size * math.log(self.upper - self.lower)])


def scalar(x, numbers):
    """The compiled form."""
    for i in range(x.shape[0]):
        if not (numbers[0] <= x[i] <= numbers[1]):
            return -math.inf
    return numbers[2]
