"""The root above its older child."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.compiled.edit import parent_is_held
from phloem.inference.time.move_table import Move


def root_height(p):
    """How far the root is above its older child, times m = exp(tuning (U - ½)): log Hastings ratio log m."""
    root = p.heights.shape[0] - 1
    if parent_is_held(p, p.left[root]):
        return -math.inf
    low = max(p.heights[p.left[root]], p.heights[p.right[root]])
    log_m = p.tuning * (uniform(p.rng) - 0.5)
    p.heights[root] = low + (p.heights[root] - low) * math.exp(log_m)
    return log_m


MOVE = Move("root_height", root_height, 2, 1.0, 0.3, (1e-4, 20.0), needs="root", holds=True)
