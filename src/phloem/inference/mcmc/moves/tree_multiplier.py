"""Multiply all branch lengths of a set."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.mcmc.move_table import LENGTHS, Move


def tree_multiplier(p):
    """b' = m b for all B branches, m = exp(tuning (U - ½)). Log Hastings ratio B log m: the Jacobian of the B
    coordinates (Green 1995, Biometrika 82:711). A length that leaves its bounds makes the proposal
    impossible."""
    lengths = p.lengths[p.set]
    log_factor = p.tuning * (uniform(p.rng) - 0.5)
    factor = math.exp(log_factor)
    for x in range(lengths.shape[0] - 1):
        if x != p.beside:
            lengths[x] *= factor
            if not (p.low <= lengths[x] <= p.high):
                return -math.inf
    return (lengths.shape[0] - 2) * log_factor


MOVE = Move("tree_multiplier", LENGTHS, tree_multiplier, 3, 1.386, 0.25, (1e-4, 20.0))
