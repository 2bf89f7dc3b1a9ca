"""Steps that moves of a dated topology share: cutting a subtree off and putting it back, and where it may go.

p: a compiled/dispatch.py Proposal, whose tree they change in place. A subtree i is cut off with its parent q,
which goes with it: the pruned tree then lacks both, and its root may be any node.
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, uniform


@uncounted
def sibling(p, x):
    """The other child of x's parent."""
    q = p.parent[x]
    return p.right[q] if p.left[q] == x else p.left[q]


@uncounted
def chosen_jump(p):
    """One of the branches whose deviation is not 0, uniformly; -1 where there is none."""
    n = 0
    for x in range(p.heights.shape[0] - 1):
        if p.deviations[x] != 0.0:
            p.edges[n] = x
            n += 1
    return p.edges[below(p.rng, n)] if n > 0 else -1


@uncounted
def replace_child(p, q, old, new):
    """Let q have new where it had old."""
    if p.left[q] == old:
        p.left[q] = new
    else:
        p.right[q] = new
    p.parent[new] = q


@uncounted
def prune(p, i):
    """Cut i off with its parent q; returns (q, the sibling it had)."""
    q, s = p.parent[i], sibling(p, i)
    above = p.parent[q]
    if above >= 0:
        replace_child(p, above, q, s)
    else:
        p.parent[s] = -1
    return q, s


@uncounted
def graft(p, i, q, j, height):
    """Put q, with i, on the branch above j, at a height, or above the root. The root stays the last node."""
    above = p.parent[j]
    if above >= 0:
        replace_child(p, above, j, q)
    else:
        p.parent[q] = -1
    p.left[q], p.right[q], p.parent[i], p.parent[j], p.heights[q] = i, j, q, q, height
    last = p.parent.shape[0] - 1
    if p.parent[last] >= 0:
        root = p.parent[last]
        while p.parent[root] >= 0:
            root = p.parent[root]
        exchange_numbers(p, root, last)


@uncounted
def exchange_numbers(p, a, b):
    """Two internal nodes exchange their numbers. A deviation stays with the number: so the branch that the
    former root gets has that of the branch which the new root no longer needs."""
    for x in range(p.parent.shape[0]):
        for side in (p.parent, p.left, p.right):
            if side[x] == a:
                side[x] = b
            elif side[x] == b:
                side[x] = a
    for side in (p.parent, p.left, p.right):
        side[a], side[b] = side[b], side[a]
    p.heights[a], p.heights[b] = p.heights[b], p.heights[a]


@uncounted
def height_above(p, i, j):
    """A height for i's parent on j's branch of the tree without both: uniform above i and j, or above the
    root by an exponential with mean tuning times the height it starts from."""
    base = max(p.heights[i], p.heights[j])
    if p.parent[j] < 0:
        return base - math.log(uniform(p.rng)) * p.tuning * base
    return base + uniform(p.rng) * (p.heights[p.parent[j]] - base)


@uncounted
def log_range(p, i, j, height):
    """Minus the log density with which height_above draws a height."""
    base = max(p.heights[i], p.heights[j])
    if p.parent[j] < 0:
        return math.log(p.tuning * base) + (height - base) / (p.tuning * base)
    return math.log(p.heights[p.parent[j]] - base)


@uncounted
def random_subtree(p):
    """A node that is not the root, uniformly."""
    return below(p.rng, p.parent.shape[0] - 1)


@uncounted
def lineages_below(p, start, height, n):
    """Branches at a height at and below the branch of start, whose upper end is above it: into p.edges from
    number n on. Returns how many there are then."""
    size = 1
    p.stack[0] = start
    while size > 0:
        size -= 1
        x = p.stack[size]
        if p.heights[x] < height:
            p.edges[n] = x
            n += 1
        elif p.left[x] >= 0:
            p.stack[size], p.stack[size + 1] = p.left[x], p.right[x]
            size += 2
    return n


@uncounted
def root_above(p, x):
    """The root of the tree that x is in."""
    while p.parent[x] >= 0:
        x = p.parent[x]
    return x


@uncounted
def spots_at_distance(p, s, height, distance, floor):
    """Points of the pruned tree at a path distance from the one on s's branch at a height, and above floor:
    branches in p.edges, heights in p.spots; returns their number."""
    n = 0
    if height - distance > floor:
        n = lineages_below(p, s, height - distance, n)
        for k in range(n):
            p.spots[k] = height - distance
    x = s
    while True:
        above = p.parent[x]
        if above < 0 or p.heights[above] >= height + distance:
            p.edges[n], p.spots[n] = x, height + distance
            return n + 1
        target = 2.0 * p.heights[above] - height - distance
        if target > floor:
            begin = n
            n = lineages_below(p, sibling(p, x), target, n)
            for k in range(begin, n):
                p.spots[k] = target
        x = above


@uncounted
def groups_follow(rng, groups, old, new):
    """Let groups of joinings keep their times where one joining went elsewhere: its group has one less, that
    in whose time it is now one more, either of two with probability ½ between them. A coalescent with a size
    for every group would else see all joinings between change their groups. old, new: (order, heights) before
    and after; nothing changes unless one height did. Returns the log Hastings ratio, -inf where a group would
    be empty."""
    gone, came = _one_exchanged(groups.sum(), old, new)
    if gone < 0 or came < 0:
        return 0.0
    g = _group_of(groups, gone)
    if groups[g] == 1:
        return -math.inf
    groups[g] -= 1
    last, ratio = groups.sum() - 1, 0.0
    before, after = _group_of(groups, max(came - 1, 0)), _group_of(groups, min(came, last))
    if before != after:
        ratio += math.log(2.0)
    if _group_of(groups, max(gone - 1, 0)) != _group_of(groups, min(gone, last)):
        ratio -= math.log(2.0)
    groups[before if before == after or uniform(rng) < 0.5 else after] += 1
    return ratio


@uncounted
def _group_of(groups, rank):
    """The group of a joining, by how many are younger."""
    g, end = 0, groups[0]
    while rank >= end:
        g += 1
        end += groups[g]
    return g


@uncounted
def _one_exchanged(n, old, new):
    """How many joinings are younger than the one that only the old heights have, and than the one that only
    the new ones have; -1, -1 where these are none or several."""
    n_tips, gone, came = n + 1, -1, -1
    i, j, at, to = 0, 0, 0, 0
    while i < n or j < n:
        while i < n and old[0][at] < n_tips:
            at += 1
        while j < n and new[0][to] < n_tips:
            to += 1
        a = old[1][old[0][at]] if i < n else math.inf
        b = new[1][new[0][to]] if j < n else math.inf
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
