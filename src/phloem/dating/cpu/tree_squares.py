"""Weighted least squares on a tree, in linear time.

Every node has a position θ, measured in substitutions; positions of dated nodes are rate × year. Minimised is

    Σ over branches  k_x (θ_x − θ_parent − o_x)²  +  Σ over nodes  s_x (θ_x − rate · t_x − r_x)².

Branches are springs of stiffness k and length o. What a subtree wants of its top is one spring to the ground:
stiffness s, at rate · t + r, with the cost a rate² − 2 b rate + c that remains in it. A spring k in series
with a ground s is the ground k s / (k + s); two grounds add up. Nothing is ever subtracted, so that springs
may be stiffer by fifteen orders of magnitude than others, which is how constraints hold.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled, uncounted

S, T, R, A, B, C = range(6)  # columns of a ground: stiffness, slope and intercept of its place, cost left


@uncounted
def _add(grounds, x, others, y):
    """Node x gets ground y of others as well: the cost of their disagreement is what is left."""
    stiffness = grounds[x, S] + others[y, S]
    if stiffness > 0.0:
        share = others[y, S] / stiffness
        both = grounds[x, S] * share
        dt, dr = grounds[x, T] - others[y, T], grounds[x, R] - others[y, R]
        grounds[x, A] += both * dt * dt
        grounds[x, B] -= both * dt * dr
        grounds[x, C] += both * dr * dr
        grounds[x, T] -= share * dt
        grounds[x, R] -= share * dr
        grounds[x, S] = stiffness
    grounds[x, A] += others[y, A]
    grounds[x, B] += others[y, B]
    grounds[x, C] += others[y, C]


@uncounted
def _hold(grounds, x, year):
    """A node that is at rate · year: what its ground costs there is left."""
    stiffness, dt, place = grounds[x, S], year - grounds[x, T], grounds[x, R]
    grounds[x, A] += stiffness * dt * dt
    grounds[x, B] += stiffness * dt * place
    grounds[x, C] += stiffness * place * place
    grounds[x, S], grounds[x, T], grounds[x, R] = np.inf, year, 0.0


@uncounted
def _pass(grounds, x, stiffness, offset, out):
    """The same ground at the other end of a branch, whose place is `offset` further, as out[0]."""
    own = grounds[x, S]
    through = own
    if own == np.inf:
        through = stiffness
    elif own + stiffness > 0.0:
        through = own * stiffness / (own + stiffness)
    out[0, S], out[0, T], out[0, R] = through, grounds[x, T], grounds[x, R] + offset
    out[0, A], out[0, B], out[0, C] = grounds[x, A], grounds[x, B], grounds[x, C]


@compiled()
def settle(parent, stiffness, offset, years, grounds, rate):
    """The positions (N,) that minimise the sum, and the rate: the best one where `rate` is negative.

    years: (N,) of nodes held there, NaN elsewhere. grounds: (N, 6), overwritten: what every node is tied to
    by itself; that of the root may hold a cost of the rate alone.
    """
    n = len(parent)
    message = np.empty((1, 6))
    for x in range(n):
        if not np.isnan(years[x]):
            _hold(grounds, x, years[x])
        if x < n - 1:
            _pass(grounds, x, stiffness[x], -offset[x], message)
            _add(grounds, parent[x], message, 0)
    root = n - 1
    if rate < 0.0:
        rate = grounds[root, B] / grounds[root, A] if grounds[root, A] > 0.0 else 0.0
    place = np.empty(n)
    place[root] = grounds[root, T] * rate + grounds[root, R]
    for x in range(n - 2, -1, -1):
        own, above = grounds[x, T] * rate + grounds[x, R], place[parent[x]] + offset[x]
        s, k = grounds[x, S], stiffness[x]
        if s == np.inf:
            place[x] = own
        elif s + k > 0.0:
            place[x] = (s * own + k * above) / (s + k)
        else:
            place[x] = above
    return place, rate


@compiled()
def both_sides(parent, child_offsets, child_index, stiffness, offset, years):
    """(N, 6) twice: what lies below every branch wants of its lower end, and all else of its upper end.

    Both as seen from a root on that branch: branches are `offset` long on the way from it. The costs of the
    two add up to that of the tree without the branch, each end where it wants to be.
    """
    n = len(parent)
    below, outside = np.zeros((n, 6)), np.zeros((n, 6))
    message, gathered = np.empty((1, 6)), np.empty((1, 6))
    for x in range(n):
        if not np.isnan(years[x]):
            _hold(below, x, years[x])
        if x < n - 1:
            _pass(below, x, stiffness[x], -offset[x], message)
            _add(below, parent[x], message, 0)
    for p in range(n - 1, -1, -1):
        first, last = child_offsets[p], child_offsets[p + 1]
        gathered[:] = 0.0
        if p < n - 1:
            _pass(outside, p, stiffness[p], -offset[p], gathered)
        for i in range(first, last):
            c = child_index[i]
            _add(outside, c, gathered, 0)
            _pass(below, c, stiffness[c], -offset[c], message)
            _add(gathered, 0, message, 0)
        gathered[:] = 0.0
        for i in range(last - 1, first - 1, -1):
            c = child_index[i]
            _add(outside, c, gathered, 0)
            _pass(below, c, stiffness[c], -offset[c], message)
            _add(gathered, 0, message, 0)
    return below, outside


@uncounted
def keep_order(parent, place):
    """Move what rounding has put after a child to that child."""
    for x in range(len(parent) - 1):
        if place[x] < place[parent[x]]:
            place[parent[x]] = place[x]
