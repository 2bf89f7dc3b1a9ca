"""All heights of internal nodes at once."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.move_table import Move


def tree_scaler(p):
    """Heights of all T - 1 internal nodes times m = exp(tuning (U - ½)): log Hastings ratio (T - 1) log m.
    A node that comes below a dated tip makes the proposal impossible."""
    log_m = p.tuning * (uniform(p.rng) - 0.5)
    factor = math.exp(log_m)
    for x in range(p.n_tips, p.heights.shape[0]):
        p.heights[x] *= factor
    return (p.n_tips - 1) * log_m


MOVE = Move("tree_scaler", tree_scaler, 1, 0.2, 0.3, (1e-5, 10.0))
