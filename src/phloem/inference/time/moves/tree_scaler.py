"""All heights of internal nodes at once."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.compiled.edit import scale_heights
from phloem.inference.time.move_table import Move


def tree_scaler(p):
    """Heights of all T - 1 internal nodes, but those of tips that are ancestors, times m = exp(tuning (U -
    ½)): log Hastings ratio log m for each. A node that comes below a dated tip makes the proposal
    impossible."""
    log_m = p.tuning * (uniform(p.rng) - 0.5)
    return scale_heights(p, math.exp(log_m)) * log_m


MOVE = Move("tree_scaler", tree_scaler, 1, 0.2, 0.3, (1e-5, 10.0), needs="ages")
