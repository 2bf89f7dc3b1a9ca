"""The unrooted view of a tree that topology moves edit: who is next to whom, and how far.

adjacency[x] holds the neighbours of x (three, or one for a tip, in place 0), edge[x] the lengths of those
branches.
"""

from __future__ import annotations

from phloem.inference.mcmc.compiled.compile import compiled


@compiled
def unroot(parent, left, right, length, n_tips, adjacency, edge):
    """Fill adjacency (N, 3) and edge (N, 3) from a tree."""
    for x in range(parent.shape[0]):
        if x < n_tips:
            y = left[0] if x == 0 else parent[x]
            adjacency[x, 0] = y
            edge[x, 0] = length[y] if x == 0 else length[x]
            continue
        l, r = left[x], right[x]
        adjacency[x, 0], adjacency[x, 1], adjacency[x, 2] = parent[x], l, r
        edge[x, 0], edge[x, 1], edge[x, 2] = length[x], length[l], length[r]


@compiled
def hang(adjacency, edge, n_tips, parent, left, right, length, postorder, stack):
    """Write the tree back, hanging from tip 0, with its post-order."""
    root = adjacency[0, 0]
    left[0], parent[root], length[root] = root, 0, edge[0, 0]
    stack[0] = root
    size, at = 1, postorder.shape[0]
    while size > 0:
        size -= 1
        x = stack[size]
        at -= 1
        postorder[at] = x
        if x < n_tips:
            continue
        first = True
        for i in range(3):
            y = adjacency[x, i]
            if y == parent[x]:
                continue
            parent[y], length[y] = x, edge[x, i]
            if first:
                left[x] = y
            else:
                right[x] = y
            first = False
            stack[size] = y
            size += 1


@compiled
def place(adjacency, x, y):
    """Which of x's neighbours is y."""
    if adjacency[x, 0] == y:
        return 0
    return 1 if adjacency[x, 1] == y else 2


@compiled
def set_distance(adjacency, edge, x, y, length):
    """Give the branch between neighbours x and y a length."""
    edge[x, place(adjacency, x, y)] = length
    edge[y, place(adjacency, y, x)] = length


@compiled
def replace(adjacency, edge, x, old, new, length):
    """Let x see new where it saw old, at the given length (one side only)."""
    i = place(adjacency, x, old)
    adjacency[x, i] = new
    edge[x, i] = length
