"""A subtree is cut off and put where burn-in has seen it, at an age that the clade then had."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.compiled.edit import (
    branches_above,
    graft,
    height_above,
    log_range,
    parent_is_held,
    prune,
    random_subtree,
    top_of_places,
)
from phloem.inference.time.compiled.known_places import age_there, name_clades, seen_share
from phloem.inference.time.move_table import Move

ELSEWHERE = 0.01  # what all places together are worth that were never seen
LEAST = 1e-6  # of the distribution of an age, within the range there, so that it is drawn from


def learnt_spr(p):
    """A subtree i, uniformly, goes onto a branch x of the tree without it that reaches above i, with a
    probability w proportional to how often it was beside the tips below x in burn-in, and a little more for
    every branch; where that is its own branch nothing is proposed. The height is drawn from a logistic
    distribution with the mean and spread that it had there, within the range now, or as wilson_balding does
    where they are not known. The way back begins with the same rest and subtree: log Hastings ratio log (w ·
    density at its own place / there). Of MANY taxa mostly only a part of the tree is looked at, as by
    parsimony_spr."""
    i = random_subtree(p)
    if parent_is_held(p, i):
        return -math.inf
    before = p.heights[p.parent[i]]
    q, s = prune(p, i)
    top = top_of_places(p, s)
    if top < 0:
        return -math.inf
    name_clades(p)
    j = drawn_branch(p, i, top)
    if j == s:
        return -math.inf
    height = drawn_age(p, i, j)
    if not max(p.heights[i], p.heights[j]) < height:
        return -math.inf
    if p.parent[j] >= 0 and not height < p.heights[p.parent[j]]:
        return -math.inf
    ratio = math.log(worth(p, i, s)) - math.log(worth(p, i, j))
    ratio += log_density(p, i, s, before) - log_density(p, i, j, height)
    graft(p, i, q, j, height)
    return ratio


@uncounted
def worth(p, i, x):
    """Of branch x as a place for i, but for a factor."""
    below = p.known.below
    return seen_share(p.known, below[i], below[x]) + ELSEWHERE / p.heights.shape[0]


@uncounted
def drawn_branch(p, i, top):
    """A branch at or below node top, by what they are worth."""
    n, total = branches_above(p, top, i), 0.0
    for k in range(n):
        p.spots[k] = worth(p, i, p.edges[k])
        total += p.spots[k]
    left, k = uniform(p.rng) * total, 0
    while k < n - 1 and left > p.spots[k]:
        left -= p.spots[k]
        k += 1
    return p.edges[k]


@uncounted
def within(p, i, x):
    """Mean and scale of the age of i's parent above x, and the shares of its distribution below
    both ends of the range there; scale 0 where the range is not one for it."""
    mean, scale = age_there(p.known, p.known.below[i], p.known.below[x])
    if scale == 0.0:
        return 0.0, 0.0, 0.0, 0.0
    low = share_below(max(p.heights[i], p.heights[x]), mean, scale)
    high = share_below(p.heights[p.parent[x]], mean, scale) if p.parent[x] >= 0 else 1.0
    return mean, scale if high - low > LEAST else 0.0, low, high


@uncounted
def share_below(age, mean, scale):
    return 1.0 / (1.0 + math.exp(min((mean - age) / scale, 700.0)))


@uncounted
def drawn_age(p, i, x):
    mean, scale, low, high = within(p, i, x)
    if scale == 0.0:
        return height_above(p, i, x)
    u = low + uniform(p.rng) * (high - low)
    return mean + scale * (math.log(u) - math.log1p(-u))


@uncounted
def log_density(p, i, x, age):
    """Of an age that drawn_age draws."""
    mean, scale, low, high = within(p, i, x)
    if scale == 0.0:
        return -log_range(p, i, x, age)
    z = abs(age - mean) / scale
    return -z - 2.0 * math.log1p(math.exp(-z)) - math.log(scale * (high - low))


MOVE = Move("learnt_spr", learnt_spr, 16, tuning=0.2)
