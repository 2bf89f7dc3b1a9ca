"""Subtree pruning and regrafting, to places that parsimony finds good."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.parsimony import drawn_place, insertion_costs, log_sum_without
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.mcmc.compiled.unrooted import others, regraft, stretch
from phloem.inference.mcmc.move_table import TOPOLOGY, Move


def parsimony_spr(p):
    """A subtree s at an internal node v, uniformly among the 3 (T - 2) directed branches, is put into another
    branch x of the rest of the tree with probability w_x / Σ w over all but its own, w = exp(-price · changes
    of the tree then). The way back starts from the same rest and subtree: log Hastings ratio log w_own - log
    w_x + log Σ_but_own w - log Σ_but_x w, plus the logs of the multipliers of the two branches that go along
    (after MrBayes 3.2's ParsSPR; Zhang, Huelsenbeck and Ronquist 2020, Syst. Biol. 69:1016)."""
    v = p.n_tips + below(p.rng, p.n_tips - 2)
    s = p.adjacency[v, below(p.rng, 3)]
    a, b = others(p.adjacency, v, s)
    if a < p.n_tips and b < p.n_tips:
        return -math.inf
    cost = p.parsimony.cost
    first, place_b, end = insertion_costs(p.adjacency, p.n_tips, v, s, p.parsimony)
    total = log_sum_without(cost, first, end, first)
    i = drawn_place(cost, first, end, first, total, uniform(p.rng))
    ratio = cost[i] - cost[first] + total - log_sum_without(cost, first, end, i)
    if i > place_b:
        a, b = b, a
    ahead = p.parsimony.node[i]
    here = p.parsimony.above[ahead]
    regraft(p.adjacency, p.edge, v, s, (a, b), (here, ahead))
    return ratio + stretch(p, v, s) + stretch(p, v, here)


MOVE = Move("parsimony_spr", TOPOLOGY, parsimony_spr, 5, 0.098, parsimony=True)
