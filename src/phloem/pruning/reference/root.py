"""At the root: site likelihoods, the log-likelihood, and what starts the pre-order pass."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np

from phloem.model.record import SiteModel


def site_log_likelihoods(partials, exponents, model: SiteModel, invariant_states):
    """log L of every root column: L = Σ_c w_c Σ_s π_cs p[c, s] + invariant · Σ_s φ_s [all tips allow s].

    π_c is the root distribution of category c's process, φ that of invariable sites.

    partials: (C, S, K), exponents: (C, K); invariant_states: (K, S) bool. Returns (K,) float64.
    """
    mantissa, power = _category_likelihoods(partials, exponents, model, invariant_states)
    top = power.max(axis=0)
    return np.log(np.ldexp(mantissa, power - top).sum(axis=0)) + top * np.log(2.0)


def _category_likelihoods(partials, exponents, model, invariant_states):
    """Weighted likelihood of each category (invariable sites last) as (mantissa, power of two), (C+1, K)."""
    f = model.root_frequencies
    variable = np.einsum("cs,csk,c->ck", f, partials.astype(np.float64), model.weights)
    constant = model.invariant * (invariant_states @ model.invariant_frequencies)
    power = np.vstack([exponents, np.zeros(len(constant), np.int32)])
    value = np.vstack([variable, constant])
    return value, np.where(value > 0, power, np.iinfo(np.int32).min // 2)


def total_log_likelihood(site_log, column_weights, ascertained) -> tuple[float, np.ndarray]:
    """Sum over columns, exactly rounded, and its derivative with respect to each site log-likelihood.

    ascertained: columns (bool, K) that stand for the patterns that cannot be observed (Lewis 2001, Mkv):
    log L = Σ w log L_j - W log(1 - Σ_ascertained L_j). Their own weights are 0.
    """
    weights = column_weights.astype(np.float64).copy()
    terms = list(weights * site_log)
    if ascertained.any():
        hidden = np.exp(site_log[ascertained])
        total = weights.sum()
        terms.append(-total * np.log1p(-hidden.sum()))
        weights[ascertained] += total * hidden / (1 - hidden.sum())
    return fsum(terms), weights


@dataclass(frozen=True)
class RootAdjoint:
    """q: (C, S, K) starts the pre-order pass; the others are derivatives of the fields of SiteModel of those
    names, root_frequencies (S,) of every process."""

    q: np.ndarray
    root_frequencies: list[np.ndarray]
    weights: np.ndarray
    invariant: float
    invariant_frequencies: np.ndarray


def root_adjoint(partials, exponents, model: SiteModel, invariant_states, site_log, weights) -> RootAdjoint:
    """d log L / d p_root, scaled as the pre-order pass wants it, and the gradient of what only the root sees.

    weights: (K,) from total_log_likelihood. Stored q[c, s, k] = true q · 2**exponents[c, k], so that
    stored q · stored p is the true product.
    """
    scale = weights * np.exp(exponents * np.log(2.0) - site_log)
    f = model.root_frequencies
    q = scale[:, None, :] * model.weights[:, None, None] * f[:, :, None]
    allowed = invariant_states.any(axis=1)  # elsewhere 1 / L may overflow, and does not matter
    constant = np.where(allowed, weights * np.exp(-np.where(allowed, site_log, 0.0)), 0.0)
    seen = np.einsum("ck,csk->cs", scale, partials)
    by_category, share = model.weights[:, None] * seen, constant @ invariant_states
    return RootAdjoint(
        q=q.astype(partials.dtype),
        root_frequencies=[by_category[model.process == k].sum(0) for k in range(len(model.processes))],
        weights=(seen * f).sum(1),
        invariant=float(share @ model.invariant_frequencies),
        invariant_frequencies=model.invariant * share,
    )
