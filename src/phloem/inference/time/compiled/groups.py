"""Groups of joinings, and their population sizes, that follow a joining which a move took elsewhere.

A skyline counts joinings: one that leaves its group makes all between its old and its new place change
their groups, and where sizes differ a hundredfold that costs tens of log units. So one time in two groups
keep their times instead, and sizes of the two groups that changed are drawn anew one time in two.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import gamma, uniform


class Grouped(NamedTuple):
    """A tree and its groups. order: (N,) nodes by height; heights (N,); groups, sizes: (K,) how many joinings
    have a population size, from the youngest on."""

    order: np.ndarray
    heights: np.ndarray
    groups: np.ndarray
    sizes: np.ndarray


@uncounted
def follow(rng, old, new):
    """Let new.groups follow the one joining whose height is another than in old, and perhaps new.sizes;
    nothing happens unless it is one. Returns the log Hastings ratio, -inf where a group would be empty."""
    gone, came = one_exchanged(old, new)
    if gone < 0 or came < 0:
        return 0.0
    left = _group_of(old.groups, gone)
    ratio, joined = groups_follow(rng, new.groups, gone, came) if gone != came else (0.0, left)
    if ratio > -math.inf and uniform(rng) < 0.5:
        ratio += _drawn_anew(rng, old, new, left)
        if joined != left:
            ratio += _drawn_anew(rng, old, new, joined)
    return ratio


@uncounted
def groups_follow(rng, groups, gone, came):
    """A joining that had gone younger ones has came now: its group has one less, that in whose time it is now
    one more, either of two with probability ½ between them. Returns the log Hastings ratio, -inf where a
    group would be empty, and the group that it joined."""
    left = _group_of(groups, gone)
    if groups[left] == 1:
        return -math.inf, left
    groups[left] -= 1
    last, ratio = groups.sum() - 1, 0.0
    before, after = _group_of(groups, max(came - 1, 0)), _group_of(groups, min(came, last))
    if before != after:
        ratio += math.log(2.0)
    if _group_of(groups, max(gone - 1, 0)) != _group_of(groups, min(gone, last)):
        ratio -= math.log(2.0)
    joined = before if before == after or uniform(rng) < 0.5 else after
    groups[joined] += 1
    return ratio, joined


@uncounted
def _drawn_anew(rng, old, new, g):
    """The size of group g as if the coalescent and 1 / N told of it, inverse gamma(joinings, exposure); the
    log density of the old one by the old tree less that of the new one by the new tree."""
    here, there = _exposure(old, g), _exposure(new, g)
    if not (here > 0.0 and there > 0.0):
        return -math.inf
    new.sizes[g] = there / gamma(rng, float(new.groups[g]))
    return _log_inverse_gamma(old.sizes[g], float(old.groups[g]), here) - _log_inverse_gamma(
        new.sizes[g], float(new.groups[g]), there
    )


@uncounted
def _log_inverse_gamma(x, shape, scale):
    return shape * math.log(scale) - math.lgamma(shape) - (shape + 1.0) * math.log(x) - scale / x


@uncounted
def _exposure(tree, g):
    """Σ k(k-1)/2 Δ over the time of group g, k lineages at a time."""
    first, k, j, last, total = 0, 0, 0, 0.0, 0.0
    for i in range(g):
        first += tree.groups[i]
    n_tips = (tree.order.shape[0] + 1) // 2
    for x in tree.order:
        if first <= j < first + tree.groups[g]:
            total += 0.5 * k * (k - 1) * (tree.heights[x] - last)
        last = tree.heights[x]
        k += 1 if x < n_tips else -1
        j += x >= n_tips
    return total


@uncounted
def _group_of(groups, rank):
    """The group of a joining, by how many are younger."""
    g, end = 0, groups[0]
    while rank >= end:
        g += 1
        end += groups[g]
    return g


@uncounted
def one_exchanged(old, new):
    """How many joinings are younger than the one that only the old heights have, and than the one that only
    the new ones have; -1, -1 where these are none or several."""
    n_tips, gone, came = (old.order.shape[0] + 1) // 2, -1, -1
    i, j, at, to, n = 0, 0, 0, 0, n_tips - 1
    while i < n or j < n:
        while i < n and old.order[at] < n_tips:
            at += 1
        while j < n and new.order[to] < n_tips:
            to += 1
        a = old.heights[old.order[at]] if i < n else math.inf
        b = new.heights[new.order[to]] if j < n else math.inf
        if (a < b and gone >= 0) or (b < a and came >= 0):
            return -1, -1
        if a < b:
            gone = i
        elif b < a:
            came = j
        if a <= b:
            i, at = i + 1, at + 1
        if b <= a:
            j, to = j + 1, to + 1
    return gone, came
