"""Rates that are correlated along the sequence: +AG, MrBayes' adgamma (Yang 1995, Genetics 139:993).

The rate class of a site depends on that of the site before it. Behind the gamma distributed rates of two
neighbours stand two standard normal numbers of correlation rho, cut at the quantiles of k equally likely
classes; the probability of class j after class i is that both numbers are in their intervals, times k. So
every class stays equally likely, rho = 0 is +G, and rho → 1 gives every site the rate of its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri, owens_t

from phloem.errors import ModelError
from phloem.model.record import Parameter, Values, as_number
from phloem.model.site_rates import GammaCategories, GammaRates
from phloem.model.substitution import Gradient, Term

MOST_RHO = 0.9999  # where fits end, on both sides: above, a site in 100 or fewer leaves its class


@dataclass(frozen=True)
class AutocorrelatedGammaRates:
    """k ≥ 2 equally likely classes of a gamma distribution (site_rates.GammaRates), a Markov chain along the
    sites. rho: the correlation of the normal numbers of neighbours, in (-1, 1)."""

    n_categories: int
    kind: GammaCategories = "mean"
    own_lengths: ClassVar[bool] = False

    @property
    def gamma(self) -> GammaRates:
        """The rates without their order."""
        return GammaRates(self.n_categories, self.kind)

    @property
    def term(self) -> Term:
        (alpha,) = self.gamma.term.parameters
        rho = Parameter("rho", "interval", start=0.1, lower=-MOST_RHO, upper=MOST_RHO)
        return Term(self.gamma.term.label.replace("+G", "+AG", 1), (alpha, rho))

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        return self.gamma.evaluate(values)

    def backpropagate(self, values: Values, d_rates: np.ndarray, d_weights: np.ndarray) -> Gradient:
        """By alpha; by rho: neighbours_gradient."""
        return self.gamma.backpropagate(values, d_rates, d_weights)

    def neighbours(self, values: Values) -> np.ndarray:
        """(k, k) probability of class j (column) at a site after class i (row) at the site before it."""
        rho = float(values["rho"])  # type: ignore[arg-type]
        if not -1 < rho < 1:
            raise ModelError(
                f"correlation 'rho' of neighbouring rates is {rho}", hint="Give a number between -1 and 1."
            )
        return neighbours_of(rho, self.n_categories)

    def neighbours_gradient(self, values: Values, d_neighbours: np.ndarray) -> Gradient:
        """From derivatives by the entries of neighbours, taken as independent."""
        slope = neighbours_slope(float(values["rho"]), self.n_categories)  # type: ignore[arg-type]
        return {"rho": as_number((d_neighbours * slope).sum())}


def neighbours_of(rho: float, n: int) -> np.ndarray:
    """(n, n) symmetric, rows sum to 1; every entry is right to some 1e-15."""
    cumulated = np.zeros((n + 1, n + 1))
    cumulated[-1, 1:] = cumulated[1:, -1] = np.arange(1, n + 1) / n
    edges = class_edges(n)
    cumulated[1:-1, 1:-1] = bivariate_normal(edges[:, None], edges, rho)
    shares = np.maximum(np.diff(np.diff(cumulated, axis=0), axis=1), 0.0)  # the smallest round to below 0
    return shares / shares.sum(1, keepdims=True)


def neighbours_slope(rho: float, n: int) -> np.ndarray:
    """(n, n) d neighbours_of / d rho. The bivariate normal integral's derivative by the correlation is its
    density (Plackett 1954, Biometrika 41:351)."""
    density, edges = np.zeros((n + 1, n + 1)), class_edges(n)
    a, b, rest = edges[:, None], edges, 1.0 - rho * rho
    exponent = -(a * a - 2.0 * rho * a * b + b * b) / (2.0 * rest)
    density[1:-1, 1:-1] = np.exp(exponent) / (2.0 * np.pi * np.sqrt(rest))
    return n * np.diff(np.diff(density, axis=0), axis=1)


def bivariate_normal(a: np.ndarray, b: np.ndarray, rho: float) -> np.ndarray:
    """P(X ≤ a, Y ≤ b) of standard normal numbers of correlation rho, broadcast, by Owen's T function (Owen
    1956, Ann. Math. Stat. 27:1075, equation 2.1)."""
    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    root = np.sqrt((1.0 - rho) * (1.0 + rho))
    apart = (a * b < 0) | ((a * b == 0) & (a + b < 0))
    own = (
        0.5 * (ndtr(a) + ndtr(b)) - owens_t(a, _ratio(b, a, rho, root)) - owens_t(b, _ratio(a, b, rho, root))
    )
    both = (a == 0) & (b == 0)  # where neither ratio is defined
    return np.where(both, 0.25 + np.arcsin(rho) / (2.0 * np.pi), own - 0.5 * apart)


def _ratio(b: np.ndarray, a: np.ndarray, rho: float, root: float) -> np.ndarray:
    """(b / a - rho) / √(1 - rho²), endless where a is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(a == 0, np.where(b < 0, -np.inf, np.inf), (b / a - rho) / root)


def class_edges(n: int) -> np.ndarray:
    """(n - 1,) normal quantiles between n equally likely classes; that in the middle is 0 exactly."""
    edges = ndtri(np.arange(1, n) / n)
    if n % 2 == 0:
        edges[n // 2 - 1] = 0.0
    return np.asarray(edges, np.float64)
