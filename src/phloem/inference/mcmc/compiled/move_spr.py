"""Extending subtree pruning and regrafting."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.compile import compiled
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.mcmc.compiled.reflect import multiplied
from phloem.inference.mcmc.compiled.slide import slide
from phloem.inference.mcmc.compiled.unrooted import place, set_distance


@compiled
def extending_spr(adjacency, edge, n_tips, bounds, rng, width, p_extend):
    """A subtree s at an internal node v, uniformly among the 3 (T - 2) directed branches, slides
    (slide.py); its branch and the one carried along are each multiplied by exp(width (U - ½)). Log
    Hastings ratio: that of the slide plus the logs of both multipliers (Lakner et al. 2008). A subtree
    that cannot move makes the proposal impossible."""
    v = n_tips + below(rng, n_tips - 2)
    s = adjacency[v, below(rng, 3)]
    moved, carried, ratio = slide(adjacency, edge, rng, n_tips, v, s, p_extend)
    if not moved:
        return -math.inf
    ratio += stretch(adjacency, edge, bounds, rng, v, s, width) + stretch(
        adjacency, edge, bounds, rng, v, carried, width
    )
    return ratio


@compiled
def stretch(adjacency, edge, bounds, rng, x, y, width):
    """Multiply the branch x–y by exp(width (U - ½)); returns the log of new / old."""
    old = edge[x, place(adjacency, x, y)]
    new = multiplied(old, width * (uniform(rng) - 0.5), bounds[0], bounds[1])
    set_distance(adjacency, edge, x, y, new)
    return math.log(new / old)
