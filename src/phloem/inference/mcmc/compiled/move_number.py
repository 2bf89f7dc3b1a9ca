"""Moves on single numbers: shapes, proportions, coordinates."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.mcmc.compiled.reflect import multiplied, shifted


@uncounted
def positive_multiplier(x, rng, width, low, high):
    """x[0]' = x[0] exp(width (U - ½)), reflected. Log Hastings ratio log(x'/x)."""
    old = x[0]
    x[0] = multiplied(old, width * (uniform(rng) - 0.5), low, high)
    return math.log(x[0] / old)


@uncounted
def unit_slider(x, rng, window, low, high):
    """x[0]' uniform in a window around x[0], reflected. Symmetric: log Hastings ratio 0."""
    x[0] = shifted(x[0], window * (uniform(rng) - 0.5), low, high)
    return 0.0


@uncounted
def real_slider(x, rng, window, low, high):
    """x[0]' uniform in a window around x[0], reflected at the bounds. Symmetric: log Hastings ratio 0."""
    x[0] = shifted(x[0], window * (uniform(rng) - 0.5), low, high)
    return 0.0
