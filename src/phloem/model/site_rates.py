"""Rates across sites: one rate, discrete gamma or log-normal, free rates, lengths per class, and +I.

Gamma(shape α, mean 1) is cut into k classes of equal probability (Yang 1994); a class is represented by its
mean (the default, as IQ-TREE and MrBayes do) or by its median divided by the mean of the medians (as BEAST
does). Rates known up to a factor are divided by their weighted mean, so that branch lengths keep their unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, Protocol

import numpy as np
from scipy.special import gammainc, gammaincinv, gammaln, ndtri, psi

from phloem.errors import ModelError
from phloem.model.record import Parameter, Values, as_number, simplex, softmax_gradient
from phloem.model.substitution import Gradient, Term

GammaCategories = Literal["mean", "median"]

# Where fits and chains end: four rates of 1 ± 0.04. Above, the likelihood hardly changes (as 1 / alpha).
MOST_ALPHA = 1000.0


class Categories(Protocol):
    """Rates (C,) of weighted mean 1 and weights (C,) that sum to 1.

    own_lengths: whether every category has branch lengths of its own.
    """

    own_lengths: ClassVar[bool]

    @property
    def n_categories(self) -> int: ...

    @property
    def term(self) -> Term: ...

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]: ...

    def backpropagate(self, values: Values, d_rates: np.ndarray, d_weights: np.ndarray) -> Gradient: ...


@dataclass(frozen=True)
class UniformRate:
    """Every site at rate 1. label: what the model string says of it, if anything."""

    label: str = ""
    n_categories: int = 1
    own_lengths: ClassVar[bool] = False

    @property
    def term(self) -> Term:
        return Term(self.label)

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(1), np.ones(1)

    def backpropagate(self, values: Values, d_rates: np.ndarray, d_weights: np.ndarray) -> Gradient:
        return {}


@dataclass(frozen=True)
class GammaRates:
    """k classes of equal weight of a gamma distribution of mean 1 and shape alpha (Yang 1994)."""

    n_categories: int
    kind: GammaCategories = "mean"
    own_lengths: ClassVar[bool] = False

    @property
    def term(self) -> Term:
        suffix = "a" if self.kind == "median" else ""
        alpha = Parameter("alpha", "positive", start=1.0, lower=0.02, upper=MOST_ALPHA)
        return Term(f"+G{self.n_categories}{suffix}", (alpha,))

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        alpha, k = np.asarray(values["alpha"], np.float64), self.n_categories
        if not ((alpha >= 1e-3) & (alpha <= 1e5)).all():
            raise ModelError(f"gamma shape 'alpha' is {alpha}", hint="Give a value between 0.001 and 100000.")
        return gamma_rates(alpha, k, self.kind), np.full(k, 1.0 / k)

    def backpropagate(self, values: Values, d_rates: np.ndarray, d_weights: np.ndarray) -> Gradient:
        slope = gamma_rates_derivative(values["alpha"], self.n_categories, self.kind)
        return {"alpha": as_number((d_rates * slope).sum(-1))}


@dataclass(frozen=True)
class LogNormalRates:
    """k classes of equal weight of a log-normal distribution, at their medians divided by the mean of these:
    exp(√sigma z) of normal quantiles z. sigma: the variance of a log rate, as MrBayes' lnorm has it."""

    n_categories: int
    own_lengths: ClassVar[bool] = False

    @property
    def term(self) -> Term:
        sigma = Parameter("sigma", "positive", start=1.0, lower=1e-3, upper=100.0)
        return Term(f"+LN{self.n_categories}", (sigma,))

    @property
    def scores(self) -> np.ndarray:
        """(k,) normal quantiles of the classes' medians."""
        return ndtri((2.0 * np.arange(self.n_categories) + 1.0) / (2.0 * self.n_categories))

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        sigma, k = np.asarray(values["sigma"], np.float64), self.n_categories
        if not ((sigma >= 0) & (sigma <= 1e4)).all():
            raise ModelError(f"variance 'sigma' of log rates is {sigma}", hint="Give a value up to 10000.")
        x = np.exp(np.sqrt(sigma)[..., None] * self.scores)
        return x / x.mean(-1, keepdims=True), np.full(k, 1.0 / k)

    def backpropagate(self, values: Values, d_rates: np.ndarray, d_weights: np.ndarray) -> Gradient:
        rates, _ = self.evaluate(values)
        away = self.scores - (rates * self.scores).mean(-1, keepdims=True)
        root = np.maximum(np.sqrt(np.asarray(values["sigma"], np.float64)), 1e-300)
        return {"sigma": as_number((d_rates * rates * away).sum(-1) / (2.0 * root))}


@dataclass(frozen=True)
class FreeRates:
    """k classes of any weights and rates (Yang 1995; Soubrier et al. 2012); a user's mixture when given.

    Rates are relative: they are divided by their weighted mean, so that branch lengths keep their unit.
    """

    n_categories: int
    own_lengths: ClassVar[bool] = False

    @property
    def term(self) -> Term:
        numbers = range(1, self.n_categories + 1)
        weights = simplex("weights", tuple(f"weight_{i}" for i in numbers))
        spread = 2.0 * np.arange(1, self.n_categories + 1) / (self.n_categories + 1)
        names = tuple(f"rate_{i}" for i in numbers)
        rates = Parameter("rates", "positive", names, start=spread, relative=True)
        order = tuple(f"{what}_{i}" for i in numbers for what in ("weight", "rate"))
        return Term(f"+R{self.n_categories}", (weights, rates), order)

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        weights, relative = np.asarray(values["weights"]), np.asarray(values["rates"])
        if not (relative > 0).all():
            raise ModelError("the rate of a category must be above 0", hint="Use +I for invariable sites.")
        return mean_one(weights, relative), weights

    def backpropagate(self, values: Values, d_rates: np.ndarray, d_weights: np.ndarray) -> Gradient:
        weights, relative = np.asarray(values["weights"]), np.asarray(values["rates"])
        through_mean, d_relative = mean_one_adjoint(weights, relative, d_rates)
        return {"weights": softmax_gradient(weights, d_weights + through_mean), "rates": d_relative}


@dataclass(frozen=True)
class LengthClasses:
    """k classes of sites, each with a set of branch lengths of its own (GHOST, Crotty et al. 2020)."""

    n_categories: int
    own_lengths: ClassVar[bool] = True

    @property
    def term(self) -> Term:
        elements = tuple(f"weight_{i}" for i in range(1, self.n_categories + 1))
        return Term(f"+H{self.n_categories}", (simplex("weights", elements),))

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(self.n_categories), np.asarray(values["weights"])

    def backpropagate(self, values: Values, d_rates: np.ndarray, d_weights: np.ndarray) -> Gradient:
        return {"weights": softmax_gradient(np.asarray(values["weights"]), d_weights)}


@dataclass(frozen=True)
class SiteRates:
    """Categories of variable sites, and invariable sites (Gu, Fu and Li 1995).

    A site is invariable with probability p; the rates of the others are divided by 1 - p, so that the mean
    over all sites stays 1.
    """

    categories: Categories
    invariable: bool = False

    @property
    def terms(self) -> tuple[Term, ...]:
        p = Parameter("p_invariable", "unit", start=0.1, lower=0.0, upper=0.9999)
        return (Term("+I", (p,)), self.categories.term) if self.invariable else (self.categories.term,)

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray, float]:
        """Rates (C,), weights (C,) and the weight of invariable sites."""
        rates, weights = self.categories.evaluate(values)
        if not self.invariable:
            return rates, weights, 0.0
        p = np.asarray(values["p_invariable"], np.float64)
        variable = 1 - p[..., None]
        return rates / variable, weights * variable, as_number(p)  # type: ignore[return-value]

    def backpropagate(self, values: Values, d_rates, d_weights, d_invariant: float) -> Gradient:
        if not self.invariable:
            return self.categories.backpropagate(values, d_rates, d_weights)
        rates, weights = self.categories.evaluate(values)
        p = np.asarray(values["p_invariable"], np.float64)
        variable = 1 - p[..., None]
        result = self.categories.backpropagate(values, d_rates / variable, d_weights * variable)
        through_rates = (d_rates * rates).sum(-1) / (1 - p) ** 2
        result["p_invariable"] = as_number(through_rates - (d_weights * weights).sum(-1) + d_invariant)
        return result


def mean_one(weights: np.ndarray, relative: np.ndarray) -> np.ndarray:
    """relative / Σ weights · relative, all (..., k)."""
    return relative / (weights * relative).sum(-1, keepdims=True)


def mean_one_adjoint(
    weights: np.ndarray, relative: np.ndarray, d_rates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """From derivatives by mean_one, those by weights and by relative, entries taken as independent."""
    mean = (weights * relative).sum(-1, keepdims=True)
    shared = (d_rates * relative).sum(-1, keepdims=True) / mean**2
    return -relative * shared, d_rates / mean - weights * shared


def gamma_rates(alpha: float | np.ndarray, n_categories: int, kind: GammaCategories) -> np.ndarray:
    """(..., k) rates of mean 1, ascending; alpha (...)."""
    shape = np.asarray(alpha, np.float64)
    x = _quantiles(shape, n_categories, kind)
    if kind == "median":
        return x / x.mean(-1, keepdims=True)
    cumulative = np.zeros((*shape.shape, n_categories + 1))
    cumulative[..., 1:-1], cumulative[..., -1] = gammainc(shape[..., None] + 1, x), 1.0
    return n_categories * np.diff(cumulative)


def gamma_rates_derivative(alpha: float | np.ndarray, n_categories: int, kind: GammaCategories) -> np.ndarray:
    """d rates / d alpha (..., k); alpha (...).

    P(α, x) is the regularised incomplete gamma function. A quantile x(α) with P(α, x) = p moves by
    dx/dα = -∂_α P / p_α(x), with density p_α(x) = x^(α-1) e^-x / Γ(α); hence
    d/dα P(α+1, x(α)) = ∂_α P(α+1, x) - (x/α) ∂_α P(α, x).
    """
    shape = np.asarray(alpha, np.float64)
    a, x = shape[..., None], _quantiles(shape, n_categories, kind)
    if kind == "mean":
        moved = np.zeros((*shape.shape, n_categories + 1))
        moved[..., 1:-1] = gammainc_derivative(a + 1, x) - x / a * gammainc_derivative(a, x)
        return n_categories * np.diff(moved)
    dx, mean = -gammainc_derivative(a, x) * _reciprocal_density(a, x), x.mean(-1, keepdims=True)
    return dx / mean - x * dx.mean(-1, keepdims=True) / mean**2


def gammainc_derivative(a: float | np.ndarray, x: np.ndarray) -> np.ndarray:
    """∂P(a, x)/∂a of the regularised lower incomplete gamma function, in the shape of x; a: broadcast to it.

    P(a, x) = Σ_n x^(a+n) e^-x / Γ(a+n+1) (DLMF 8.11.4), differentiated term by term:
    Σ_n term_n (ln x - ψ(a+n+1)). The terms peak where a + n ≈ x and fall off on a scale of √x.
    """
    a, x = np.asarray(a, np.float64), np.asarray(x, np.float64)
    largest = float(x.max(initial=0.0))
    n_terms = int(max(float((x - a).max(initial=0.0)), 0.0) + 14 * np.sqrt(largest) + 60)
    order = a + np.arange(n_terms).reshape(-1, *[1] * x.ndim)
    with np.errstate(divide="ignore"):
        log_x = np.log(x)
    finite = np.where(x > 0, log_x, 0.0)
    terms = np.exp(order * finite - x - gammaln(order + 1)) * (finite - psi(order + 1))
    return np.where(x > 0, terms.sum(axis=0), 0.0)


def _quantiles(alpha: np.ndarray, n_categories: int, kind: GammaCategories) -> np.ndarray:
    """(..., k - 1) edges between the classes, or (..., k) their medians; alpha (...)."""
    return _known_quantiles(tuple(alpha.ravel().tolist()), n_categories, kind).reshape(*alpha.shape, -1)


@lru_cache(maxsize=256)
def _known_quantiles(alpha: tuple[float, ...], n_categories: int, kind: GammaCategories) -> np.ndarray:
    """A gradient asks for them three times."""
    k = np.arange(n_categories)
    share = k[1:] / n_categories if kind == "mean" else (2 * k + 1) / (2 * n_categories)
    x = gammaincinv(np.array(alpha)[:, None], share)
    x.flags.writeable = False
    return x


def _reciprocal_density(alpha: np.ndarray, x: np.ndarray) -> np.ndarray:
    """1 / p_α(x), 0 where x has underflowed to 0 (its derivative is then 0 as well)."""
    finite = np.where(x > 0, x, 1.0)
    return np.where(x > 0, np.exp(gammaln(alpha) + finite - (alpha - 1) * np.log(finite)), 0.0)
