"""Ages of nodes that are uniform below the root's, of tips of one time."""

from __future__ import annotations

import math

import numpy as np

from phloem.density.tree_priors.tree_prior import Genealogy, Parameters, TreePrior


def _parameters(scale, options) -> Parameters:
    return Parameters((), {}, np.zeros(0))


def _log_histories(n: int) -> float:
    """log of n! (n - 1) / 2^(n - 1): labelled histories over orders of the n - 2 nodes below the root."""
    return math.lgamma(n + 1.0) + math.log(n - 1.0) - (n - 1.0) * math.log(2.0)


def log_density(g: Genealogy, x: np.ndarray, settings: np.ndarray) -> float:
    """Given the root's age t: log p = (T-1) log 2 - log T! - log(T-1) - (T-2) log t, all labelled histories
    alike and the other nodes' ages uniform on (0, t) (Ronquist et al. 2012, Syst. Biol. 61:973; MrBayes'
    clock:uniform). The age itself has no density here: calibrate the root."""
    return -_log_histories(g.n_tips) - (g.n_tips - 2) * math.log(g.heights[g.order[-1]])


def density(g, x, settings, by_height, by_number):
    """The compiled form."""
    n, root = g.n_tips, g.order[g.order.shape[0] - 1]
    t = g.heights[root]
    by_height[root] -= (n - 2) / t
    histories = math.lgamma(n + 1.0) + math.log(n - 1.0) - (n - 1.0) * math.log(2.0)
    return -histories - (n - 2) * math.log(t)


PRIOR = TreePrior("uniform", _parameters, log_density, density, contemporaneous=True, needs_root=True)
