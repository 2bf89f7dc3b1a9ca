"""Multiply every branch length by one factor."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.compile import compiled
from phloem.inference.mcmc.compiled.random import uniform


@compiled
def tree_multiplier(lengths, bounds, rng, width):
    """b' = m b for all B branches, m = exp(width (U - ½)). Log Hastings ratio B log m: the Jacobian of the
    B coordinates (Green 1995, Biometrika 82:711). A length that leaves its bounds makes the proposal
    impossible."""
    log_factor = width * (uniform(rng) - 0.5)
    factor = math.exp(log_factor)
    for x in range(1, lengths.shape[0]):
        lengths[x] *= factor
        if not (bounds[0] <= lengths[x] <= bounds[1]):
            return -math.inf
    return (lengths.shape[0] - 1) * log_factor
