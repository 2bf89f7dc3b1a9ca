"""Multiply a positive number."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below, multiplied, uniform
from phloem.inference.mcmc.move_table import Move


def multiplier(p):
    """x' = x exp(tuning (U - ½)), reflected, for one number of the block. Log Hastings ratio log(x'/x)."""
    x = p.numbers
    i = below(p.rng, x.shape[0]) if x.shape[0] > 1 else 0
    old = x[i]
    x[i] = multiplied(old, p.tuning * (uniform(p.rng) - 0.5), p.low, p.high)
    return math.log(x[i] / old)


MOVE = Move("multiplier", ("positive",), multiplier, 1, 0.811, 0.25, (1e-3, 20.0))
