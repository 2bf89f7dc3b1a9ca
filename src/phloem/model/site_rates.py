"""Rates across sites: one rate, discrete gamma, free rates or a user's mixture, with invariable sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from phloem.errors import ModelError
from phloem.model.gamma_rates import GammaCategories, gamma_rates, gamma_rates_derivative
from phloem.model.parameter import Parameter, Values, simplex, softmax_gradient
from phloem.model.relative_rates import mean_one, mean_one_adjoint
from phloem.model.substitution import Gradient, Term


class Categories(Protocol):
    """Rates (C,) of weighted mean 1 and weights (C,) that sum to 1."""

    @property
    def term(self) -> Term: ...

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]: ...

    def backpropagate(self, values: Values, d_rates: np.ndarray, d_weights: np.ndarray) -> Gradient: ...


@dataclass(frozen=True)
class UniformRate:
    """Every site at rate 1."""

    @property
    def term(self) -> Term:
        return Term("")

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(1), np.ones(1)

    def backpropagate(self, values: Values, d_rates: np.ndarray, d_weights: np.ndarray) -> Gradient:
        return {}


@dataclass(frozen=True)
class GammaRates:
    """k classes of equal weight of a gamma distribution of mean 1 and shape alpha (Yang 1994)."""

    n_categories: int
    kind: GammaCategories = "mean"

    @property
    def term(self) -> Term:
        suffix = "a" if self.kind == "median" else ""
        alpha = Parameter("alpha", "positive", start=1.0, lower=0.02, upper=100.0)
        return Term(f"+G{self.n_categories}{suffix}", (alpha,))

    def evaluate(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        alpha, k = float(values["alpha"]), self.n_categories
        if not 1e-3 <= alpha <= 1e5:
            raise ModelError(
                f"gamma shape 'alpha' is {alpha:g}", hint="Give a value between 0.001 and 100000."
            )
        return gamma_rates(alpha, k, self.kind), np.full(k, 1.0 / k)

    def backpropagate(self, values: Values, d_rates: np.ndarray, d_weights: np.ndarray) -> Gradient:
        slope = gamma_rates_derivative(float(values["alpha"]), self.n_categories, self.kind)
        return {"alpha": float(d_rates @ slope)}


@dataclass(frozen=True)
class FreeRates:
    """k classes of any weights and rates (Yang 1995; Soubrier et al. 2012); a user's mixture when given.

    Rates are relative: they are divided by their weighted mean, so that branch lengths keep their unit.
    """

    n_categories: int

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
        p = float(values["p_invariable"]) if self.invariable else 0.0
        return rates / (1 - p), weights * (1 - p), p

    def backpropagate(self, values: Values, d_rates, d_weights, d_invariant: float) -> Gradient:
        rates, weights = self.categories.evaluate(values)
        p = float(values["p_invariable"]) if self.invariable else 0.0
        result = self.categories.backpropagate(values, d_rates / (1 - p), d_weights * (1 - p))
        if self.invariable:
            result["p_invariable"] = float(d_rates @ rates / (1 - p) ** 2 - d_weights @ weights + d_invariant)
        return result
