"""The unrooted view of a tree that topology moves edit, who is next to whom, and along which branch; and the
steps that these moves share.

adjacency[x] holds the neighbours of x (three, or one for a tip, in place 0), edge[x] the branches to them, by
the node that had each when the move began: a move permutes branches, whatever lengths they have.
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, multiplied, uniform


@uncounted
def unroot(parent, left, right, n_tips, adjacency, edge):
    """Fill adjacency (N, 3) and edge (N, 3) from a tree; the root is left out."""
    root = 2 * n_tips - 2
    for x in range(root):
        above, branch = parent[x], x
        if above == root:  # the branch of tip 0, which is tip 0's
            branch = 0
            if x == 0:
                above = left[root] if right[root] == 0 else right[root]
            else:
                above = 0
        adjacency[x, 0], edge[x, 0] = above, branch
        if x >= n_tips:
            adjacency[x, 1], adjacency[x, 2] = left[x], right[x]
            edge[x, 1], edge[x, 2] = left[x], right[x]


@uncounted
def hang(adjacency, edge, n_tips, parent, left, right, order, branch, stack):
    """Write the tree back, its root on the branch of tip 0, with its order; branch (N,): which branch each
    node now has, -1 for the root and the node beside tip 0."""
    root, beside = 2 * n_tips - 2, adjacency[0, 0]
    left[root], right[root], parent[root], branch[root] = beside, 0, -1, -1
    parent[0], parent[beside], branch[0], branch[beside] = root, root, edge[0, 0], -1
    order[root], order[root - 1] = root, 0
    stack[0] = beside
    size, at = 1, root - 1
    while size > 0:
        size -= 1
        x = stack[size]
        at -= 1
        order[at] = x
        if x < n_tips:
            continue
        above = 0 if x == beside else parent[x]
        first = True
        for i in range(3):
            y = adjacency[x, i]
            if y == above:
                continue
            parent[y], branch[y] = x, edge[x, i]
            if first:
                left[x] = y
            else:
                right[x] = y
            first = False
            stack[size] = y
            size += 1


@uncounted
def place(adjacency, x, y):
    """Which of x's neighbours is y."""
    if adjacency[x, 0] == y:
        return 0
    return 1 if adjacency[x, 1] == y else 2


@uncounted
def replace(adjacency, edge, x, old, new, branch):
    """Let x see new where it saw old, along another branch (one side only)."""
    i = place(adjacency, x, old)
    adjacency[x, i] = new
    edge[x, i] = branch


# Steps that moves share.


@uncounted
def internal_branch(adjacency, rng, n_tips):
    """Both ends of an internal branch, uniformly among the T - 3: a uniform directed branch, until both are
    internal."""
    while True:
        u = n_tips + below(rng, n_tips - 2)
        v = adjacency[u, below(rng, 3)]
        if v >= n_tips:
            return u, v


@uncounted
def stretch(p, x, y):
    """Multiply the branch x–y by exp(tuning (U - ½)), in every set of lengths by a draw of its own; returns
    the log of new / old."""
    branch, ratio = p.edge[x, place(p.adjacency, x, y)], 0.0
    for g in range(p.lengths.shape[0]):
        old = p.lengths[g, branch]
        p.lengths[g, branch] = multiplied(old, p.tuning * (uniform(p.rng) - 0.5), p.low, p.high)
        ratio += math.log(p.lengths[g, branch] / old)
    return ratio


@uncounted
def slide(p, v, s):
    """An extending walk of an attachment point (Lakner, van der Mark, Huelsenbeck, Larget and Ronquist 2008,
    Systematic Biology 57:86: eSPR and eTBR): move internal node v, which carries s, along the rest of the
    tree. Returns (moved, carried, log Hastings ratio).

    v leaves its place between a and b, walks towards a across at least one node, at every node into either of
    the two branches ahead with probability ½, and goes on with probability p_extend until it stops or meets a
    tip. The branch between v and the side it walked along (returned as carried: v's neighbour) keeps its
    length, the one left behind passes to a–b, and the branch cut keeps its length beyond v: lengths are
    permuted, the Jacobian is 1.

    With b behind and f ahead at the end, forward and reverse walks share all factors but the choice of
    direction (½, or 1 where the other way is a tip) and of stopping (1 - p_extend, or 1 at a tip): ratio =
    [d(f) / d(b)] [stop(b) / stop(f)], d(tip) = 1, d(internal) = ½, stop(tip) = 1, stop(internal) = 1 -
    p_extend.
    """
    adjacency, edge, rng, n_tips = p.adjacency, p.edge, p.rng, p.n_tips
    a, b = others(adjacency, v, s)
    if a < n_tips and b < n_tips:
        return False, a, 0.0
    if a < n_tips or (b >= n_tips and below(rng, 2) == 1):
        a, b = b, a
    here, behind = a, v
    while True:
        ahead = _either(adjacency, rng, here, behind)
        if ahead < n_tips or uniform(rng) >= p.p_extend:
            break
        here, behind = ahead, here
    regraft(adjacency, edge, v, s, (a, b), (here, ahead))
    ratio = math.log(2.0) if ahead < n_tips else -math.log(1.0 - p.p_extend)
    ratio += -math.log(2.0) if b < n_tips else math.log(1.0 - p.p_extend)
    return True, here, ratio


@uncounted
def others(adjacency, v, s):
    """The two neighbours of internal node v beside s."""
    i = place(adjacency, v, s)
    return adjacency[v, (i + 1) % 3], adjacency[v, (i + 2) % 3]


@uncounted
def regraft(adjacency, edge, v, s, gap, target):
    """Take v, which carries s, out from between a and b, gap = (a, b), and put it into the branch target =
    (here, ahead) of the rest of the tree, on the side of a, here the nearer end. The branch v–a goes along
    and becomes v–here, v–b closes the gap, and the branch cut is v–ahead."""
    (a, b), (here, ahead), i = gap, target, place(adjacency, v, s)
    kept, left_behind = edge[v, place(adjacency, v, a)], edge[v, place(adjacency, v, b)]
    replace(adjacency, edge, a, v, b, left_behind)
    replace(adjacency, edge, b, v, a, left_behind)
    beyond = edge[here, place(adjacency, here, ahead)]
    replace(adjacency, edge, here, ahead, v, kept)
    replace(adjacency, edge, ahead, here, v, beyond)
    j, k = (i + 1) % 3, (i + 2) % 3
    adjacency[v, j], edge[v, j] = here, kept
    adjacency[v, k], edge[v, k] = ahead, beyond


@uncounted
def _either(adjacency, rng, here, behind):
    """One of the two neighbours of here that are not behind, each with probability ½."""
    i = 0
    while adjacency[here, i] != behind:
        i += 1
    return adjacency[here, (i + 1 + below(rng, 2)) % 3]
