"""Where the nodes of a tree stand, depth from the root and order among the tips, and how wide names are."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import numpy as np

from phloem.tree.tree import Tree


def len_shown(text: str) -> int:
    """Columns that a text takes in a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


@dataclass(frozen=True)
class Layout:
    """depth: (N,) distance from the root; rank: (N,) 0 … T-1 in drawing order, a parent midway between its
    outer children; order: (T,) tips in drawing order; timed: False if lengths are missing, where depth counts
    nodes. first, last: (N,) rank of the outer children, equal to rank at tips.
    """

    depth: np.ndarray
    rank: np.ndarray
    order: np.ndarray
    first: np.ndarray
    last: np.ndarray
    timed: bool


def children_in_order(tree: Tree, ladderize: bool) -> list[list[int]]:
    """Children of every node, the smaller clade first, or as in the file: tips are numbered in its order."""
    n, t, parent = tree.n_nodes, tree.n_tips, tree.parent.tolist()
    size, first = [1] * t + [0] * (n - t), list(range(t)) + [t] * (n - t)
    for x in range(n - 1):
        p = parent[x]
        size[p] += size[x]
        first[p] = min(first[p], first[x])
    offsets, index = tree.child_offsets.tolist(), tree.child_index.tolist()
    key = size if ladderize else first
    return [sorted(index[offsets[x] : offsets[x + 1]], key=key.__getitem__) for x in range(n)]


def layout(tree: Tree, ladderize: bool = True) -> Layout:
    """Place the nodes (children_in_order). Negative branches count as zero."""
    n, t = tree.n_nodes, tree.n_tips
    parent = tree.parent.tolist()
    timed = not bool(np.any(np.isnan(tree.lengths[:-1])))
    children = children_in_order(tree, ladderize)
    order, stack = [], [n - 1]
    while stack:
        x = stack.pop()
        if not children[x]:
            order.append(x)
        stack.extend(reversed(children[x]))
    rank, first, last = np.zeros(n), np.full(n, np.inf), np.full(n, -np.inf)
    rank[order] = np.arange(t)
    first[:t] = last[:t] = rank[:t]
    for x in range(n - 1):
        if x >= t:
            rank[x] = (first[x] + last[x]) / 2
        p = parent[x]
        first[p], last[p] = min(first[p], rank[x]), max(last[p], rank[x])
    if n > 1:
        rank[n - 1] = (first[n - 1] + last[n - 1]) / 2
    return Layout(_depths(tree, timed), rank, np.array(order), first, last, timed)


def _depths(tree: Tree, timed: bool) -> np.ndarray:
    """Distance from the root; without lengths, tips are level and a node is as high as its clade is deep."""
    n, parent = tree.n_nodes, tree.parent.tolist()
    if timed:
        lengths = np.maximum(tree.lengths, 0).tolist()
        depth = [0.0] * n
        for x in range(n - 2, -1, -1):
            depth[x] = depth[parent[x]] + lengths[x]
        return np.array(depth)
    level = [0] * n
    for x in range(n - 1):
        level[parent[x]] = max(level[parent[x]], level[x] + 1)
    return level[-1] - np.array(level, float)
