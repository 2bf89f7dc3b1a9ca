"""The rate changes at a branch, or no longer does."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import normal
from phloem.inference.time.compiled.edit import random_subtree
from phloem.inference.time.move_table import Move


def jump_flip(p):
    """A branch, uniformly: a deviation of 0 becomes N(0, tuning²), another 0. log Hastings ratio: minus the
    log density of what is drawn, or plus that of what is given up (Green 1995, Biometrika 82:711)."""
    x = random_subtree(p)
    drawn = p.deviations[x] == 0.0
    value = p.tuning * normal(p.rng) if drawn else p.deviations[x]
    p.deviations[x] = value if drawn else 0.0
    ratio = 0.5 * (value / p.tuning) ** 2 + math.log(p.tuning) + 0.5 * math.log(2.0 * math.pi)
    return ratio if drawn else -ratio


MOVE = Move("jump_flip", jump_flip, 12, 1.0, needs="jumps")
