"""Multiply one branch length."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below, multiplied, uniform
from phloem.inference.mcmc.move_table import LENGTHS, Move


def branch_multiplier(p):
    """b' = b exp(tuning (U - ½)) for a branch chosen uniformly. Log Hastings ratio log(b'/b): the density of
    b' given b is 1 / (tuning b') (Lakner et al. 2008, Systematic Biology 57:86, "multiplier")."""
    lengths = p.lengths[p.set]
    x = below(p.rng, lengths.shape[0] - 2)
    x += x >= p.beside
    old = lengths[x]
    lengths[x] = multiplied(old, p.tuning * (uniform(p.rng) - 0.5), p.low, p.high)
    return math.log(lengths[x] / old)


MOVE = Move("branch_multiplier", LENGTHS, branch_multiplier, 20, 1.386, 0.25, (1e-3, 20.0))
