"""A subtree is cut off and put anywhere."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below
from phloem.inference.time.compiled.edit import (
    branches_above,
    graft,
    height_above,
    log_range,
    parent_is_held,
    prune,
    random_subtree,
    root_above,
)
from phloem.inference.time.move_table import Move


def wilson_balding(p):
    """A subtree i, uniformly, goes onto a branch drawn uniformly among those of the tree without it that
    reach above i, at a uniform height of its range, or above the root by an exponential with mean tuning
    times the height it starts from. How many branches there are depends on the rest of the tree alone, so
    log Hastings ratio is log(new range / old range), of the exponential the inverse density (Wilson and
    Balding 1998, Genetics 150:499)."""
    i = random_subtree(p)
    if parent_is_held(p, i):
        return -math.inf
    before = p.heights[p.parent[i]]
    q, s = prune(p, i)
    ratio = -log_range(p, i, s, before)
    n = branches_above(p, root_above(p, s), i)
    j = p.edges[below(p.rng, n)]
    height = height_above(p, i, j)
    ratio += log_range(p, i, j, height)
    graft(p, i, q, j, height)
    return ratio


MOVE = Move("wilson_balding", wilson_balding, 4, tuning=0.2, holds=True)
