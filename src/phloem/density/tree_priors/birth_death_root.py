"""Births and deaths given the age of the root, of tips of one time."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.tree_priors.birth_death import birth_death_parameters
from phloem.density.tree_priors.tree_prior import Genealogy, Parameters, TreePrior


def _parameters(scale, options) -> Parameters:
    found = birth_death_parameters(scale, options)
    share = float(found.settings[0])
    species = math.floor(scale.n_tips / share + 0.5)
    return Parameters(found.blocks, found.priors, np.array([share, float(species)]))


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """r = λ - μ, a = μ/λ; n of m living species sampled, ρ = n/m (m the next whole number). Of the tree given
    the root's age t, and that both of its branches have living descendants (Höhna, Stadler, Ronquist and
    Britton 2011, Mol. Biol. Evol. 28:2577, equations 3 and A0; MrBayes' clock:birthdeath): with E(t) =
    exp(-r t), D(t) = ρ + (1-ρ-a) E(t),

        log p = log (m-1)/(n-1) + (m-2) log[(1-E) / (1-aE)] + 2 log[(1-a) E / (1-aE)]
              + (n-2) log[λ D / (ρ (1-E))] + Σ_{i below the root} (log ρ + 2 log(1-a) - r t_i - 2 log D(t_i)),

    λ = r / (1-a), E and D at t where none is said; without the coefficient of labelled histories. The age
    itself has no density here: calibrate the root."""
    (r, a), (rho, m), n = x, settings, g.n_tips
    below = g.heights[g.order[g.order >= n][:-1]]
    t = g.heights[g.order[-1]]
    e = np.exp(-r * t)
    each = np.log(rho) + 2 * np.log(1 - a) - r * below
    each -= 2 * np.log(rho + (1 - rho - a) * np.exp(-r * below))
    top = np.log((m - 1) / (n - 1)) + (m - 2) * np.log((1 - e) / (1 - a * e))
    top += 2 * np.log((1 - a) * e / (1 - a * e))
    top += (n - 2) * np.log(r / (1 - a) * (rho + (1 - rho - a) * e) / (rho * (1 - e)))
    return float(top + each.sum())


def density(g, x, settings, by_height, by_number):
    """The compiled form. Where f = log(1-E), dE/dt = -rE and dE/dr = -tE; likewise of all others."""
    r, a, rho, m, n = x[0], x[1], settings[0], settings[1], g.n_tips
    last = g.order.shape[0] - 1
    total, by_r, by_a = 0.0, 0.0, 0.0
    log_rho, log_rest = math.log(rho), math.log(1.0 - a)
    for i in range(last):
        node = g.order[i]
        if node < n:
            continue
        t = g.heights[node]
        decay = (1.0 - rho - a) * math.exp(-r * t)
        v = decay / (rho + decay)
        total += log_rho + 2.0 * log_rest - r * t - 2.0 * math.log(rho + decay)
        by_height[node] += r * (2.0 * v - 1.0)
        by_r += t * (2.0 * v - 1.0)
        by_a += 2.0 * math.exp(-r * t) / (rho + decay) - 2.0 / (1.0 - a)
    root = g.order[last]
    t = g.heights[root]
    e = math.exp(-r * t)
    born, lasting, d = 1.0 - e, 1.0 - a * e, rho + (1.0 - rho - a) * e
    total += math.log((m - 1.0) / (n - 1.0)) + (m - n) * math.log(born) - m * math.log(lasting)
    total += 2.0 * log_rest - 2.0 * r * t + (n - 2.0) * (math.log(r * d / rho) - log_rest)
    # by E, of which both time and r are exponents
    by_e = -(m - n) / born + m * a / lasting + (n - 2.0) * (1.0 - rho - a) / d
    by_height[root] += -r * e * by_e - 2.0 * r
    by_r += -t * e * by_e - 2.0 * t + (n - 2.0) / r
    by_a += m * e / lasting - 2.0 / (1.0 - a) + (n - 2.0) * (1.0 / (1.0 - a) - e / d)
    by_number[0] += by_r
    by_number[1] += by_a
    return total


PRIOR = TreePrior(
    "bd-root", _parameters, log_density, density, contemporaneous=True, options=("sampled",), needs_root=True
)
