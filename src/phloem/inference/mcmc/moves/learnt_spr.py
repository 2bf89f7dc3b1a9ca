"""Subtree pruning and regrafting along splits that the chains have had, at lengths that go with them."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.known_splits import fit_length, name_splits, place_of, seen_share
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.mcmc.compiled.unrooted import regraft
from phloem.inference.mcmc.move_table import TOPOLOGY, Move

NEAR, FAR, CAME = range(3)  # of a place: both ends of its branch, and the place before on the way
COMES, GOES = range(2)  # least share of the splits that come, and of those that go


def learnt_spr(p):
    """A subtree goes to a place two or more nodes away; all places of all subtrees are weighed together. On
    the way each branch has the subtree now on its other side: with m the least frequency of the splits that
    come and r of those that go, w = m / (m + r), 0 where one of them was never seen. A place is proposed with
    probability w / Σ w. The branches of the subtree, of the gap, of the place and on the way get the lengths
    that go with the new splits (compiled/known_splits.fit_length). Log Hastings ratio: log w / Σ w of the way
    back, w = r / (m + r), less that of the way there, plus the log of the Jacobian (after Meyer 2021, Syst.
    Biol. 70:1015)."""
    weight, least, root, s, rest = p.splits.weight, p.splits.least, p.left.shape[0] - 1, -1, 0.0
    name_splits(p.splits, p.order)
    total = weigh_all(p.splits)
    if total == 0.0:
        return -math.inf
    u = uniform(p.rng) * total
    for x in range(root):
        if u > 0.0 and weight[x, 0] > 0.0:
            s, rest, u = x, u, u - weight[x, 0]
    end, at = walk(p.splits, s), -1
    for i in range(end):
        w = weight_of(p.splits, i)
        if rest > 0.0 and w > 0.0:
            at, rest = i, rest - w
    comes, goes = least[at, COMES], least[at, GOES]
    ratio = fit_lengths(p, s, at)
    move_subtree(p, s, at)
    return ratio + math.log(goes / weigh_all(p.splits)) - math.log(comes / total)


@uncounted
def weigh_all(splits):
    """Fill weight[s, 0] of every subtree, that of the tips below s, 0 where there is none; returns
    their sum."""
    root, beside, all_of_them = splits.left.shape[0] - 1, beside_tip(splits), 0.0
    for s in range(root):
        total = 0.0
        if s != 0 and s != beside:
            for i in range(walk(splits, s)):
                total += weight_of(splits, i)
        splits.weight[s, 0] = total
        all_of_them += total
    return all_of_them


@uncounted
def weight_of(splits, i):
    """Of place i of a walk. Those one node away are left to interchanges."""
    comes, goes = splits.least[i, COMES], splits.least[i, GOES]
    return comes / (comes + goes) if splits.place[i, CAME] >= 0 and goes > 0.0 else 0.0


@uncounted
def walk(splits, s):
    """List the places that the subtree of s can go to, along splits that were seen; returns their number."""
    up, below, left, right, beside = splits.up, splits.below, splits.left, splits.right, beside_tip(splits)
    v, x, at, end = up[s], below[s], 0, 0
    sibling = right[v] if left[v] == s else left[v]
    if left[sibling] >= 0:
        goes = seen_share(splits, below[sibling])
        end = add_place(splits, end, sibling, left[sibling], -1, (x, 1.0, goes))
        end = add_place(splits, end, sibling, right[sibling], -1, (x, 1.0, goes))
    if v != beside:
        goes = seen_share(splits, below[v])
        end = add_upwards(splits, end, v, beside, -1, (x, 1.0, goes))
    while at < end:
        near, far = splits.place[at, NEAR], splits.place[at, FAR]
        if left[far] >= 0:
            comes = splits.least[at, COMES]
            goes = min(splits.least[at, GOES], seen_share(splits, split_before(splits, near, far)))
            if up[far] == near:
                end = add_place(splits, end, far, left[far], at, (x, comes, goes))
                end = add_place(splits, end, far, right[far], at, (x, comes, goes))
            else:
                end = add_upwards(splits, end, near, beside, at, (x, comes, goes))
        at += 1
    return end


@uncounted
def add_upwards(splits, end, x, beside, came, known):
    """Both places at the parent of x that are not the branch to x."""
    y = splits.up[x]
    end = add_place(splits, end, y, splits.right[y] if splits.left[y] == x else splits.left[y], came, known)
    return add_place(splits, end, y, 0 if y == beside else splits.up[y], came, known)


@uncounted
def add_place(splits, end, near, far, came, known):
    """List a place, unless the split that comes there was never seen. known: the subtree's key, and what
    comes and goes before."""
    place, least, (x, comes, goes) = splits.place, splits.least, known
    share = seen_share(splits, split_after(splits, near, far, x))
    if share == 0.0 or goes == 0.0:
        return end
    place[end, NEAR], place[end, FAR], place[end, CAME] = near, far, came
    least[end, COMES], least[end, GOES] = min(comes, share), goes
    return end + 1


@uncounted
def split_before(splits, near, far):
    """Key of the split of a branch, the subtree before it."""
    return splits.below[far if splits.up[far] == near else near]


@uncounted
def split_after(splits, near, far, x):
    """The same, the subtree behind it, or between it and what is behind it."""
    if far != 0 and splits.up[far] == near:
        return splits.below[far] + x
    return splits.below[near] - x


@uncounted
def branch_of(splits, near, far):
    """(number, key) of a branch that does not move: tip 0's is that of the node beside it."""
    y = far if far == 0 or splits.up[far] == near else near
    return y, splits.below[y]


@uncounted
def fit_lengths(p, s, at):
    """Lengths for the subtree at place `at` of its walk; the log of the Jacobian, -inf where one leaves its
    bounds."""
    splits, place, sums, bounds = p.splits, p.splits.place, p.splits.sums, (p.low, p.high)
    below, v, x = splits.below, splits.up[s], splits.below[s]
    before, new = place[at, CAME], split_after(splits, place[at, NEAR], place[at, FAR], x)
    last = split_before(splits, place[before, NEAR], place[before, FAR])
    branch, key = branch_of(splits, place[at, NEAR], place[at, FAR])
    ratio = fit_length(
        sums, p.lengths, bounds, branch, place_of(splits, last, key), place_of(splits, new, key)
    )
    first = before
    while before >= 0:
        near, far, first = place[before, NEAR], place[before, FAR], before
        was, now = split_before(splits, near, far), split_after(splits, near, far, x)
        branch, _ = branch_of(splits, near, far)
        ratio += fit_length(
            sums, p.lengths, bounds, branch, place_of(splits, was, was), place_of(splits, now, now)
        )
        before = place[before, CAME]
    sibling = p.right[v] if p.left[v] == s else p.left[v]
    carried, left_behind = v, sibling
    if place[first, NEAR] == sibling:
        carried, left_behind = sibling, 0 if v == p.beside else v
    old, key = below[carried], below[left_behind]
    now = split_after(splits, place[first, NEAR], place[first, FAR], x)
    ratio += fit_length(
        sums, p.lengths, bounds, left_behind, place_of(splits, old, key), place_of(splits, now, key)
    )
    ratio += fit_length(
        sums, p.lengths, bounds, carried, place_of(splits, old, old), place_of(splits, new, new)
    )
    return ratio + fit_length(sums, p.lengths, bounds, s, place_of(splits, old, x), place_of(splits, new, x))


@uncounted
def move_subtree(p, s, at):
    """To place `at` of its walk, in both views of the tree."""
    up, below, place, beside, root = (
        p.splits.up,
        p.splits.below,
        p.splits.place,
        p.beside,
        p.left.shape[0] - 1,
    )
    v, near, far, first = up[s], place[at, NEAR], place[at, FAR], at
    while place[first, CAME] >= 0:
        first = place[first, CAME]
    sibling = p.right[v] if p.left[v] == s else p.left[v]
    above = 0 if v == beside else up[v]
    gap = (sibling, above) if place[first, NEAR] == sibling else (above, sibling)
    regraft(p.adjacency, p.edge, v, s, gap, (near, far))
    z = up[v]
    while z != root:
        below[z] -= below[s]
        z = up[z]
    put_below(p.splits, up[v], v, sibling)
    child = far if far != 0 and up[far] == near else near
    put_below(p.splits, up[child], child, v)
    p.left[v], p.right[v], up[child] = s, child, v
    z = v
    below[v] = below[child]
    while z != root:
        below[z] += below[s]
        z = up[z]


@uncounted
def put_below(splits, y, old, new):
    """One child of y for another."""
    if splits.left[y] == old:
        splits.left[y] = new
    else:
        splits.right[y] = new
    splits.up[new] = y


@uncounted
def beside_tip(splits):
    """The node beside tip 0, as the tree is now."""
    root = splits.left.shape[0] - 1
    return splits.left[root] if splits.right[root] == 0 else splits.right[root]


MOVE = Move("learnt_spr", TOPOLOGY, learnt_spr, 5, splits=True)
