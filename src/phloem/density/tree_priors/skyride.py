"""The skyride: a population size for every interval between joinings, smooth in time."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.terms.gamma import Gamma
from phloem.density.tree_priors.tree_prior import LEVEL, Genealogy, Parameters, TreePrior, positive, spans


def _parameters(scale, options) -> Parameters:
    """T - 1 sizes, the youngest first, and the precision of their logarithms. settings: 1 where N_1 has a
    prior."""
    blocks = positive("pop_size", scale.time, scale.n_tips - 1), positive("precision", 1.0)
    return Parameters(blocks, {"precision": Gamma(0.001, 0.001)}, np.array([float(LEVEL in options)]))


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Of tree and sizes (Minin, Bloomquist and Suchard 2008, Mol. Biol. Evol. 25:1459, aware of time): the
    coalescent with N_j up to the j-th joining, and θ = log N with

        log p = (K-1)/2 log(P / 2π) - P/2 Σ_j w_j (θ_{j+1} - θ_j)² - Σ θ,   w_j = 2 t_root / (t_{j+1} -
        t_{j-1}),

    t_j the height of the j-th joining, t_0 of the youngest tip. As in BEAST 1, the weights w are relative to
    the age of the root, and ½ Σ log w_j is left out: the tree's own marginal density is then no coalescent's.
    Improper in the level of θ as the skygrid's."""
    begin, end, pairs, joins = spans(g)
    which = np.cumsum(joins) - joins
    total = -np.log(x[which[joins]]).sum() - (pairs * (end - begin) / x[which]).sum()
    t = np.concatenate([g.heights[g.order[:1]], end[joins]])
    theta, precision = np.log(x[:-1]), x[-1]
    weights = 2.0 * t[-1] / (t[2:] - t[:-2])
    half = 0.5 * (len(theta) - 1)
    total += half * np.log(precision / (2 * np.pi)) - 0.5 * precision * (weights * np.diff(theta) ** 2).sum()
    return float(total - theta[int(settings[0]) :].sum())


def density(g, x, settings, by_height, by_number):
    """The compiled form. d/dt_c as of a skyline with groups of one; of the weights dw_j = w_j (dt_root /
    t_root - (dt_{j+1} - dt_{j-1}) / (t_{j+1} - t_{j-1}))."""
    sizes, n = x.shape[0] - 1, g.order.shape[0]
    root, precision, half = g.order[n - 1], x[sizes], 0.5 * (sizes - 1)
    total = half * math.log(precision / (2.0 * math.pi))
    by_number[sizes] += half / precision
    k, j, last, before, two_before = 0, 0, 0.0, g.order[0], g.order[0]
    for i in range(n):
        node = g.order[i]
        t = g.heights[node]
        size = x[min(j, sizes - 1)]
        exposure = 0.5 * k * (k - 1) * (t - last) / size
        total -= exposure
        by_number[min(j, sizes - 1)] += exposure / size
        last = t
        if node < g.n_tips:
            by_height[node] += k / size
            k += 1
            continue
        total -= math.log(size)
        by_number[j] -= 1.0 / size
        by_height[node] -= 0.5 * k * (k - 1) / size
        k -= 1
        if j + 1 < sizes:
            by_height[node] += 0.5 * k * (k - 1) / x[j + 1]
        if j > 0 or settings[0] == 0.0:
            total -= math.log(size)
            by_number[j] -= 1.0 / size
        if j > 0:
            step, apart = math.log(size / x[j - 1]), t - g.heights[two_before]
            weight = 2.0 * g.heights[root] / apart
            field = 0.5 * precision * weight * step * step
            total -= field
            by_number[sizes] -= field / precision
            by_number[j] -= precision * weight * step / size
            by_number[j - 1] += precision * weight * step / x[j - 1]
            by_height[root] -= field / g.heights[root]
            by_height[node] += field / apart
            by_height[two_before] -= field / apart
        two_before, before, j = before, node, j + 1
    return total


PRIOR = TreePrior("skyride", _parameters, log_density, density, options=(LEVEL,), field=True)
