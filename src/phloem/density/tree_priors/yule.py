"""Births alone: the Yule process, of tips of one time."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.terms.exponential import Exponential
from phloem.density.tree_priors.tree_prior import (
    Genealogy,
    Parameters,
    TreePrior,
    positive,
    without_histories,
)


def _parameters(scale, options) -> Parameters:
    rate = max(math.log(scale.n_tips), 0.5) / scale.time
    return Parameters(
        (positive("birth_rate", rate),), {"birth_rate": Exponential(0.5 * scale.time)}, np.zeros(0)
    )


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """log p = (T-1) log λ - λ (Σ t_i + t_root), from the first split on (Yule 1925; Gernhard 2008, J. Theor.
    Biol. 253:769), without the coefficient of labelled histories."""
    t = g.heights[g.n_tips :]
    return float((g.n_tips - 1) * np.log(x[0]) - x[0] * (t.sum() + g.heights[g.order[-1]]))


def density(g, x, settings, by_height, by_number):
    """The compiled form."""
    n, time = g.order.shape[0], 0.0
    for i in range(g.n_tips, n):
        time += g.heights[i]
        by_height[i] -= x[0]
    root = g.order[n - 1]
    time += g.heights[root]
    by_height[root] -= x[0]
    by_number[0] += (g.n_tips - 1) / x[0] - time
    return (g.n_tips - 1) * math.log(x[0]) - x[0] * time


def joining(t, x, settings, out):
    """At t, see TreePrior."""
    out[0], out[1] = math.log(x[0]) - x[0] * t, 0.0
    return 0.0


PRIOR = TreePrior(
    "yule",
    _parameters,
    log_density,
    density,
    contemporaneous=True,
    joining=joining,
    log_mass=without_histories,
)
