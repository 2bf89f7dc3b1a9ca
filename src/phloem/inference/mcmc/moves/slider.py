"""Shift a number."""

from __future__ import annotations

from phloem.inference.mcmc.compiled.random import below, shifted, uniform
from phloem.inference.mcmc.move_table import Move


def slider(p):
    """x' uniform in a window around x, reflected at the bounds, for one number of the block. Symmetric: log
    Hastings ratio 0."""
    x = p.numbers
    i = below(p.rng, x.shape[0]) if x.shape[0] > 1 else 0
    x[i] = shifted(x[i], p.tuning * (uniform(p.rng) - 0.5), p.low, p.high)
    return 0.0


MOVE = Move("slider", ("unit", "interval", "real"), slider, 1, 0.1, 0.25, (1e-3, 1.0))
