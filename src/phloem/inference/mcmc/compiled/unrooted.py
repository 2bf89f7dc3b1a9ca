"""The unrooted view of a tree that topology moves edit: who is next to whom, and along which branch.

adjacency[x] holds the neighbours of x (three, or one for a tip, in place 0), edge[x] the branches to them, by
the node that had each when the move began: a move permutes branches, whatever lengths they have.
"""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted


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
