"""The skygrid: population sizes that are constant in cells of a fixed grid of times."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.terms.gamma import Gamma
from phloem.density.tree_priors.tree_prior import (
    LEVEL,
    Genealogy,
    Parameters,
    TreePrior,
    adds_up,
    positive,
    spans,
)


def grid_parameters(scale, options) -> Parameters:
    """K sizes, and the precision of their logarithms. settings: the grid's spacing; 1 where N_1 has a
    prior."""
    k, cutoff = scale.n_pieces, float(options.get("cutoff") or scale.time)
    blocks = positive("pop_size", scale.time, k), positive("precision", 1.0)
    settings = np.array([cutoff / (k - 1), float(LEVEL in options)])
    shifts = {"pop_size": settings[0] * np.arange(1, k)}
    return Parameters(blocks, {"precision": Gamma(0.001, 0.001)}, settings, shifts=shifts)


def smoothing(x: np.ndarray, level: float) -> float:
    """Gaussian differences of θ = log N with precision P, as a density of N: (K-1)/2 log(P / 2π) - P/2
    Σ(θ_{m+1} - θ_m)² - Σ θ. Improper in the level of θ, but where N_1 has a prior of its own (level: 1),
    which then stands for -θ_1."""
    theta, precision = np.log(x[:-1]), x[-1]
    half = 0.5 * (len(theta) - 1)
    return float(
        half * np.log(precision / (2 * np.pi))
        - 0.5 * precision * (np.diff(theta) ** 2).sum()
        - theta[int(level) :].sum()
    )


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Of tree and sizes (Gill et al. 2013, Mol. Biol. Evol. 30:713): log p = -Σ_joinings log N(t) -
    Σ_intervals k(k-1)/2 ∫ dt / N(t), N(t) = N_m in cell m, from (m-1)·spacing on, the last cell open."""
    begin, end, pairs, joins = spans(g)
    k, total = len(x) - 1, 0.0
    cell = np.minimum((end[joins] / settings[0]).astype(int), k - 1)
    total -= np.log(x[cell]).sum()
    for m in range(k):
        low, high = m * settings[0], (m + 1) * settings[0] if m + 1 < k else np.inf
        inside = np.clip(np.minimum(end, high) - np.maximum(begin, low), 0.0, None)
        total -= (pairs * inside).sum() / x[m]
    return float(total + smoothing(x, settings[1]))


def density(g, x, settings, by_height, by_number):
    """The compiled form. Where a joining crosses a grid point the density jumps, which d/dt_c = -(k_c - 1) /
    N(t_c), of a tip k_c / N(t_c), does not know: leapfrog steps stay valid and cost acceptance."""
    cells, spacing, total = x.shape[0] - 1, settings[0], 0.0
    half = 0.5 * (cells - 1)
    total += half * math.log(x[cells] / (2.0 * math.pi))
    by_number[cells] += half / x[cells]
    for m in range(cells):
        if m > 0 or settings[1] == 0.0:
            total -= math.log(x[m])
            by_number[m] -= 1.0 / x[m]
        if m > 0:
            step = math.log(x[m] / x[m - 1])
            total -= 0.5 * x[cells] * step * step
            by_number[cells] -= 0.5 * step * step
            by_number[m] -= x[cells] * step / x[m]
            by_number[m - 1] += x[cells] * step / x[m - 1]
    k, m, last = 0, 0, 0.0
    for i in range(g.order.shape[0]):
        node = g.order[i]
        t = g.heights[node]
        while True:
            end = t
            if m + 1 < cells and (m + 1) * spacing <= t:
                end = (m + 1) * spacing
            exposure = 0.5 * k * (k - 1) * (end - last) / x[m]
            total -= exposure
            by_number[m] += exposure / x[m]
            last = end
            if m + 1 < cells and (m + 1) * spacing <= t:
                m += 1
            else:
                break
        if node < g.n_tips:
            by_height[node] += k / x[m]
            k += 1
        else:
            total -= math.log(x[m])
            by_number[m] -= 1.0 / x[m]
            by_height[node] -= (k - 1) / x[m]
            k -= 1
    return total


def joining(t, x, settings, out):
    """At t, see TreePrior."""
    cells, spacing, m, waited = x.shape[0] - 1, settings[0], 0, 0.0
    while m + 1 < cells and (m + 1) * spacing <= t:
        waited += spacing / x[m]
        m += 1
    out[0], out[1] = -math.log(x[m]), waited + (t - m * spacing) / x[m]
    return 0.0


PRIOR = TreePrior(
    "skygrid",
    grid_parameters,
    log_density,
    density,
    options=("cutoff", LEVEL),
    joining=joining,
    field=True,
    stepped=True,
    log_mass=adds_up,
)
