"""Births and deaths, of tips of one time, all of them or a sample."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.space import Block
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.term import Family
from phloem.density.terms.uniform import Uniform
from phloem.density.tree_priors.tree_prior import (
    Genealogy,
    Parameters,
    TreePrior,
    positive,
    without_histories,
)


def birth_death_parameters(scale, options) -> Parameters:
    """Net diversification, relative death; settings: the share of the living that is sampled."""
    rate = max(math.log(scale.n_tips), 0.5) / scale.time
    death = Block("relative_death", "unit", np.array([0.5]), 0.0, 1.0)
    priors: dict[str, Family] = {
        "net_diversification": Exponential(0.5 * scale.time),
        "relative_death": Uniform(0.0, 1.0),
    }
    settings = np.array([float(options.get("sampled") or 1.0)])
    return Parameters((positive("net_diversification", rate), death), priors, settings)


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """r = λ - μ, a = μ/λ, a share ρ of the living sampled: log p = (T-1) log(rρ) + T log(1-a) + Σ_i [-r t_i -
    2 log D(t_i)] - r t_root - log D(t_root), D(t) = ρ + (1-ρ-a) exp(-r t) (Gernhard 2008; Stadler 2009, J.
    Theor. Biol. 261:58), without the coefficient of labelled histories."""
    (r, a), rho, t = x, settings[0], g.heights[g.n_tips :]
    root = g.heights[g.order[-1]]
    each = -r * t - 2 * np.log(rho + (1 - rho - a) * np.exp(-r * t))
    top = -r * root - np.log(rho + (1 - rho - a) * np.exp(-r * root))
    return float((g.n_tips - 1) * np.log(r * rho) + g.n_tips * np.log(1 - a) + each.sum() + top)


def density(g, x, settings, by_height, by_number):
    """The compiled form. With v = (1-ρ-a) exp(-rt) / D: d/dt_i = -r + 2rv, of the root another -r + rv."""
    r, a, rho, n = x[0], x[1], settings[0], g.order.shape[0]
    total = (g.n_tips - 1) * math.log(r * rho) + g.n_tips * math.log(1.0 - a)
    by_r, by_a = (g.n_tips - 1) / r, -g.n_tips / (1.0 - a)
    for i in range(g.n_tips, n + 1):
        node = i if i < n else g.order[n - 1]
        times = 2.0 if i < n else 1.0
        t = g.heights[node]
        decay = math.exp(-r * t)
        d = rho + (1.0 - rho - a) * decay
        v = (1.0 - rho - a) * decay / d
        total -= r * t + times * math.log(d)
        by_height[node] += r * (times * v - 1.0)
        by_r += t * (times * v - 1.0)
        by_a += times * decay / d
    by_number[0] += by_r
    by_number[1] += by_a
    return total


def joining(t, x, settings, out):
    """At t, see TreePrior."""
    r, a, rho = x[0], x[1], settings[0]
    d = rho + (1.0 - rho - a) * math.exp(-r * t)
    out[0], out[1] = math.log(r * rho) - r * t - 2.0 * math.log(d), 0.0
    return 0.0


PRIOR = TreePrior(
    "bd",
    birth_death_parameters,
    log_density,
    density,
    contemporaneous=True,
    options=("sampled",),
    joining=joining,
    log_mass=without_histories,
)
