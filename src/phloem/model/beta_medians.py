"""Beta distributions cut into classes of equal weight, each represented by its median, and derivatives."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv, psi


def beta_medians(p: float, q: float, n: int) -> np.ndarray:
    """(n,) quantiles of beta(p, q) at (2k - 1) / 2n, ascending: the classes of codeml and MrBayes."""
    return betaincinv(p, q, _midpoints(n))


def beta_medians_derivatives(p: float, q: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """d medians / dp and / dq (n,): a quantile x(p, q) with I_x(p, q) = c moves by dx = -∂I / density(x).

    I_x(p, q) = Σ_m T_m, T_m = x^(p+m) (1-x)^q Γ(p+q+m) / (Γ(p+m+1) Γ(q)) (DLMF 8.17.7 and 15.8.1), all terms
    positive, is differentiated term by term: d ln T_m / dp = ln x + ψ(p+q+m) - ψ(p+m+1), d ln T_m / dq =
    ln(1-x) + ψ(p+q+m) - ψ(q). Above ½ the complement I_(1-x)(q, p) = 1 - c is taken, as its terms fall off
    faster.
    """
    by_p, by_q = np.zeros(n), np.zeros(n)
    for k, c in enumerate(_midpoints(n)):
        x, rest = betaincinv(p, q, c), betaincinv(q, p, 1 - c)  # the smaller of both has all its digits
        if not x > 0 or not rest > 0:
            continue  # underflowed to an end of the interval, where it stays
        if x <= 0.5:
            d_first, d_second = _cumulative_derivatives(p, q, x, rest)
            by_p[k], by_q[k] = -d_first, -d_second
        else:
            d_first, d_second = _cumulative_derivatives(q, p, rest, x)
            by_p[k], by_q[k] = d_second, d_first
    return by_p, by_q


def _cumulative_derivatives(a: float, b: float, x: float, rest: float) -> tuple[float, float]:
    """∂I_x(a, b)/∂a and /∂b over the density at x ≤ ½; rest = 1 - x. T_0 / density = x (1-x) / a."""
    m = np.arange(int(80 + 4 * (a + b)))
    steps = np.log(x) + np.log(a + b + m[:-1]) - np.log(a + 1 + m[:-1])
    terms = np.exp(np.log(x) + np.log(rest) - np.log(a) + np.concatenate([[0.0], np.cumsum(steps)]))
    common = psi(a + b + m)
    by_a = np.sum(terms * (np.log(x) + common - psi(a + m + 1)))
    by_b = np.sum(terms * (np.log(rest) + common - psi(b)))
    return float(by_a), float(by_b)


def _midpoints(n: int) -> np.ndarray:
    return (2 * np.arange(n) + 1) / (2 * n)
