"""Extending subtree pruning and regrafting."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below
from phloem.inference.mcmc.compiled.unrooted import slide, stretch
from phloem.inference.mcmc.move_table import TOPOLOGY, Move


def extending_spr(p):
    """A subtree s at an internal node v, uniformly among the 3 (T - 2) directed branches, slides
    (compiled/unrooted.py); its branch and the one carried along are each multiplied by exp(tuning (U - ½)).
    Log Hastings ratio: that of the slide plus the logs of both multipliers (Lakner et al. 2008, Systematic
    Biology 57:86). A subtree that cannot move makes the proposal impossible."""
    v = p.n_tips + below(p.rng, p.n_tips - 2)
    s = p.adjacency[v, below(p.rng, 3)]
    moved, carried, ratio = slide(p, v, s)
    if not moved:
        return -math.inf
    ratio += stretch(p, v, s)
    return ratio + stretch(p, v, carried)


MOVE = Move("spr", TOPOLOGY, extending_spr, 5, 0.098)
