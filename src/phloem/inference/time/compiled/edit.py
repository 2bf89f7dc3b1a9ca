"""Steps that moves of a dated topology share: cutting a subtree off and putting it back, and where it may go.

p: a compiled/dispatch.py Proposal, whose tree they change in place. A subtree i is cut off with its parent q,
which goes with it: the pruned tree then lacks both, and its root may be any node.
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, uniform

MANY, NEARBY = 300, 0.75  # taxa from where, and how often, only places below a cut are weighed


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
def is_ancestor(p, i):
    """Whether node i is a tip as old as its parent, and so an ancestor of all else below that."""
    return p.heights[p.parent[i]] == p.heights[i]


@uncounted
def parent_is_held(p, i):
    """Whether i's parent is as old as a tip that is an ancestor, i or its sibling: then its height is that
    tip's."""
    return is_ancestor(p, i) or is_ancestor(p, sibling(p, i))


@uncounted
def scale_heights(p, factor):
    """Heights of internal nodes, but those of tips that are ancestors, times a factor; returns their
    number."""
    n = 0
    for x in range(p.n_tips, p.heights.shape[0]):
        a, b = p.left[x], p.right[x]
        if not ((a < p.n_tips and is_ancestor(p, a)) or (b < p.n_tips and is_ancestor(p, b))):
            p.heights[x] *= factor
            n += 1
    return n


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
def below_cut(p, x, height):
    """The node above x, or x, whose branch a cut at a height goes through; -1 where the cut is below x."""
    if p.heights[x] >= height:
        return -1
    while p.parent[x] >= 0 and p.heights[p.parent[x]] < height:
        x = p.parent[x]
    return x


@uncounted
def top_of_places(p, s):
    """At or below which node places are weighed for a subtree cut off from above s: the root, of MANY taxa
    mostly the one below a cut through all branches at a height, uniform below the root; -1 where that cut is
    below s. It is the same from whichever place below the cut the subtree comes."""
    top = root_above(p, s)
    if p.n_tips >= MANY and uniform(p.rng) < NEARBY:
        top = below_cut(p, s, p.heights[top] * uniform(p.rng))
    return top


@uncounted
def branches_above(p, root, i):
    """Branches of the tree of a root that reach above node i: into p.edges. Returns their number."""
    p.stack[0], size, n = root, 1, 0
    while size > 0:
        size -= 1
        x = p.stack[size]
        p.edges[n] = x
        n += 1
        if p.left[x] >= 0 and p.heights[x] > p.heights[i]:
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
