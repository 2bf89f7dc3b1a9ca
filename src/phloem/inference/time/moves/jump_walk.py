"""How much the rate changes at a branch where it does."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import normal
from phloem.inference.time.compiled.edit import chosen_jump
from phloem.inference.time.move_table import Move


def jump_walk(p):
    """One of the deviations that are not 0, uniformly, plus N(0, tuning²): log Hastings ratio 0."""
    x = chosen_jump(p)
    if x < 0:
        return -math.inf
    p.deviations[x] += p.tuning * normal(p.rng)
    return 0.0


MOVE = Move("jump_walk", jump_walk, 6, 0.5, 0.3, (1e-3, 10.0), needs="jumps")
