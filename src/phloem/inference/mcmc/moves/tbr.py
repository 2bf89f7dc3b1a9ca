"""Extending tree bisection and reconnection."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.unrooted import internal_branch, slide, stretch
from phloem.inference.mcmc.move_table import TOPOLOGY, Move


def extending_tbr(p):
    """Cut an internal branch u–v, uniformly; slide each end along its own half (compiled/unrooted.py); an end
    between two tips stays, and so it would in reverse. The cut branch and those carried along are multiplied
    by exp(tuning (U - ½)). Log Hastings ratio: both slides' plus the logs of the multipliers (Lakner et al.
    2008, Systematic Biology 57:86)."""
    u, v = internal_branch(p.adjacency, p.rng, p.n_tips)
    moved_u, carried_u, ratio_u = slide(p, u, v)
    moved_v, carried_v, ratio_v = slide(p, v, u)
    if not (moved_u or moved_v):
        return -math.inf
    ratio = ratio_u + ratio_v + stretch(p, u, v)
    if moved_u:
        ratio += stretch(p, u, carried_u)
    if moved_v:
        ratio += stretch(p, v, carried_v)
    return ratio


MOVE = Move("tbr", TOPOLOGY, extending_tbr, 5, 0.098)
