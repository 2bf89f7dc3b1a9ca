"""Branch lengths as shares of the tree length, tips' branches and internal ones apart.

Rannala, Zhu and Yang 2012, Mol. Biol. Evol. 29:325; Zhang, Rannala and Yang 2012, Syst. Biol. 61:779. With B
lengths b, tree length T, weights a_x = tips for tips' branches and tips · ratio for internal ones, A = Σ a_x:
p(b) = p(T) · Γ(A) / Π Γ(a_x) · Π b_x^(a_x - 1) · T^(1 - A).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from phloem.density.terms.term import Domain, positive_numbers


@dataclass(frozen=True)
class GammaDirichlet:
    """T is Gamma(shape, rate). MrBayes 3.2.7a's default is Unconstrained:GammaDir(1,0.1,1,1)."""

    shape: float = 1.0
    rate: float = 0.1
    tips: float = 1.0
    ratio: float = 1.0
    domain: ClassVar[Domain] = "lengths"

    def __post_init__(self) -> None:
        positive_numbers("gammadir", self.shape, self.rate, self.tips, self.ratio)

    def __str__(self) -> str:
        return f"gammadir({self.shape:g},{self.rate:g},{self.tips:g},{self.ratio:g})"

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return _log_density(x, self.numbers(x.shape[-1], n_external))

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return _gradient(x, self.numbers(x.shape[-1], n_external))

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """As _numbers: log p(T) = constant + (shape - 1) log T - rate T."""
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return _numbers(self, constant, self.shape - 1.0, self.rate, 0.0, (size, n_external))


@dataclass(frozen=True)
class InverseGammaDirichlet:
    """1 / T is Gamma(shape, rate); MrBayes' Unconstrained:InvGamDir."""

    shape: float = 3.0
    rate: float = 0.2
    tips: float = 1.0
    ratio: float = 1.0
    domain: ClassVar[Domain] = "lengths"

    def __post_init__(self) -> None:
        positive_numbers("invgamdir", self.shape, self.rate, self.tips, self.ratio)

    def __str__(self) -> str:
        return f"invgamdir({self.shape:g},{self.rate:g},{self.tips:g},{self.ratio:g})"

    def log_density(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return _log_density(x, self.numbers(x.shape[-1], n_external))

    def gradient(self, x: np.ndarray, n_external: int = 0) -> np.ndarray:
        return _gradient(x, self.numbers(x.shape[-1], n_external))

    def numbers(self, size: int, n_external: int = 0) -> np.ndarray:
        """As _numbers: log p(T) = constant - (shape + 1) log T - rate / T."""
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return _numbers(self, constant, -self.shape - 1.0, 0.0, self.rate, (size, n_external))


def _numbers(
    family, constant: float, power: float, rate: float, inverse_rate: float, counts: tuple[int, int]
):
    """(7,) constant, power of T, rate of T, rate of 1 / T, a - 1 at tips, a - 1 inside, tips' branches."""
    size, n_external = counts
    inner = family.tips * family.ratio
    total = n_external * family.tips + (size - n_external) * inner
    constant += math.lgamma(total) - n_external * math.lgamma(family.tips)
    constant -= (size - n_external) * math.lgamma(inner)
    return np.array(
        [constant, power + 1.0 - total, rate, inverse_rate, family.tips - 1.0, inner - 1.0, n_external]
    )


def _powers(x: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """(k,) a_x - 1."""
    return np.where(np.arange(x.shape[-1]) < numbers[6], numbers[4], numbers[5])


def _log_density(x: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    constant, power, rate, inverse_rate = numbers[:4]
    total, powers = x.sum(-1), _powers(x, numbers)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(powers == 0.0, 0.0, powers * np.log(x)).sum(-1)
        value = constant + power * np.log(total) - rate * total - inverse_rate / total + shares
    return np.where((x >= 0).all(-1) & (total > 0), value, -np.inf)


def _gradient(x: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    total = x.sum(-1, keepdims=True)
    by_total = numbers[1] / total - numbers[2] + numbers[3] / total**2
    powers = _powers(x, numbers)
    return by_total + powers / np.where(powers == 0.0, 1.0, x)


def scalar(x, numbers):
    """The compiled form of both."""
    total = 0.0
    for i in range(x.shape[0]):
        if x[i] < 0.0:
            return -math.inf
        total += x[i]
    if total <= 0.0:
        return -math.inf
    value = numbers[0] + numbers[1] * math.log(total) - numbers[2] * total - numbers[3] / total
    if numbers[4] == 0.0 and numbers[5] == 0.0:
        return value
    for i in range(x.shape[0]):
        value += (numbers[4] if i < numbers[6] else numbers[5]) * math.log(x[i])
    return value
