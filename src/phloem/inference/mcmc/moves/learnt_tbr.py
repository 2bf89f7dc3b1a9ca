"""Tree bisection and reconnection along splits that the chains have had, at lengths that go with them."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.known_splits import fit_length, name_splits, place_of, seen_share
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.mcmc.compiled.unrooted import regraft
from phloem.inference.mcmc.move_table import TOPOLOGY, Move

NEAR, FAR, CAME = range(3)  # of a place: both ends of its branch, and the place before on the way
COMES, GOES = range(2)  # least share of the splits that come, and of those that go
STAYS = -1  # in place of a place


def learnt_tbr(p):
    """A branch is cut and put back between other branches of both parts, or of one. All places of all
    branches are weighed together. On the way of either end each branch has the other part now on its other
    side: with m the least frequency of the splits that come and r of those that go, w = m / (m + r), 0 where
    one of them was never seen. A proposal has probability w / Σ w. The cut branch, those of the gaps, of the
    places and on the ways get the lengths that go with the new splits (compiled/known_splits.fit_length). Log
    Hastings ratio: log w / Σ w of the way back, w = r / (m + r), less that of the way there, plus the log of
    the Jacobian (after Meyer 2021, Syst. Biol. 70:1015)."""
    weight, root, s, rest = p.splits.weight, p.left.shape[0] - 1, -1, 0.0
    name_splits(p.splits, p.order)
    total = weigh_all(p.splits)
    if total == 0.0:
        return -math.inf
    u = uniform(p.rng) * total
    for x in range(root):
        if u > 0.0 and weight[x, 0] > 0.0:
            s, rest, u = x, u, u - weight[x, 0]
    outside, inside = choose(p.splits, s, rest)
    comes, goes = least_shares(p.splits, outside, inside)
    ratio = 0.0
    if outside != STAYS:
        ratio += fit_lengths(p, s, outside, False)
        ratio += fit_cut(p, s, outside, False)
    if inside != STAYS:
        ratio += fit_lengths(p, s, inside, True)
        ratio += fit_cut(p, s, inside, True) if outside == STAYS else 0.0
    if outside != STAYS:
        move_subtree(p, s, outside)
    if inside != STAYS:
        reroot_subtree(p, s, inside)
    return ratio + math.log(goes / weigh_all(p.splits)) - math.log(comes / total)


@uncounted
def weigh_all(splits):
    """Fill weight[s, 0] of every branch, that above s, 0 where there is none; returns their sum."""
    root, beside, all_of_them = splits.left.shape[0] - 1, beside_tip(splits), 0.0
    for s in range(root):
        total = 0.0
        if s != 0 and s != beside:
            middle = walk(splits, s, False, 0)
            end = walk(splits, s, True, middle)
            for i in range(STAYS, middle):
                for j in range(middle - 1, end):
                    total += weight_of(splits, i, j if j >= middle else STAYS)
        splits.weight[s, 0] = total
        all_of_them += total
    return all_of_them


@uncounted
def choose(splits, s, rest):
    """The places outside of and inside the subtree of s at which sums of weights come to rest."""
    outside, inside, middle = STAYS, STAYS, walk(splits, s, False, 0)
    end = walk(splits, s, True, middle)
    for i in range(STAYS, middle):
        for j in range(middle - 1, end):
            inner = j if j >= middle else STAYS
            w = weight_of(splits, i, inner)
            if rest > 0.0 and w > 0.0:
                outside, inside, rest = i, inner, rest - w
    return outside, inside


@uncounted
def least_shares(splits, outside, inside):
    """Of the splits that come and of those that go with places on both sides."""
    comes, goes = 1.0, 1.0
    if outside != STAYS:
        comes, goes = splits.least[outside, COMES], splits.least[outside, GOES]
    if inside != STAYS:
        comes, goes = min(comes, splits.least[inside, COMES]), min(goes, splits.least[inside, GOES])
    return comes, goes


@uncounted
def weight_of(splits, outside, inside):
    """Of two places. Those one node away, the other end staying, are left to interchanges."""
    place = splits.place
    if outside == STAYS and (inside == STAYS or place[inside, CAME] == STAYS):
        return 0.0
    if inside == STAYS and place[outside, CAME] == STAYS:
        return 0.0
    comes, goes = least_shares(splits, outside, inside)
    return comes / (comes + goes)


@uncounted
def walk(splits, s, inside, first):
    """List, from number first on, the places that an end of the branch above s can go to along splits that
    were seen: inside, within the subtree of s; returns the number behind the last one."""
    up, below, left, right, beside = splits.up, splits.below, splits.left, splits.right, beside_tip(splits)
    v, x, at, end = up[s], below[s], first, first
    if inside:
        if left[s] >= 0:
            end = add_downwards(splits, end, left[s], STAYS, (x, 1.0, 1.0, True))
            end = add_downwards(splits, end, right[s], STAYS, (x, 1.0, 1.0, True))
    else:
        sibling = right[v] if left[v] == s else left[v]
        end = add_downwards(splits, end, sibling, STAYS, (x, 1.0, 1.0, False))
        if v != beside:
            end = add_upwards(splits, end, v, beside, STAYS, (x, 1.0, seen_share(splits, below[v])))
    while at < end:
        near, far = splits.place[at, NEAR], splits.place[at, FAR]
        if left[far] >= 0:
            comes, goes = splits.least[at, COMES], splits.least[at, GOES]
            if up[far] == near:
                end = add_downwards(splits, end, far, at, (x, comes, goes, inside))
            else:
                goes = min(goes, seen_share(splits, below[near]))
                end = add_upwards(splits, end, near, beside, at, (x, comes, goes))
        at += 1
    return end


@uncounted
def add_downwards(splits, end, y, came, known):
    """Both places below y, which is behind the branch of y."""
    left, right, (x, comes, goes, inside) = splits.left, splits.right, known
    if left[y] < 0:
        return end
    goes = min(goes, seen_share(splits, splits.below[y]))
    end = add_place(splits, end, y, left[y], came, (x, comes, goes, inside))
    return add_place(splits, end, y, right[y], came, (x, comes, goes, inside))


@uncounted
def add_upwards(splits, end, x, beside, came, known):
    """Both places at the parent of x that are not the branch to x."""
    y, (key, comes, goes) = splits.up[x], known
    known_too = key, comes, goes, False
    end = add_place(
        splits, end, y, splits.right[y] if splits.left[y] == x else splits.left[y], came, known_too
    )
    return add_place(splits, end, y, 0 if y == beside else splits.up[y], came, known_too)


@uncounted
def add_place(splits, end, near, far, came, known):
    """List a place, unless the split that comes there was never seen. known: the subtree's key, what comes
    and goes before, and whether the place is inside."""
    place, least, (x, comes, goes, inside) = splits.place, splits.least, known
    share = seen_share(splits, split_after(splits, near, far, x, inside))
    if share == 0.0 or goes == 0.0:
        return end
    place[end, NEAR], place[end, FAR], place[end, CAME] = near, far, came
    least[end, COMES], least[end, GOES] = min(comes, share), goes
    return end + 1


@uncounted
def split_before(splits, near, far):
    """Key of the split of a branch, the other part before it."""
    return splits.below[far if splits.up[far] == near else near]


@uncounted
def split_after(splits, near, far, x, inside):
    """The same, the other part behind it, or between it and what is behind it. x: key of the subtree."""
    if inside:
        return x - splits.below[far]
    if far != 0 and splits.up[far] == near:
        return splits.below[far] + x
    return splits.below[near] - x


@uncounted
def branch_of(splits, near, far):
    """(number, key) of a branch that does not move: tip 0's is that of the node beside it."""
    y = far if far == 0 or splits.up[far] == near else near
    return y, splits.below[y]


@uncounted
def first_of(place, at):
    """The place with which the way to one begins."""
    while place[at, CAME] != STAYS:
        at = place[at, CAME]
    return at


@uncounted
def gap_of(p, s, at, inside):
    """Branches that become one where the end of the branch above s leaves: that along which it goes, and the
    one left behind."""
    v, near = p.splits.up[s], p.splits.place[first_of(p.splits.place, at), NEAR]
    if inside:
        return (p.left[s], p.right[s]) if p.left[s] == near else (p.right[s], p.left[s])
    sibling = p.right[v] if p.left[v] == s else p.left[v]
    return (sibling, 0 if v == p.beside else v) if near == sibling else (v, sibling)


@uncounted
def fit_lengths(p, s, at, inside):
    """Lengths for an end of the branch above s at place `at` of its walk, but that branch's own; the log of
    the Jacobian, -inf where one leaves its bounds."""
    splits, place, sums, bounds = p.splits, p.splits.place, p.splits.sums, (p.low, p.high)
    below, x, first, before = splits.below, splits.below[s], first_of(place, at), place[at, CAME]
    carried, left_behind = gap_of(p, s, at, inside)
    last = old = below[carried]
    new = split_after(splits, place[at, NEAR], place[at, FAR], x, inside)
    if before != STAYS:
        last = split_before(splits, place[before, NEAR], place[before, FAR])
    branch, key = branch_of(splits, place[at, NEAR], place[at, FAR])
    then = place_of(splits, new, key)
    ratio = fit_length(sums, p.lengths, bounds, branch, place_of(splits, last, key), then)
    while before != STAYS:
        near, far = place[before, NEAR], place[before, FAR]
        was, now = split_before(splits, near, far), split_after(splits, near, far, x, inside)
        branch, _ = branch_of(splits, near, far)
        then = place_of(splits, now, now)
        ratio += fit_length(sums, p.lengths, bounds, branch, place_of(splits, was, was), then)
        before = place[before, CAME]
    key = below[left_behind]
    now = split_after(splits, place[first, NEAR], place[first, FAR], x, inside)
    then = place_of(splits, now, key)
    ratio += fit_length(sums, p.lengths, bounds, left_behind, place_of(splits, old, key), then)
    then = place_of(splits, new, new)
    return ratio + fit_length(sums, p.lengths, bounds, carried, place_of(splits, old, old), then)


@uncounted
def fit_cut(p, s, at, inside):
    """The same of the branch above s itself, by the split beside that end of it."""
    splits, place, x = p.splits, p.splits.place, p.splits.below[s]
    old = splits.below[gap_of(p, s, at, inside)[0]]
    new = split_after(splits, place[at, NEAR], place[at, FAR], x, inside)
    before, after = place_of(splits, old, x), place_of(splits, new, x)
    return fit_length(splits.sums, p.lengths, (p.low, p.high), s, before, after)


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
    v, near, far = up[s], place[at, NEAR], place[at, FAR]
    sibling = p.right[v] if p.left[v] == s else p.left[v]
    above = 0 if v == beside else up[v]
    gap = (sibling, above) if place[first_of(place, at), NEAR] == sibling else (above, sibling)
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
def reroot_subtree(p, s, at):
    """Put s on the branch of place `at` of its own subtree: branches on the way turn round."""
    up, below, place, left, right = p.splits.up, p.splits.below, p.splits.place, p.left, p.right
    near, far, first = place[at, NEAR], place[at, FAR], place[first_of(place, at), NEAR]
    behind = right[s] if left[s] == first else left[s]
    regraft(p.adjacency, p.edge, s, up[s], (first, behind), (near, far))
    z, child, parent, was = near, far, s, below[far]
    while z != s:
        above = up[z]
        below[z], was = below[s] - was, below[z]
        other = behind if above == s else above
        if left[z] == child:
            left[z] = other
        else:
            right[z] = other
        up[z] = parent
        z, child, parent = above, z, z
    up[behind], up[far] = first, s
    left[s], right[s] = near, far


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


MOVE = Move("learnt_tbr", TOPOLOGY, learnt_tbr, 5, splits=True)
