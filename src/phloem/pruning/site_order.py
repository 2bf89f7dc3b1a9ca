"""Sites one after the other, for models in which neighbours depend on each other (+AG), and powers of the
matrix by which they do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from phloem.errors import ModelError
from phloem.model.record import SiteModel


@dataclass(frozen=True, eq=False)
class SiteOrder:
    """pattern: (L,) int64, of every site. distance: (L,) int64 of at least 1, how many sites on it is from
    the one before it: 1, or more where columns were left out between them. That of the first says nothing.
    """

    pattern: np.ndarray
    distance: np.ndarray

    @cached_property
    def distances(self) -> np.ndarray:
        """(D,) those that occur, ascending."""
        return np.unique(self.distance)

    @cached_property
    def step(self) -> np.ndarray:
        """(L,) int64: which of them."""
        return np.searchsorted(self.distances, self.distance).astype(np.int64)


@dataclass(frozen=True, eq=False)
class SitesTogether:
    """The log-likelihood of all sites. shares: (L, C) posterior probability of every category at every site;
    pairs: (D, C, C) its derivatives by the entries of the matrices of every distance, taken as independent.
    """

    log_likelihood: float
    shares: np.ndarray
    pairs: np.ndarray


class Together(Protocol):
    """sites_together in one of its forms. by_category: (P, C) log-likelihood of every pattern where all its
    sites are of that category; weights: (C,) of the first site's; matrices: (D, C, C) of every distance."""

    def __call__(
        self, order: SiteOrder, by_category: np.ndarray, weights: np.ndarray, matrices: np.ndarray
    ) -> SitesTogether: ...


def neighbour_powers(neighbours: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """(D, C, C): what lies between two sites is summed over, as sites are of which nothing is known."""
    return np.stack([np.linalg.matrix_power(neighbours, int(d)) for d in distances])


def powers_of(model: SiteModel, order: SiteOrder) -> np.ndarray:
    """neighbour_powers of a model; ModelError where its sites are independent."""
    if model.neighbours is None:
        raise ModelError("sites have an order, and under this model they are independent")
    return neighbour_powers(model.neighbours, order.distances)


def powers_adjoint(neighbours: np.ndarray, distances: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """(C, C) derivatives by neighbours from those by its powers (D, C, C)."""
    every = [_power_adjoint(neighbours, int(d), slope) for d, slope in zip(distances, slopes)]
    return np.sum(every, axis=0)


def _power_adjoint(base: np.ndarray, exponent: int, slope: np.ndarray) -> np.ndarray:
    """From d/d baseⁿ to d/d base: of base² = B B it is G Bᵀ + Bᵀ G, and so on by halves."""
    if exponent == 1:
        return slope
    half = np.linalg.matrix_power(base, exponent // 2)
    if exponent % 2 == 0:
        return _power_adjoint(base, exponent // 2, slope @ half.T + half.T @ slope)
    whole, of_whole = half @ half, slope @ base.T
    return whole.T @ slope + _power_adjoint(base, exponent // 2, of_whole @ half.T + half.T @ of_whole)


def refuse_neighbours(model: SiteModel, what: str) -> None:
    """ModelError for what takes sites as independent, where the model's are not."""
    if model.neighbours is not None:
        raise ModelError(
            f"{what} takes sites as independent, and under +AG the rates of neighbours are correlated",
            hint="Write +G in place of +AG here.",
        )
