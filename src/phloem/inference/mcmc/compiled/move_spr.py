"""Extending subtree pruning and regrafting."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.mcmc.compiled.reflect import multiplied
from phloem.inference.mcmc.compiled.slide import slide
from phloem.inference.mcmc.compiled.unrooted import place


@uncounted
def extending_spr(adjacency, edge, lengths, n_tips, bounds, rng, width, p_extend):
    """A subtree s at an internal node v, uniformly among the 3 (T - 2) directed branches, slides
    (slide.py); its branch and the one carried along are each multiplied by exp(width (U - ½)). Log
    Hastings ratio: that of the slide plus the logs of both multipliers (Lakner et al. 2008). A subtree
    that cannot move makes the proposal impossible."""
    v = n_tips + below(rng, n_tips - 2)
    s = adjacency[v, below(rng, 3)]
    moved, carried, ratio = slide(adjacency, edge, rng, n_tips, v, s, p_extend)
    if not moved:
        return -math.inf
    ratio += stretch(adjacency, edge, lengths, bounds, rng, v, s, width)
    return ratio + stretch(adjacency, edge, lengths, bounds, rng, v, carried, width)


@uncounted
def stretch(adjacency, edge, lengths, bounds, rng, x, y, width):
    """Multiply the branch x–y by exp(width (U - ½)), in every set of lengths (G, N) by a draw of its own;
    returns the log of new / old."""
    branch, ratio = edge[x, place(adjacency, x, y)], 0.0
    for g in range(lengths.shape[0]):
        old = lengths[g, branch]
        lengths[g, branch] = multiplied(old, width * (uniform(rng) - 0.5), bounds[0], bounds[1])
        ratio += math.log(lengths[g, branch] / old)
    return ratio
