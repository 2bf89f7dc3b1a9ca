"""How much the rate changes at a branch where it does."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below, normal
from phloem.inference.time.move_table import Move


def jump_walk(p):
    """One of the deviations that are not 0, uniformly, plus N(0, tuning²): log Hastings ratio 0."""
    n = 0
    for x in range(p.heights.shape[0] - 1):
        if p.deviations[x] != 0.0:
            p.edges[n] = x
            n += 1
    if n == 0:
        return -math.inf
    p.deviations[p.edges[below(p.rng, n)]] += p.tuning * normal(p.rng)
    return 0.0


MOVE = Move("jump_walk", jump_walk, 6, 0.5, 0.3, (1e-3, 10.0), needs="jumps")
