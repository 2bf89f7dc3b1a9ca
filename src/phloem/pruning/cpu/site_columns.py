"""What the derivatives by site share, whatever the number of states: classes, and where results go."""

from __future__ import annotations

from phloem.hardware.numba_compile import compiled


@compiled
def classes_below(begin, rows, batch, nodes, columns, at):
    """at[x · batch + j] = class at node x of root column begin + j, for every node and j < rows."""
    n_nodes = len(nodes.left)
    for j in range(rows):
        at[(n_nodes - 1) * batch + j] = begin + j
    for x in range(n_nodes - 1, -1, -1):
        left, right = nodes.left[x], nodes.right[x]
        if left < 0:
            continue
        row = columns.start[nodes.columns_at[x]]
        for j in range(rows):
            k = row + at[x * batch + j]
            at[left * batch + j], at[right * batch + j] = columns.left[k], columns.right[k]


@compiled
def keep_sites(task, begin, rows, slope, curve, unsummed):
    """Put the ratios of a batch, slope and curve (N · batch), where they are wanted (records.Unsummed)."""
    batch, first, share = unsummed.batch, unsummed.first, unsummed.share
    for x in range(len(slope) // batch):
        for j in range(rows):
            k, one, two = begin + j, slope[x * batch + j], curve[x * batch + j]
            if unsummed.want_sites:
                first[x, k] = one
            else:
                share[task, 0, x] += unsummed.weights[k] * (two - one * one)
                share[task, 1, x] += unsummed.hidden[k] * one
                share[task, 2, x] += unsummed.hidden[k] * two


@compiled
def sibling(x, nodes):
    """The other child of x's parent."""
    parent = nodes.parent[x]
    return nodes.right[parent] if nodes.left[parent] == x else nodes.left[parent]
