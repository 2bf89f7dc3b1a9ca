"""The rate of one branch, by a factor of its deviation."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import normal, uniform
from phloem.inference.time.compiled.edit import random_subtree
from phloem.inference.time.move_table import Move


def deviation_scaler(p):
    """ε of a branch, uniformly, times m = ± exp(tuning N(0, 1)), each sign as often: log Hastings ratio log
    |m|. For densities with a peak at 0 and heavy tails, where no one step is right."""
    log_m = p.tuning * normal(p.rng)
    x = random_subtree(p)
    p.deviations[x] *= math.exp(log_m) if uniform(p.rng) < 0.5 else -math.exp(log_m)
    return log_m


MOVE = Move("deviation_scaler", deviation_scaler, 12, 2.0, 0.3, (1e-2, 10.0), needs="peaked")
