"""An extending walk of an attachment point along the tree: the step that extending SPR and TBR share.

Lakner, van der Mark, Huelsenbeck, Larget and Ronquist 2008, Systematic Biology 57:86 (eSPR and eTBR).
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.mcmc.compiled.unrooted import place, replace


@uncounted
def slide(adjacency, edge, rng, n_tips, v, s, p_extend):
    """Move internal node v, which carries s, along the rest of the tree. Returns (moved, carried, log
    Hastings ratio).

    v leaves its place between a and b, walks towards a across at least one node, at every node into either of
    the two branches ahead with probability ½, and goes on with probability p_extend until it stops or meets a
    tip. The branch between v and the side it walked along (returned as carried: v's neighbour) keeps its
    length, the one left behind passes to a–b, and the branch cut keeps its length beyond v: lengths are
    permuted, the Jacobian is 1.

    With b behind and f ahead at the end, forward and reverse walks share all factors but the choice of
    direction (½, or 1 where the other way is a tip) and of stopping (1 - p_extend, or 1 at a tip): ratio =
    [d(f) / d(b)] [stop(b) / stop(f)], d(tip) = 1, d(internal) = ½, stop(tip) = 1, stop(internal) = 1 -
    p_extend.
    """
    i = 0
    while adjacency[v, i] != s:
        i += 1
    a, b = adjacency[v, (i + 1) % 3], adjacency[v, (i + 2) % 3]
    if a < n_tips and b < n_tips:
        return False, a, 0.0
    if a < n_tips or (b >= n_tips and below(rng, 2) == 1):
        a, b = b, a
    kept, left_behind = edge[v, place(adjacency, v, a)], edge[v, place(adjacency, v, b)]
    replace(adjacency, edge, a, v, b, left_behind)
    replace(adjacency, edge, b, v, a, left_behind)
    here, behind = a, b
    while True:
        ahead = _either(adjacency, rng, here, behind)
        if ahead < n_tips or uniform(rng) >= p_extend:
            break
        here, behind = ahead, here
    beyond = edge[here, place(adjacency, here, ahead)]
    replace(adjacency, edge, here, ahead, v, kept)
    replace(adjacency, edge, ahead, here, v, beyond)
    j, k = (i + 1) % 3, (i + 2) % 3
    adjacency[v, j], edge[v, j] = here, kept
    adjacency[v, k], edge[v, k] = ahead, beyond
    ratio = math.log(2.0) if ahead < n_tips else -math.log(1.0 - p_extend)
    ratio += -math.log(2.0) if b < n_tips else math.log(1.0 - p_extend)
    return True, here, ratio


@uncounted
def _either(adjacency, rng, here, behind):
    """One of the two neighbours of here that are not behind, each with probability ½."""
    i = 0
    while adjacency[here, i] != behind:
        i += 1
    return adjacency[here, (i + 1 + below(rng, 2)) % 3]
