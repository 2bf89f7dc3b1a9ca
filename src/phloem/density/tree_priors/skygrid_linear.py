"""The skygrid with the logarithm of the population size linear between the points of a grid: continuous, so
that gradients see everything."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.tree_priors.skygrid import grid_parameters, smoothing
from phloem.density.tree_priors.tree_prior import LEVEL, Genealogy, TreePrior, adds_up, spans


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """As the skygrid's, with log N(t) linear between the sizes at 0, spacing, 2·spacing, …, and constant
    after the last. The integrals of 1 / N by pieces: exp(-θ) is exponential in each."""
    begin, end, pairs, joins = spans(g)
    k, theta, spacing = len(x) - 1, np.log(x[:-1]), settings[0]
    grid = np.arange(k) * spacing
    total = -np.interp(end[joins], grid, theta).sum()
    for m in range(k):
        slope = (theta[m + 1] - theta[m]) / spacing if m + 1 < k else 0.0
        high = grid[m] + spacing if m + 1 < k else np.inf
        a, b = np.maximum(begin, grid[m]), np.minimum(end, high)
        inside = b > a
        step, start = np.where(inside, b - a, 0.0), np.exp(-theta[m] - slope * (a - grid[m]))
        u = -slope * step
        first = np.where(np.abs(u) < 1e-12, 1.0, np.expm1(u) / np.where(u == 0.0, 1.0, u))
        total -= (pairs * np.where(inside, start * step * first, 0.0)).sum()
    return float(total + smoothing(x, settings[1]))


def density(g, x, settings, by_height, by_number):
    """The compiled form. d/dt_c = -θ'(t_c) - (k_c - 1) / N(t_c), of a tip k_c / N(t_c)."""
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
            crosses = m + 1 < cells and (m + 1) * spacing <= t
            end = (m + 1) * spacing if crosses else t
            over = min(m + 1, cells - 1)
            slope = math.log(x[over] / x[m]) / spacing
            pairs, step = 0.5 * k * (k - 1), end - last
            if pairs > 0.0 and step > 0.0:
                u, start = -slope * step, pairs * math.exp(-slope * (last - m * spacing)) / x[m]
                if abs(u) < 1e-2:
                    first = 1.0 + u * (0.5 + u * (1.0 / 6.0 + u * (1.0 / 24.0 + u / 120.0)))
                    second = 0.5 + u * (1.0 / 3.0 + u * (0.125 + u * (1.0 / 30.0 + u / 144.0)))
                else:
                    first = math.expm1(u) / u
                    second = (math.exp(u) - first) / u
                exposure = start * step * first
                total -= exposure
                toward = ((last - m * spacing) * exposure + start * step * step * second) / spacing
                by_number[m] += (exposure - toward) / x[m]
                by_number[over] += toward / x[over]
            last = end
            if not crosses:
                break
            m += 1
        over = min(m + 1, cells - 1)
        slope = math.log(x[over] / x[m]) / spacing
        theta = math.log(x[m]) + slope * (t - m * spacing)
        if node < g.n_tips:
            by_height[node] += k * math.exp(-theta)
            k += 1
            continue
        share = (t - m * spacing) / spacing if m + 1 < cells else 0.0
        total -= theta
        by_number[m] -= (1.0 - share) / x[m]
        by_number[over] -= share / x[over]
        by_height[node] -= slope + (k - 1) * math.exp(-theta)
        k -= 1
    return total


PRIOR = TreePrior(
    "skygrid-linear", grid_parameters, log_density, density, options=("cutoff", LEVEL), log_mass=adds_up
)
