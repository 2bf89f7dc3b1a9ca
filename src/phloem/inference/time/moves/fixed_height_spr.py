"""A subtree is cut off and put elsewhere at the same height."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below
from phloem.inference.time.compiled.edit import (
    graft,
    is_ancestor,
    lineages_below,
    prune,
    random_subtree,
    root_above,
    sibling,
)
from phloem.inference.time.move_table import Move


def fixed_height_spr(p):
    """A subtree, uniformly, goes with its parent, at the parent's height, onto a lineage drawn uniformly
    among those of the rest of the tree at that height: the same ones for the reverse, log Hastings ratio 0
    (Höhna, Defoin-Platel and Drummond 2008). All heights stay: a tip that is an ancestor becomes that of
    another lineage."""
    i = random_subtree(p)
    if is_ancestor(p, sibling(p, i)):
        return -math.inf  # whose place the parent is
    height = p.heights[p.parent[i]]
    q, s = prune(p, i)
    n = lineages_below(p, root_above(p, s), height, 0)
    j = p.edges[below(p.rng, n)]
    if j == s:
        return -math.inf
    graft(p, i, q, j, height)
    return 0.0


MOVE = Move("fixed_height_spr", fixed_height_spr, 8, holds=True)
