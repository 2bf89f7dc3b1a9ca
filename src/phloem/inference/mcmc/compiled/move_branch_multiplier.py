"""Multiply one branch length."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.compile import compiled
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.mcmc.compiled.reflect import multiplied


@compiled
def branch_multiplier(lengths, bounds, rng, width):
    """b' = b exp(width (U - ½)) for a branch chosen uniformly. Log Hastings ratio log(b'/b): the density
    of b' given b is 1 / (width b') (Lakner et al. 2008, Systematic Biology 57:86, "multiplier")."""
    x = 1 + below(rng, lengths.shape[0] - 1)
    old = lengths[x]
    lengths[x] = multiplied(old, width * (uniform(rng) - 0.5), bounds[0], bounds[1])
    return math.log(lengths[x] / old)
