"""A dated tip becomes an ancestor of others, or ceases to be one."""

from __future__ import annotations

import math

from phloem.density.clocks import WHITE_NOISE
from phloem.density.deviations import log_noise
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, gamma, normal, uniform
from phloem.inference.time.compiled.edit import (
    branches_above,
    graft,
    height_above,
    is_ancestor,
    log_range,
    prune,
    root_above,
    sibling,
)
from phloem.inference.time.move_table import Move

LOG_HALF = math.log(0.5)


def sampled_ancestor(p):
    """A dated tip f, uniformly, is cut off and, one time in two, put back onto its own branch, else onto one
    drawn uniformly among those of the rest that reach above it. Where the branch begins below f, it is
    an ancestor there with probability ½, on the branch itself; else f's parent gets a height as of
    wilson_balding. The old place is drawn alike from the new one: log Hastings ratio is log (½ or ½
    density of the height there / here), between densities of different dimensions (Gavryushkina et al. 2014,
    PLoS Comput. Biol. 10:e1003919; Heath et al. 2014). Rates of white noise, whose density depends on what a
    branch lasts, are drawn anew from theirs where that becomes or ceases to be nothing."""
    f = drawn_tip(p)
    if f < 0:
        return -math.inf
    before, was, s = p.heights[p.parent[f]], is_ancestor(p, f), sibling(p, f)
    if is_ancestor(p, s):
        return -math.inf  # the place of another one
    q, s = prune(p, f)
    ratio = -log_place(p, f, s, before, was)
    j = s
    if uniform(p.rng) < 0.5:
        j = p.edges[below(p.rng, branches_above(p, root_above(p, s), f))]
    if p.parent[j] >= 0 and p.heights[p.parent[j]] == p.heights[j]:
        return -math.inf  # a branch that lasts no time
    pinned = p.heights[j] < p.heights[f] and uniform(p.rng) < 0.5
    height = p.heights[f] if pinned else height_above(p, f, j)
    ratio += log_place(p, f, j, height, pinned)
    lasted = before - p.heights[f]
    graft(p, f, q, j, height)
    if p.clock == WHITE_NOISE and pinned != was:
        for c in range(p.branches.shape[0]):
            ratio += redraw(p, f, c, lasted)
    return ratio


@uncounted
def drawn_tip(p):
    """A tip that may be older than height 0, uniformly; -1 where there is none."""
    n = 0
    for x in range(p.n_tips):
        if p.tip_bounds[x, 1] > 0.0:
            p.edges[n] = x
            n += 1
    return p.edges[below(p.rng, n)] if n > 0 else -1


@uncounted
def log_place(p, f, j, height, pinned):
    """Minus the log density of f's place on the branch above j of the tree without it."""
    if pinned:
        return -LOG_HALF
    return log_range(p, f, j, height) - (LOG_HALF if p.heights[j] < p.heights[f] else 0.0)


@uncounted
def redraw(p, f, c, lasted):
    """The deviation of f's branch by clock c, that lasted so long, drawn from its density; returns minus the
    log density of the new one plus that of the old one."""
    old, rate, variance = p.branches[c, f], p.values[p.rates[c]], p.values[p.spreads[c]]
    lasts = p.heights[p.parent[f]] - p.heights[f]
    if lasts > 0.0:
        k = rate * lasts / variance
        # gamma of a small shape by one of a larger, which a number so near 0 needs
        new = math.log(gamma(p.rng, k + 1.0)) + math.log(uniform(p.rng)) / k - math.log(k)
    else:
        new = normal(p.rng)
    p.branches[c, f] = new
    return log_noise(old, rate * lasted / variance)[0] - log_noise(new, rate * lasts / variance)[0]


MOVE = Move("sampled_ancestor", sampled_ancestor, 12, tuning=0.2, needs="fossils", pins=True)
