"""Heights up and the clock down."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.compiled.edit import scale_heights
from phloem.inference.time.move_table import Move


def up_down(p):
    """Heights of all T - 1 internal nodes, but those of tips that are ancestors, times m = exp(tuning (U -
    ½)) and the rates of k clocks over m: log Hastings ratio (T - 1 - k) log m (Drummond et al. 2002). Branch
    lengths nearly stay."""
    log_m = p.tuning * (uniform(p.rng) - 0.5)
    factor = math.exp(log_m)
    n, k = scale_heights(p, factor), 0
    for c in range(p.rates.shape[0]):
        if p.free[c] != 0:
            p.values[p.rates[c]] /= factor
            k += 1
    return (n - k) * log_m


MOVE = Move("up_down", up_down, 2, 0.2, 0.3, (1e-5, 10.0), needs="rate ages")
