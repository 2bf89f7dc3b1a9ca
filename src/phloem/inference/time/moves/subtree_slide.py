"""A subtree slides along the tree."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, normal
from phloem.inference.time.compiled.edit import (
    graft,
    lineages_below,
    parent_is_held,
    prune,
    random_subtree,
)
from phloem.inference.time.move_table import Move


def subtree_slide(p):
    """The parent of a subtree, uniformly, changes its height by N(0, tuning²), along the tree: up onto the
    lineage there is, above the root too, or down onto one of the lineages below, uniformly. log Hastings
    ratio: down, the log of their number; up, minus the log of how many lineages at the old height are below
    the new place (Höhna, Defoin-Platel and Drummond 2008)."""
    return slide(p, random_subtree(p))


@uncounted
def slide(p, i):
    """The same of a subtree i."""
    before = p.heights[p.parent[i]]
    height = before + p.tuning * normal(p.rng)
    if height <= p.heights[i] or parent_is_held(p, i):
        return -math.inf
    q, s = prune(p, i)
    j = s
    if height > before:
        while p.parent[j] >= 0 and p.heights[p.parent[j]] < height:
            j = p.parent[j]
        ratio = -math.log(lineages_below(p, j, before, 0))
    else:
        n = lineages_below(p, s, height, 0)
        if n == 0:
            return -math.inf
        j = p.edges[below(p.rng, n)]
        ratio = math.log(n)
    graft(p, i, q, j, height)
    return ratio


MOVE = Move("subtree_slide", subtree_slide, 12, 1.0, 0.3, (1e-9, 1e9), holds=True)
