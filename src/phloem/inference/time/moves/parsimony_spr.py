"""A subtree is cut off and put where parsimony finds good places for it."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.parsimony import drawn_place, join, log_sum_without, price_of_meeting
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.compiled.edit import (
    graft,
    height_above,
    log_range,
    prune,
    random_subtree,
    root_above,
)
from phloem.inference.time.move_table import Move


def parsimony_spr(p):
    """A subtree i, uniformly, goes onto a branch x of the tree without it that reaches above i, with
    probability w_x / Σ w over all but its own, w = exp(-price · changes of the tree then), at a height that
    height_above draws. The way back begins with the same rest and subtree: log Hastings ratio log w_own - log
    w_x + log Σ_but_own w - log Σ_but_x w + log(range there / range here). After MrBayes' ParsSPR for unrooted
    trees (Zhang, Huelsenbeck and Ronquist 2020, Syst. Biol. 69:1016)."""
    i = random_subtree(p)
    before = p.heights[p.parent[i]]
    q, s = prune(p, i)
    cost, own = p.parsimony.cost, -1
    n = places(p, i, q, root_above(p, s))
    for k in range(n):
        if p.edges[k] == s:
            own = k
    total = log_sum_without(cost, 0, n, own)
    k = drawn_place(cost, 0, n, own, total, uniform(p.rng))
    if k < 0:
        return -math.inf
    j = p.edges[k]
    ratio = cost[k] - cost[own] + total - log_sum_without(cost, 0, n, k)
    height = height_above(p, i, j)
    ratio += log_range(p, i, j, height) - log_range(p, i, s, before)
    graft(p, i, q, j, height)
    return ratio


@uncounted
def places(p, i, q, root):
    """Branches of the tree without i and its parent q that reach above i: into p.edges, what the whole tree
    costs with i there into p.parsimony.cost but for a constant. Returns their number."""
    room, last = p.parsimony, p.heights.shape[0]
    spare, inside, n = 2 * last - 1, room.above, 0
    for x in p.order:  # row x: what lies below x
        if p.left[x] >= 0 and x != q:
            join(room, p.left[x], p.right[x], x)
    for at in range(last - 1, -1, -1):  # row last + x: what lies above x, without i
        x = p.order[at]
        up = p.parent[x]
        inside[x] = x == root or (x != q and up >= 0 and up != q and inside[up] == 1)
        if inside[x] == 0:
            continue
        row = x
        if x != root:
            beside, row = p.right[up] if p.left[up] == x else p.left[up], spare
            above = beside
            if up != root:
                above = last + x
                join(room, last + up, beside, above)
            else:
                _copy(room, beside, last + x)
            join(room, above, x, spare)
        if x == root or p.heights[up] > p.heights[i]:
            p.edges[n] = x
            room.cost[n] = price_of_meeting(room, row, i)
            n += 1
    return n


@uncounted
def _copy(room, x, out):
    for w in range(room.sets.shape[1]):
        room.sets[out, w] = room.sets[x, w]


MOVE = Move("parsimony_spr", parsimony_spr, 16, tuning=0.2, needs="characters", holds=True)
