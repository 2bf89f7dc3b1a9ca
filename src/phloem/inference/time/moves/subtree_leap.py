"""A subtree leaps to any place at one distance."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, normal
from phloem.inference.time.compiled.edit import (
    graft,
    parent_is_held,
    prune,
    random_subtree,
    spots_at_distance,
)
from phloem.inference.time.move_table import Move


def subtree_leap(p):
    """The parent of a subtree, uniformly, goes to one of the points of the rest of the tree that are |N(0,
    tuning²)| away along it and above the subtree, uniformly. log Hastings ratio: log of their number here
    over that there (Baele et al. 2025, Nat. Methods 22:1653)."""
    return leap(p, random_subtree(p))


@uncounted
def leap(p, i):
    """The same of a subtree i."""
    if parent_is_held(p, i):
        return -math.inf
    before, floor = p.heights[p.parent[i]], p.heights[i]
    distance = abs(p.tuning * normal(p.rng))
    q, s = prune(p, i)
    n = spots_at_distance(p, s, before, distance, floor)
    k = below(p.rng, n)
    j, height = p.edges[k], p.spots[k]
    back = spots_at_distance(p, j, height, distance, floor)
    graft(p, i, q, j, height)
    return math.log(n / back)


MOVE = Move("subtree_leap", subtree_leap, 8, 1.0, 0.25, (1e-9, 1e9), holds=True)
