"""The coalescent of a population that grows exponentially."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.space import Block
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.normal import Normal
from phloem.density.terms.term import Family
from phloem.density.tree_priors.tree_prior import Genealogy, Parameters, TreePrior, positive, spans


def _parameters(scale, options) -> Parameters:
    growth = Block("growth_rate", "real", np.zeros(1), -1e300, 1e300)
    priors: dict[str, Family] = {
        "pop_size": LogNormal(math.log(scale.time), 2.0),
        "growth_rate": Normal(0.0, 10.0 / scale.time),
    }
    return Parameters((positive("pop_size", scale.time), growth), priors, np.zeros(0))


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """N(t) = N₀ exp(-γ t), t before the present: log p = Σ_joinings (γ t - log N₀) - Σ_intervals k(k-1)/2
    [exp(γ t)]_begin^end / (γ N₀) (Griffiths and Tavaré 1994, Phil. Trans. R. Soc. B 344:403)."""
    begin, end, pairs, joins = spans(g)
    size, growth = x
    if growth == 0.0:
        return float(-joins.sum() * np.log(size) - (pairs * (end - begin)).sum() / size)
    with np.errstate(over="ignore"):  # nobody lived then
        intensity = np.exp(growth * begin) * np.expm1(growth * (end - begin)) / growth
    return float((growth * end[joins] - np.log(size)).sum() - (pairs * intensity).sum() / size)


def density(g, x, settings, by_height, by_number):
    """The compiled form. d/dt_c = γ - (k_c - 1) / N(t_c), of a tip k_c / N(t_c). ∫ exp(γt) dt and ∫ t
    exp(γt) dt by expm1, or by their series where γΔ is small, which lead from one exp(γt) to the next (an
    error of a rounding each)."""
    size, growth = x[0], x[1]
    k, total, by_size, by_growth, last, grown = 0, 0.0, 0.0, 0.0, 0.0, 1.0
    log_size = math.log(size)
    for i in range(g.order.shape[0]):
        node = g.order[i]
        t = g.heights[node]
        pairs, step = 0.5 * k * (k - 1), t - last
        if step > 0.0:
            u, start = growth * step, grown / size
            if abs(u) < 1e-2:
                first = 1.0 + u * (0.5 + u * (1.0 / 6.0 + u * (1.0 / 24.0 + u / 120.0)))
                second = 0.5 + u * (1.0 / 3.0 + u * (0.125 + u * (1.0 / 30.0 + u / 144.0)))
                grown += grown * u * first
            else:
                first = math.expm1(u) / u
                second = (math.exp(u) - first) / u
                grown = math.exp(growth * t)
            if pairs > 0.0:
                exposure = pairs * start * step * first
                total -= exposure
                by_size += exposure / size
                by_growth -= last * exposure + pairs * start * step * step * second
        last = t
        if node < g.n_tips:
            by_height[node] += k * grown / size
            k += 1
        else:
            total += growth * t - log_size
            by_size -= 1.0 / size
            by_growth += t
            by_height[node] += growth - (k - 1) * grown / size
            k -= 1
    by_number[0] += by_size
    by_number[1] += by_growth
    return total


def joining(t, x, settings, out):
    """At t, see TreePrior."""
    size, growth = x[0], x[1]
    out[0] = growth * t - math.log(size)
    out[1] = math.expm1(growth * t) / (growth * size) if growth != 0.0 else t / size
    return 0.0


PRIOR = TreePrior("exponential", _parameters, log_density, density, joining=joining)
