"""Independent exponential branch lengths, tips' branches and internal ones apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain, positive_numbers


@dataclass(frozen=True)
class TwoExponentials:
    """Rate `internal` for internal branches, `tips` for tips' (Yang and Rannala 2005, Syst. Biol. 54:455).

    MrBayes' Unconstrained:TwoExp, whose defaults these are.
    """

    internal: float = 100.0
    tips: float = 10.0
    domain: ClassVar[Domain] = "lengths"

    def __post_init__(self) -> None:
        positive_numbers("twoexp", self.internal, self.tips)

    def _rates(self, size: int, n_external: int) -> np.ndarray:
        return np.where(np.arange(size) < n_external, self.tips, self.internal)

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        rates = self._rates(x.shape[-1], n_external)
        return np.where(x < 0, -np.inf, np.log(rates) - rates * x).sum(-1)

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return np.broadcast_to(-self._rates(x.shape[-1], n_external), x.shape).copy()

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """Rate at tips, rate inside, tips' branches, and the constant of all k entries."""
        constant = np.log(self._rates(size, n_external)).sum()
        return np.array([self.tips, self.internal, n_external, constant])


def scalar(x, numbers):
    """The compiled form."""
    total = numbers[3]
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            return -math.inf
        total -= (numbers[0] if i < numbers[2] else numbers[1]) * x[i]
    return total
