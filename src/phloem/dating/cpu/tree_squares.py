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

from phloem.hardware.numba_compile import compiled

S, T, R, A, B, C = range(6)  # columns of a ground: stiffness, slope and intercept of its place, cost left


@compiled()
def _add(into, ground):
    """A node with two grounds: the cost of their disagreement is what is left."""
    stiffness = into[S] + ground[S]
    if stiffness > 0.0:
        share = ground[S] / stiffness
        both, dt, dr = into[S] * share, into[T] - ground[T], into[R] - ground[R]
        into[A] += both * dt * dt
        into[B] -= both * dt * dr
        into[C] += both * dr * dr
        into[T] -= share * dt
        into[R] -= share * dr
        into[S] = stiffness
    into[A] += ground[A]
    into[B] += ground[B]
    into[C] += ground[C]


@compiled()
def _hold(ground, year):
    """A node that is at rate · year: what its ground costs there is left."""
    dt = year - ground[T]
    ground[A] += ground[S] * dt * dt
    ground[B] += ground[S] * dt * ground[R]
    ground[C] += ground[S] * ground[R] * ground[R]
    ground[S], ground[T], ground[R] = np.inf, year, 0.0


@compiled()
def _pass(ground, stiffness, offset, out):
    """The same ground at the other end of a branch, whose place is `offset` further."""
    out[:] = ground
    out[R] += offset
    if ground[S] == np.inf:
        out[S] = stiffness
    elif ground[S] + stiffness > 0.0:
        out[S] = ground[S] * stiffness / (ground[S] + stiffness)


@compiled()
def settle(parent, stiffness, offset, years, grounds, rate):
    """The positions (N,) that minimise the sum, and the rate: the best one where `rate` is negative.

    years: (N,) of nodes held there, NaN elsewhere. grounds: (N, 6), overwritten: what every node is tied to
    by itself; that of the root may hold a cost of the rate alone.
    """
    n = len(parent)
    message = np.empty(6)
    for x in range(n):
        if not np.isnan(years[x]):
            _hold(grounds[x], years[x])
        if x < n - 1:
            _pass(grounds[x], stiffness[x], -offset[x], message)
            _add(grounds[parent[x]], message)
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
    message, gathered = np.empty(6), np.empty(6)
    for x in range(n):
        if not np.isnan(years[x]):
            _hold(below[x], years[x])
        if x < n - 1:
            _pass(below[x], stiffness[x], -offset[x], message)
            _add(below[parent[x]], message)
    for p in range(n - 1, -1, -1):
        first, last = child_offsets[p], child_offsets[p + 1]
        gathered[:] = 0.0
        if p < n - 1:
            _pass(outside[p], stiffness[p], -offset[p], gathered)
        for i in range(first, last):
            c = child_index[i]
            outside[c] = gathered
            _pass(below[c], stiffness[c], -offset[c], message)
            _add(gathered, message)
        gathered[:] = 0.0
        for i in range(last - 1, first - 1, -1):
            c = child_index[i]
            _add(outside[c], gathered)
            _pass(below[c], stiffness[c], -offset[c], message)
            _add(gathered, message)
    return below, outside
