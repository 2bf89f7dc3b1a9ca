"""Lists of steps for the GPU kernels: which tile of which node, from where, after what; which columns of a
parent are summed into those of a child.

The columns of a row are explained at the top of pruning/gpu/kernels/postorder.py and root.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import compiled


class StepNodes(NamedTuple):
    """A tree on the device. left, right: (T-1,) children of the internal nodes; parent (N,); column: (N,) the
    first of each node, of its messages and in the class arrays; size: (N,) columns of each; matrix: (N,)."""

    left: np.ndarray
    right: np.ndarray
    parent: np.ndarray
    column: np.ndarray
    size: np.ndarray
    matrix: np.ndarray


def count_steps(size: np.ndarray, tile: int) -> int:
    """Tiles of all nodes, root excluded. size: (N,) columns of each."""
    return int((-(-size[:-1] // tile)).sum())


@compiled
def in_level_order(left, right):
    """The nodes, root excluded, by the edges to the furthest tip below; (N,) levels of all nodes."""
    n_tips, n_nodes = len(left) + 1, 2 * len(left) + 1
    level, begin = np.zeros(n_nodes, np.int64), np.zeros(n_nodes + 1, np.int64)
    for x in range(n_nodes):
        if x >= n_tips:
            level[x] = 1 + max(level[left[x - n_tips]], level[right[x - n_tips]])
        if x < n_nodes - 1:
            begin[level[x] + 1] += 1
    for k in range(n_nodes):
        begin[k + 1] += begin[k]
    order = np.empty(begin[n_nodes], np.int64)
    for x in range(n_nodes - 1):
        order[begin[level[x]]] = x
        begin[level[x]] += 1
    return order, level


@compiled
def list_steps(nodes, chain, first_counter, tile, parts, rows):
    """Write the steps of all nodes, root excluded, lower levels first, into rows (n, 16) int64.

    nodes: StepNodes; chain: number of the tree and of its model; first_counter: of its counters, one a node;
    parts: programs that share a step. n: count_steps at least. Returns their number.
    """
    left, right, parent, column, size, matrix = nodes
    n_tips, k = len(left) + 1, 0
    order, level = in_level_order(left, right)
    for x in order:
        internal, a, b, awaited = x >= n_tips, 0, 0, 0
        if internal:
            a, b = left[x - n_tips], right[x - n_tips]
            for child in (a, b):
                awaited += (size[child] + tile - 1) // tile * parts
        for begin in range(0, size[x], tile):
            row = rows[k]
            row[:] = 0
            row[0] = internal
            row[1], row[2] = column[x] + begin, min(size[x] - begin, tile)
            if internal:
                row[3], row[4] = column[a], column[b]
            row[5], row[6] = matrix[x], column[x] + begin
            row[7], row[8], row[9] = first_counter + x, awaited, first_counter + parent[x]
            row[13], row[14], row[15] = chain, chain, level[x]
            k += 1
    return k


@compiled
def list_root(nodes, chain, first_pre_column, first_root, tile, rows):
    """Write the root's steps into rows (tiles of the root, 16) int64."""
    left, right, _, column, size, _ = nodes
    root = 2 * len(left)
    for k in range(len(rows)):
        begin, row = k * tile, rows[k]
        row[:] = 0
        row[0], row[1], row[2] = 1, column[root] + begin, min(size[root] - begin, tile)
        row[3], row[4] = column[left[len(left) - 1]], column[right[len(left) - 1]]
        row[6] = column[root] + begin
        row[10], row[12] = first_pre_column + begin, first_root + begin
        row[13], row[14] = chain, chain


# Which pre-order columns of a parent are summed into those of a child (gpu/layout.py).


@compiled
def group_columns(own, other, n_classes, tile, longest):
    """Group a parent's pre-order columns by the child's class, at most `longest` a group, long groups first.

    own, other: (n,) classes of the parent's columns at the child and at its sibling; n_classes: of the child.
    Returns stands_for (groups,), each one's class; tile_longest and tile_size, entries of the longest group
    and of all of every tile of groups; entry_parent, entry_sibling in (longest, tile) blocks: a column of the
    parent (-1 none) and its class at the sibling.
    """
    count = np.zeros(n_classes, np.int64)
    for k in own:
        count[k] += 1
    n_of_size = np.zeros(longest + 2, np.int64)
    for k in range(n_classes):
        n_of_size[longest] += count[k] // longest
        n_of_size[count[k] % longest] += 1
    n_of_size[0] = 0
    following = np.zeros(longest + 1, np.int64)  # the next group of each size
    for size in range(longest - 1, 0, -1):
        following[size] = following[size + 1] + n_of_size[size + 1]
    n_groups = n_of_size.sum()
    stands_for, group_size = np.empty(n_groups, np.int32), np.empty(n_groups, np.int64)
    first_full, last = np.empty(n_classes, np.int64), np.empty(n_classes, np.int64)
    for k in range(n_classes):
        full, rest = count[k] // longest, count[k] % longest
        first_full[k] = following[longest]
        stands_for[first_full[k] : first_full[k] + full] = k
        group_size[first_full[k] : first_full[k] + full] = longest
        following[longest] += full
        last[k] = following[rest]
        if rest > 0:
            stands_for[last[k]], group_size[last[k]] = k, rest
            following[rest] += 1
    tile_longest = group_size[::tile].copy()
    place, n_entries = np.empty(n_groups, np.int64), 0  # of a group's first entry
    for t in range(len(tile_longest)):
        for column in range(t * tile, min((t + 1) * tile, n_groups)):
            place[column] = n_entries + column - t * tile
        n_entries += tile_longest[t] * tile
    entry_parent, entry_sibling = np.full(n_entries, -1, np.int32), np.zeros(n_entries, np.int32)
    group, rank = first_full, np.zeros(n_classes, np.int64)  # of the next column of every class
    for k in range(n_classes):
        if count[k] < longest:
            group[k] = last[k]
    for j in range(len(own)):
        k = own[j]
        entry = place[group[k]] + rank[k] * tile
        entry_parent[entry], entry_sibling[entry] = j, other[j]
        rank[k] += 1
        if rank[k] == longest:
            rank[k] = 0
            count[k] -= longest
            group[k] = group[k] + 1 if count[k] >= longest else last[k]
    return stands_for, tile_longest, tile_longest * tile, entry_parent, entry_sibling
