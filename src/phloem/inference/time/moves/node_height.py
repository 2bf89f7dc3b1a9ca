"""One internal node between its parent and its older child."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.time.compiled.edit import parent_is_held
from phloem.inference.time.move_table import Move


def node_height(p):
    """An internal node but the root, uniformly, to a height uniform between its older child and its parent:
    log Hastings ratio 0 (Drummond et al. 2002)."""
    if p.n_tips < 3:
        return -math.inf
    x = p.n_tips + below(p.rng, p.n_tips - 2)
    if parent_is_held(p, p.left[x]):
        return -math.inf
    low = max(p.heights[p.left[x]], p.heights[p.right[x]])
    p.heights[x] = low + uniform(p.rng) * (p.heights[p.parent[x]] - low)
    return 0.0


MOVE = Move("node_height", node_height, 6, holds=True)
