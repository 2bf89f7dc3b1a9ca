"""Extending tree bisection and reconnection."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.move_nni import internal_branch
from phloem.inference.mcmc.compiled.move_spr import stretch
from phloem.inference.mcmc.compiled.slide import slide


@uncounted
def extending_tbr(adjacency, edge, lengths, n_tips, bounds, rng, width, p_extend):
    """Cut an internal branch u–v, uniformly; slide each end along its own half (slide.py); an end between
    two tips stays, and so it would in reverse. The cut branch and those carried along are multiplied by
    exp(width (U - ½)). Log Hastings ratio: both slides' plus the logs of the multipliers (Lakner et al.
    2008)."""
    u, v = internal_branch(adjacency, rng, n_tips)
    moved_u, carried_u, ratio_u = slide(adjacency, edge, rng, n_tips, u, v, p_extend)
    moved_v, carried_v, ratio_v = slide(adjacency, edge, rng, n_tips, v, u, p_extend)
    if not (moved_u or moved_v):
        return -math.inf
    ratio = ratio_u + ratio_v + stretch(adjacency, edge, lengths, bounds, rng, u, v, width)
    if moved_u:
        ratio += stretch(adjacency, edge, lengths, bounds, rng, u, carried_u, width)
    if moved_v:
        ratio += stretch(adjacency, edge, lengths, bounds, rng, v, carried_v, width)
    return ratio
