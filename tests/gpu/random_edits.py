"""Random changes of rooted trees as edits of arrays: which nodes have other children."""

from __future__ import annotations

import numpy as np


def parents(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left, right: (N,), -1 at tips."""
    parent = np.full(len(left), -1)
    for x in np.flatnonzero(left >= 0):
        parent[left[x]] = parent[right[x]] = x
    return parent


def interchange(left, right, rng):
    """A child of an inner node changes places with that node's sibling."""
    left, right, parent = left.copy(), right.copy(), parents(left, right)
    x = int(rng.choice(np.flatnonzero((left >= 0) & (parent >= 0))))
    p = parent[x]
    sibling = left[p] + right[p] - x
    moved, kept = (left[x], right[x]) if rng.random() < 0.5 else (right[x], left[x])
    left[x], right[x] = (sibling, kept) if rng.random() < 0.5 else (kept, sibling)
    left[p], right[p] = (x, moved) if rng.random() < 0.5 else (moved, x)
    return left, right


def regraft(left, right, rng):
    """A subtree, and the node above it, move onto any branch."""
    left, right, parent = left.copy(), right.copy(), parents(left, right)

    def replace(node, child, other):
        side = left if left[node] == child else right
        side[node] = other

    s = int(rng.choice([x for x in np.flatnonzero(parent >= 0) if parent[parent[x]] >= 0]))
    p = parent[s]
    b = left[p] + right[p] - s
    replace(parent[p], p, b)
    below, waiting = {p}, [s]
    while waiting:
        x = waiting.pop()
        below.add(x)
        waiting += [y for y in (left[x], right[x]) if y >= 0]
    now = parents(left, right)
    t = int(rng.choice([x for x in range(len(left) - 1) if x not in below]))
    above = parent[p] if t == b else now[t]
    replace(above, t, p)
    left[p], right[p] = s, t
    return left, right


def edits(old, new):
    """[(node, left, right)] of nodes whose children are others."""
    changed = np.flatnonzero((old[0] != new[0]) | (old[1] != new[1]))
    return [(int(x), int(new[0][x]), int(new[1][x])) for x in changed]


def children_first(left, right):
    """(T-1,) children under numbers with children below parents, and each node's new number."""
    n_tips, order, waiting = (len(left) + 1) // 2, [], [len(left) - 1]
    while waiting:
        x = waiting.pop()
        if left[x] >= 0:
            order.append(x)
            waiting += [int(left[x]), int(right[x])]
    number = np.arange(len(left))
    number[order[::-1]] = np.arange(n_tips, len(left))
    return number[left[order[::-1]]], number[right[order[::-1]]], number
