"""The Bayesian skyline: population sizes that are constant between joinings, in groups of them."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.tree_priors.tree_prior import (
    LEVEL,
    Genealogy,
    Parameters,
    TreePrior,
    adds_up,
    positive,
    spans,
)


def _parameters(scale, options) -> Parameters:
    k = scale.n_pieces
    level = np.array([float(LEVEL in options)])
    return Parameters((positive("pop_size", scale.time, k),), {}, level, n_groups=k)


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Of tree and sizes (Drummond, Rambaut, Shapiro and Pybus 2005, Mol. Biol. Evol. 22:1185): log p =
    -Σ_joinings log N_G - Σ_intervals k(k-1)/2 Δ / N_G, an interval having the group of the joining that ends
    it or comes next; and smoothing, p(N_1) = 1/N_1 of the youngest group, N_j | N_{j-1} ~ Exponential(mean
    N_{j-1}). Sizes of groups are uniform over all compositions, a constant that is left out. Improper in the
    level of all sizes, but where N_1 has a prior of its own (settings[0] = 1), which then replaces 1/N_1."""
    begin, end, pairs, joins = spans(g)
    group = np.repeat(np.arange(len(g.groups)), g.groups)[np.cumsum(joins) - joins]
    size = x[group]
    tree = -np.log(size[joins]).sum() - (pairs * (end - begin) / size).sum()
    level = 0.0 if settings[0] else np.log(x[0])
    return float(tree - np.log(x).sum() + np.log(x[-1]) - level - (x[1:] / x[:-1]).sum())


def density(g, x, settings, by_height, by_number):
    """The compiled form. d/dt_c = -C(k, 2) / N_G + C(k - 1, 2) / N_G', G' the group of the next joining;
    of a tip k / N_G."""
    group, left, k, last, total, log_size, by_size = 0, g.groups[0], 0, 0.0, 0.0, math.log(x[0]), 1.0 / x[0]
    if settings[0] == 0.0:
        total = -math.log(x[0])
        by_number[0] -= 1.0 / x[0]
    for j in range(1, x.shape[0]):
        ratio = x[j] / x[j - 1]
        total -= math.log(x[j - 1]) + ratio
        by_number[j] -= 1.0 / x[j - 1]
        by_number[j - 1] += (ratio - 1.0) / x[j - 1]
    for i in range(g.order.shape[0]):
        node = g.order[i]
        t = g.heights[node]
        exposure = 0.5 * k * (k - 1) * (t - last) * by_size
        total -= exposure
        by_number[group] += exposure * by_size
        last = t
        if node < g.n_tips:
            by_height[node] += k * by_size
            k += 1
            continue
        total -= log_size
        by_number[group] -= by_size
        by_height[node] -= 0.5 * k * (k - 1) * by_size
        k -= 1
        left -= 1
        if left == 0 and group + 1 < x.shape[0]:
            group += 1
            left, log_size, by_size = g.groups[group], math.log(x[group]), 1.0 / x[group]
        by_height[node] += 0.5 * k * (k - 1) * by_size
    return total


PRIOR = TreePrior("skyline", _parameters, log_density, density, options=(LEVEL,), log_mass=adds_up)
