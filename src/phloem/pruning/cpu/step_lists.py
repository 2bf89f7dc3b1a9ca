"""Lists of post-order steps for the GPU kernels: which tile of which node, from where, after what.

Every tree of a batch has a list; a proposal has one of its own, of the nodes that it changes, so listing has
to take microseconds. The columns of a row are explained at the top of pruning/gpu/kernels/postorder.py and
root.py.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled


@compiled
def count_steps(dirty, size, tile):
    """Tiles of the dirty nodes, root excluded. size: (N,) columns of each."""
    n = 0
    for x in range(len(dirty) - 1):
        if dirty[x]:
            n += (size[x] + tile - 1) // tile
    return n


@compiled
def in_level_order(left, right, dirty):
    """The dirty nodes, root excluded, by the edges to the furthest tip below; (N,) levels of all nodes."""
    n_tips, n_nodes = len(left) + 1, 2 * len(left) + 1
    level, begin = np.zeros(n_nodes, np.int64), np.zeros(n_nodes + 1, np.int64)
    for x in range(n_nodes):
        if x >= n_tips:
            level[x] = 1 + max(level[left[x - n_tips]], level[right[x - n_tips]])
        if dirty[x] and x < n_nodes - 1:
            begin[level[x] + 1] += 1
    for k in range(n_nodes):
        begin[k + 1] += begin[k]
    order = np.empty(begin[n_nodes], np.int64)
    for x in range(n_nodes - 1):
        if dirty[x]:
            order[begin[level[x]]] = x
            begin[level[x]] += 1
    return order, level


@compiled
def list_steps(
    left, right, parent, dirty, message, classes, size, matrix, chain, first_counter, tile, parts, rows
):
    """Write the steps of the dirty nodes, root excluded, lower levels first, into rows (n, 16) int64.

    left, right: (T-1,) children; message, classes: (N,) first column of each node's messages and its place in
    the class arrays; size, matrix: (N,); chain: number of the tree and of its model; first_counter: of its
    counters, one a node; parts: programs that share a step. n: count_steps at least. Returns their number.
    """
    n_tips, k = len(left) + 1, 0
    order, level = in_level_order(left, right, dirty)
    for x in order:
        internal, a, b, awaited = x >= n_tips, 0, 0, 0
        if internal:
            a, b = left[x - n_tips], right[x - n_tips]
            for child in (a, b):
                if dirty[child]:
                    awaited += (size[child] + tile - 1) // tile * parts
        for begin in range(0, size[x], tile):
            row = rows[k]
            row[:] = 0
            row[0] = internal
            row[1], row[2] = message[x] + begin, min(size[x] - begin, tile)
            if internal:
                row[3], row[4] = message[a], message[b]
            row[5], row[6] = matrix[x], classes[x] + begin
            row[7], row[8], row[9] = first_counter + x, awaited, first_counter + parent[x]
            row[13], row[14], row[15] = chain, chain, level[x]
            k += 1
    return k


@compiled
def list_root(left, right, message, classes, size, chain, first_pre_column, first_root, tile, rows):
    """Write the root's steps into rows (tiles of the root, 16) int64."""
    root = 2 * len(left)
    for k in range(len(rows)):
        begin, row = k * tile, rows[k]
        row[:] = 0
        row[0], row[1], row[2] = 1, message[root] + begin, min(size[root] - begin, tile)
        row[3], row[4] = message[left[len(left) - 1]], message[right[len(left) - 1]]
        row[6] = classes[root] + begin
        row[10], row[12] = first_pre_column + begin, first_root + begin
        row[13], row[14] = chain, chain
