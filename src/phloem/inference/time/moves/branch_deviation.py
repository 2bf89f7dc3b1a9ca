"""The rate of one branch."""

from __future__ import annotations

from phloem.inference.mcmc.compiled.random import normal
from phloem.inference.time.compiled.edit import random_subtree
from phloem.inference.time.move_table import Move


def branch_deviation(p):
    """ε of a branch, uniformly, plus N(0, tuning²): log Hastings ratio 0."""
    x = random_subtree(p)
    p.deviations[x] += p.tuning * normal(p.rng)
    return 0.0


MOVE = Move("branch_deviation", branch_deviation, 4, 1.0, 0.3, (1e-3, 10.0), needs="rates")
