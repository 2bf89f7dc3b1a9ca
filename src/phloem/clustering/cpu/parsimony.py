"""Fitch parsimony in bits: 64 sites a word, a plane a state; stepwise addition and regrafting of subtrees.

sets (4T-6, W, S) uint64: of every half-edge (tree/half_edges.py) the state sets of the subtree behind its
node, seen from the branch. Both ends of every branch are at hand, so a subtree's insertion into any branch
is scored exactly by the sets of the two ends and its own (Fitch 1971; Ronquist 1998). Sites beyond the last
allow every state, so they never count. A change of a character in the first `usual` words counts one, in
those beyond 2**HEAVY: more than all the others together, so that none of these is ever changed more often for
the sake of the others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.clustering.cpu.site_counts import popcount
from phloem.hardware.numba_compile import uncounted

HEAVY = 32


class Lists(NamedTuple):
    """Room for half-edges. order (2T-3,) and waiting (2T,) int64, of a preorder. queue (4T-6,) int64, and
    waits (4T-6,) bool, false: whose sets are to be made again."""

    order: np.ndarray
    waiting: np.ndarray
    queue: np.ndarray
    waits: np.ndarray


@uncounted
def _others(h, n):
    """The other two half-edges of an inner node."""
    first = n + 3 * ((h - n) // 3)
    k = h - first
    return first + (k + 1) % 3, first + (k + 2) % 3


@uncounted
def _combine(a, b, out, usual):
    """Fitch's rule for two sets of sets: what both allow, else what either does. Returns weighed changes."""
    changes = light = np.int64(0)
    for w in range(len(a)):
        common = np.uint64(0)
        for s in range(a.shape[1]):
            common |= a[w, s] & b[w, s]
        for s in range(a.shape[1]):
            out[w, s] = (a[w, s] & b[w, s]) | ((a[w, s] | b[w, s]) & ~common)
        changes += popcount(~common)
        if w == usual - 1:
            light, changes = changes, np.int64(0)
    return light + (changes << HEAVY)


@uncounted
def _clashes(a, b, usual):
    """Sites at which no state is in both, weighed."""
    count = light = np.int64(0)
    for w in range(len(a)):
        common = np.uint64(0)
        for s in range(a.shape[1]):
            common |= a[w, s] & b[w, s]
        count += popcount(~common)
        if w == usual - 1:
            light, count = count, np.int64(0)
    return light + (count << HEAVY)


@uncounted
def _preorder(back, root, n, lists):
    """half_edges.preorder from any tip, of a tree that need not have all tips yet. Returns its branches."""
    order, waiting = lists.order, lists.waiting
    size, depth = 0, 1
    waiting[0] = back[root]
    while depth:
        depth -= 1
        h = waiting[depth]
        order[size] = h
        size += 1
        if h >= n:
            a, b = _others(h, n)
            waiting[depth], waiting[depth + 1] = back[b], back[a]
            depth += 2
    return size


@uncounted
def all_sets(back, root, n, sets, usual, lists):
    """Sets of every half-edge of the tree; returns its branches and its score."""
    order = lists.order
    size, score = _preorder(back, root, n, lists), np.int64(0)
    for i in range(size - 1, -1, -1):
        h = order[i]
        if h >= n:
            a, b = _others(h, n)
            score += _combine(sets[back[a]], sets[back[b]], sets[h], usual)
    for i in range(size):
        h = order[i]
        if h >= n:
            a, b = _others(h, n)
            _combine(sets[back[b]], sets[back[h]], sets[a], usual)
            _combine(sets[back[a]], sets[back[h]], sets[b], usual)
    return size, score + _clashes(sets[order[0]], sets[root], usual)


@uncounted
def changes_on_branches(back, n, sets, usual, lists, changes):
    """changes (4T-6,) int64 = of every branch, at both ends, the sites at which some way of putting as few
    changes as the tree needs puts one there, weighed."""
    size = all_sets(back, 0, n, sets, usual, lists)[0]
    for i in range(size):
        h = lists.order[i]
        changes[h] = changes[back[h]] = _clashes(sets[h], sets[back[h]], usual)


@uncounted
def _insert(back, end, a, b):
    """Put the node whose half-edges beside the subtree's are a and b into the branch of half-edge end."""
    other = back[end]
    back[a], back[end] = end, a
    back[b], back[other] = other, b


@uncounted
def _wait(h, lists, last):
    """Put a half-edge of an inner node behind the last of the queue, a ring, if it is not in it; returns the
    new last."""
    if lists.waits[h]:
        return last
    lists.waits[h] = True
    lists.queue[last % len(lists.queue)] = h
    return last + 1


@uncounted
def _replaced(sets, new):
    """Whether the new sets (W, S) are others; they are put there."""
    differs = np.uint64(0)
    for w in range(len(new)):
        for s in range(new.shape[1]):
            differs |= sets[w, s] ^ new[w, s]
            sets[w, s] = new[w, s]
    return differs != 0


@uncounted
def _update(changed, back, n, sets, usual, room, lists):
    """Sets again where the tree has changed: of the half-edges beside those of `changed`, and of all whose
    own follow from sets that come out otherwise, mostly a few nodes on. room (W, S)."""
    first = last = 0
    for h in changed:
        if h >= n:
            for g in _others(h, n):
                last = _wait(g, lists, last)
    while first < last:
        h = lists.queue[first % len(lists.queue)]
        first, lists.waits[h] = first + 1, False
        a, b = _others(h, n)
        _combine(sets[back[a]], sets[back[b]], room, usual)
        if _replaced(sets[h], room) and back[h] >= n:
            for g in _others(back[h], n):
                last = _wait(g, lists, last)


@uncounted
def add_stepwise(back, tips, ties, sets, usual, room, costs, lists):
    """Add tips in this order, each into the branch where it costs least; ties (T,) in [0, 1) choose among
    equals. room (W, S); costs (2T-3,) int64. back is written. Returns the score."""
    n, order = len(tips), lists.order
    for k in range(3):
        back[tips[k]], back[n + k] = n + k, tips[k]
    size, score = all_sets(back, tips[0], n, sets, usual, lists)
    for k in range(3, n):
        least, equal = np.int64(1 << 60), 0
        for i in range(size):
            _combine(sets[order[i]], sets[back[order[i]]], room, usual)
            costs[i] = _clashes(room, sets[tips[k]], usual)
            if costs[i] < least:
                least, equal = costs[i], 0
            equal += costs[i] == least
        chosen, best = int(ties[k] * equal), 0
        for i in range(size):
            if costs[i] == least:
                if chosen == 0:
                    best = order[i]
                chosen -= 1
        new = n + 3 * (k - 2)
        back[new], back[tips[k]] = tips[k], new
        ends = best, back[best]
        _insert(back, best, new + 1, new + 2)
        _update((tips[k], new, new + 1, new + 2, *ends), back, n, sets, usual, room, lists)
        size, score = _preorder(back, tips[0], n, lists), score + least
    return score


@uncounted
def _best_regraft(back, s, n, radius, sets, usual, arrival, stack):
    """The half-edge of the branch where the subtree beyond half-edge s of an inner node fits best, within
    radius nodes, and what that saves. arrival (radius + 2, W, S): what comes from the gap; stack (·, 3)."""
    pruned, room = sets[back[s]], arrival[radius + 1]
    a, b = _others(s, n)
    _combine(sets[back[a]], sets[back[b]], room, usual)
    now = least = _clashes(room, pruned, usual)
    best = np.int64(-1)
    for start, behind in ((back[a], back[b]), (back[b], back[a])):
        if start < n:
            continue
        c, e = _others(start, n)
        stack[0, 0], stack[0, 1], stack[0, 2] = c, e, 1
        stack[1, 0], stack[1, 1], stack[1, 2] = e, c, 1
        depth = 2
        while depth:
            depth -= 1
            out, sibling, level = stack[depth, 0], stack[depth, 1], stack[depth, 2]
            came = sets[behind] if level == 1 else arrival[level - 1]
            _combine(came, sets[back[sibling]], arrival[level], usual)
            _combine(arrival[level], sets[back[out]], room, usual)
            cost = _clashes(room, pruned, usual)
            if cost < least:
                least, best = cost, out
            beyond = back[out]
            if level < radius and beyond >= n:
                c, e = _others(beyond, n)
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = c, e, level + 1
                stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = e, c, level + 1
                depth += 2
    return best, now - least


@uncounted
def regraft_all(back, half, radius, sets, usual, arrival, stack, lists):
    """Move the subtree beyond every half-edge of `half` (of inner nodes) to where it fits best, one after the
    other; arrival, stack: as in _best_regraft. back is written. Returns the score."""
    n, room = (len(back) + 6) // 4, arrival[radius + 1]
    score = all_sets(back, 0, n, sets, usual, lists)[1]
    for s in half:
        best, gain = _best_regraft(back, s, n, radius, sets, usual, arrival, stack)
        if gain > 0:
            a, b = _others(s, n)
            ends = back[a], back[b], best, back[best]
            back[back[a]], back[back[b]] = back[b], back[a]
            _insert(back, best, a, b)
            _update((s, a, b, *ends), back, n, sets, usual, room, lists)
            score -= gain
    return score
