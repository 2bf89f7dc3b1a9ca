"""Rates of the categories of a discrete gamma distribution, and their exact derivatives (Yang 1994).

Gamma(shape α, mean 1) is cut into k classes of equal probability; a class is represented by its mean (the
default, as IQ-TREE and MrBayes do) or by its median divided by the mean of the medians (as BEAST does).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import gammainc, gammaincinv, gammaln, psi

GammaCategories = Literal["mean", "median"]


def gamma_rates(alpha: float, n_categories: int, kind: GammaCategories) -> np.ndarray:
    """(k,) rates of mean 1, ascending."""
    if kind == "mean":
        edges = gammaincinv(alpha, np.arange(1, n_categories) / n_categories)
        cumulative = np.concatenate([[0.0], gammainc(alpha + 1, edges), [1.0]])
        return n_categories * np.diff(cumulative)
    medians = gammaincinv(alpha, _midpoints(n_categories))
    return medians / medians.mean()


def gamma_rates_derivative(alpha: float, n_categories: int, kind: GammaCategories) -> np.ndarray:
    """d rates / d alpha (k,).

    P(α, x) is the regularised incomplete gamma function. A quantile x(α) with P(α, x) = p moves by
    dx/dα = -∂_α P / p_α(x), with density p_α(x) = x^(α-1) e^-x / Γ(α); hence
    d/dα P(α+1, x(α)) = ∂_α P(α+1, x) - (x/α) ∂_α P(α, x).
    """
    if kind == "mean":
        x = gammaincinv(alpha, np.arange(1, n_categories) / n_categories)
        moved = gammainc_derivative(alpha + 1, x) - x / alpha * gammainc_derivative(alpha, x)
        return n_categories * np.diff(np.concatenate([[0.0], moved, [0.0]]))
    x = gammaincinv(alpha, _midpoints(n_categories))
    dx = -gammainc_derivative(alpha, x) * _reciprocal_density(alpha, x)
    return dx / x.mean() - x * dx.mean() / x.mean() ** 2


def gammainc_derivative(a: float, x: np.ndarray) -> np.ndarray:
    """∂P(a, x)/∂a of the regularised lower incomplete gamma function.

    P(a, x) = Σ_n x^(a+n) e^-x / Γ(a+n+1) (DLMF 8.11.4), differentiated term by term:
    Σ_n term_n (ln x - ψ(a+n+1)). The terms peak where a + n ≈ x and fall off on a scale of √x.
    """
    x = np.asarray(x, np.float64)
    largest = float(x.max(initial=0.0))
    n_terms = int(max(largest - a, 0.0) + 14 * np.sqrt(largest) + 60)
    order = a + np.arange(n_terms)[:, None]
    with np.errstate(divide="ignore"):
        log_x = np.log(x)
    finite = np.where(x > 0, log_x, 0.0)
    terms = np.exp(order * finite - x - gammaln(order + 1)) * (finite - psi(order + 1))
    return np.where(x > 0, terms.sum(axis=0), 0.0)


def _midpoints(n_categories: int) -> np.ndarray:
    return (2 * np.arange(n_categories) + 1) / (2 * n_categories)


def _reciprocal_density(alpha: float, x: np.ndarray) -> np.ndarray:
    """1 / p_α(x), 0 where x has underflowed to 0 (its derivative is then 0 as well)."""
    finite = np.where(x > 0, x, 1.0)
    return np.where(x > 0, np.exp(gammaln(alpha) + finite - (alpha - 1) * np.log(finite)), 0.0)
