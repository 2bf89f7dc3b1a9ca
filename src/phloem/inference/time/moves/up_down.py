"""Heights up and the clock down."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.move_table import Move


def up_down(p):
    """Heights of all T - 1 internal nodes times m = exp(tuning (U - ½)) and the clock's rate over m: log
    Hastings ratio (T - 2) log m (Drummond et al. 2002). Branch lengths nearly stay."""
    log_m = p.tuning * (uniform(p.rng) - 0.5)
    factor = math.exp(log_m)
    for x in range(p.n_tips, p.heights.shape[0]):
        p.heights[x] *= factor
    p.values[p.rate] /= factor
    return (p.n_tips - 2) * log_m


MOVE = Move("up_down", up_down, 2, 0.2, 0.3, (1e-5, 10.0), needs="rate")
