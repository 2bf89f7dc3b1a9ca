"""The inverse gamma distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain, positive_numbers


@dataclass(frozen=True)
class InverseGamma:
    """p(x) = scale^shape / Γ(shape) · x^(-shape - 1) exp(-scale / x), x > 0: 1 / x is Gamma(shape, rate =
    scale); mean scale / (shape - 1) where the shape is above 1. As BEAST has it on population sizes."""

    shape: float = 2.0
    scale: float = 1.0
    domain: ClassVar[Domain] = "positive"

    def __post_init__(self) -> None:
        positive_numbers("invgamma", self.shape, self.scale)

    @property
    def _constant(self) -> float:
        return self.shape * math.log(self.scale) - math.lgamma(self.shape)

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        inside = np.where(x > 0, x, 1.0)
        each = self._constant - (self.shape + 1.0) * np.log(inside) - self.scale / inside
        return np.where(x > 0, each, -np.inf).sum(-1)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return (self.scale / x - self.shape - 1.0) / x

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """shape + 1, scale, and the constant of all k entries."""
        return np.array([self.shape + 1.0, self.scale, size * self._constant])


def scalar(x, numbers):
    """The compiled form."""
    total = numbers[2]
    for i in range(x.shape[0]):
        if x[i] <= 0.0:
            return -math.inf
        total -= numbers[0] * math.log(x[i]) + numbers[1] / x[i]
    return total
