"""The coalescent of a population of constant size."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.terms.log_normal import LogNormal
from phloem.density.tree_priors.tree_prior import Genealogy, Parameters, TreePrior, adds_up, positive, spans


def _parameters(scale, options) -> Parameters:
    block = positive("pop_size", scale.time)
    return Parameters((block,), {"pop_size": LogNormal(math.log(scale.time), 2.0)}, np.zeros(0))


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """log p = -Σ_joinings log N - Σ_intervals k(k-1)/2 Δ / N (Kingman 1982, J. Appl. Probab. 19A:27; with
    dated tips Rodrigo and Felsenstein 1999). N: effective size times generation time, in the trees' unit."""
    begin, end, pairs, joins = spans(g)
    return float(-joins.sum() * np.log(x[0]) - (pairs * (end - begin)).sum() / x[0])


def density(g, x, settings, by_height, by_number):
    """The compiled form. d/dt_c = -(k_c - 1) / N, k_c lineages just below joining c, of a tip k_c / N."""
    size, k, exposure, joinings, last = x[0], 0, 0.0, 0, 0.0
    for i in range(g.order.shape[0]):
        node = g.order[i]
        t = g.heights[node]
        exposure += 0.5 * k * (k - 1) * (t - last)
        last = t
        if node < g.n_tips:
            by_height[node] += k / size
            k += 1
        else:
            by_height[node] -= (k - 1) / size
            joinings += 1
            k -= 1
    by_number[0] += (exposure / size - joinings) / size
    return -joinings * math.log(size) - exposure / size


def joining(t, x, settings, out):
    """At t, see TreePrior."""
    out[0], out[1] = -math.log(x[0]), t / x[0]
    return 0.0


PRIOR = TreePrior("constant", _parameters, log_density, density, joining=joining, log_mass=adds_up)
