"""Lists of steps for the GPU kernels: which tile, from where, after what. Plain integers, one row a step.

The columns are explained at the top of kernels/triton/postorder.py, preorder.py and root.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from phloem.engine.gpu_layout import TreeLayout
from phloem.engine.gpu_tiling import Tiling

ROW = 16


@dataclass(frozen=True)
class Chain:
    """Where one tree lives in the buffers of its batch.

    index: of the chain, and of its model. first_column, first_pre_column, first_class, first_entry,
    first_root, first_partial: offsets of its parts. columns_in_all: distance between the two slots of a
    message. message_slot, matrix_slot: (N,) 0 or 1, the slot that holds (or will hold) each node's message
    and matrix.
    """

    layout: TreeLayout
    index: int
    n_chains: int
    first_column: int
    first_pre_column: int
    first_class: int
    first_entry: int
    first_root: int
    first_partial: int
    columns_in_all: int
    message_slot: np.ndarray
    matrix_slot: np.ndarray

    def column(self, nodes: np.ndarray) -> np.ndarray:
        offset = self.layout.classes.offset[nodes]
        return self.first_column + offset + self.message_slot[nodes] * self.columns_in_all

    def matrix(self, nodes: np.ndarray) -> np.ndarray:
        n_branches = self.layout.classes.n_nodes - 1
        slot = self.matrix_slot[nodes] * (self.n_chains * n_branches)
        return slot + self.index * n_branches + np.minimum(nodes, n_branches - 1)

    def counter(self, nodes: np.ndarray, pre: bool = False) -> np.ndarray:
        n_nodes = self.layout.classes.n_nodes
        return 2 + (int(pre) * self.n_chains + self.index) * n_nodes + nodes


def in_slot(chain: Chain, slot: int) -> Chain:
    """The chain with all its messages and matrices in one slot."""
    slots = np.full(chain.layout.classes.n_nodes, slot, np.int64)
    return replace(chain, message_slot=slots, matrix_slot=slots)


def matrix_jobs(chain: Chain, branches: np.ndarray) -> np.ndarray:
    """Rows for kernels/triton/transition.py: the matrices of some branches."""
    jobs = np.zeros((len(branches), 4), np.int64)
    jobs[:, 0] = chain.index * chain.layout.classes.n_nodes + branches
    jobs[:, 1] = chain.matrix(branches)
    jobs[:, 2] = chain.index
    return jobs


def postorder_items(chain: Chain, sizes: Tiling, parts: int, dirty: np.ndarray) -> np.ndarray:
    """Steps of the dirty nodes (N,) bool, root excluded, lower levels first. parts: programs that share a
    step."""
    layout, classes = chain.layout, chain.layout.classes
    nodes = np.flatnonzero(dirty[:-1])
    nodes = nodes[np.argsort(layout.level[nodes], kind="stable")]
    n_tiles = -(-np.diff(classes.offset) // sizes.post_tile) * dirty
    row = _node_rows(chain, nodes)
    internal = np.maximum(nodes - classes.n_tips, 0)
    left, right = classes.left[internal], classes.right[internal]
    row[:, 7] = chain.counter(nodes)
    row[:, 8] = np.where(nodes >= classes.n_tips, (n_tiles[left] + n_tiles[right]) * parts, 0)
    row[:, 9] = chain.counter(layout.parent[nodes])
    row[:, 15] = layout.level[nodes]
    return _cut(row, n_tiles[nodes], np.diff(classes.offset)[nodes], sizes.post_tile, (1, 6))


def _node_rows(chain: Chain, nodes: np.ndarray) -> np.ndarray:
    classes = chain.layout.classes
    row = np.zeros((len(nodes), ROW), np.int64)
    internal = nodes >= classes.n_tips
    k = np.maximum(nodes - classes.n_tips, 0)
    row[:, 0] = internal
    row[:, 1] = chain.column(nodes)
    row[:, 3] = np.where(internal, chain.column(classes.left[k]), 0)
    row[:, 4] = np.where(internal, chain.column(classes.right[k]), 0)
    row[:, 5] = chain.matrix(nodes)
    row[:, 6] = chain.first_class + classes.offset[nodes]
    row[:, 13] = row[:, 14] = chain.index
    return row


def _cut(row: np.ndarray, n_tiles: np.ndarray, n_columns: np.ndarray, tile: int, moving: tuple[int, ...]):
    """One row a tile: columns named in moving advance by the tile, column 2 is the number left for it."""
    items = np.repeat(row, n_tiles, axis=0)
    start = (np.arange(len(items)) - np.repeat(np.cumsum(n_tiles) - n_tiles, n_tiles)) * tile
    items[:, 2] = np.minimum(np.repeat(n_columns, n_tiles) - start, tile)
    for column in moving:
        items[:, column] += start
    return items


def root_items(chain: Chain, sizes: Tiling) -> np.ndarray:
    root = np.array([chain.layout.classes.n_nodes - 1])
    row = _node_rows(chain, root)
    row[:, 10] = chain.first_pre_column + chain.layout.pre_offset[root]
    row[:, 12] = chain.first_root
    n = np.diff(chain.layout.classes.offset)[root]
    return _cut(row, -(-n // sizes.root_tile), n, sizes.root_tile, (1, 6, 10, 12))


def preorder_items(chain: Chain, sizes: Tiling, parts: int) -> np.ndarray:
    """Steps of every branch, from the root's children to the tips."""
    layout, classes = chain.layout, chain.layout.classes
    nodes = np.argsort(layout.depth, kind="stable")[1:]
    n_tiles = np.diff(layout.tile_offset)
    parent, root = layout.parent[nodes], classes.n_nodes - 1
    row = np.zeros((len(nodes), ROW), np.int64)
    row[:, 0] = nodes >= classes.n_tips
    row[:, 1] = chain.first_pre_column + layout.pre_offset[nodes]
    row[:, 3] = chain.first_pre_column + layout.pre_offset[parent]
    row[:, 4] = chain.column(layout.sibling[nodes])
    row[:, 5] = chain.matrix(nodes)
    row[:, 7] = chain.counter(parent, pre=True)
    row[:, 8] = np.where(parent == root, 0, n_tiles[parent] * parts)
    row[:, 9] = chain.counter(nodes, pre=True)
    row[:, 10] = chain.column(nodes)
    row[:, 13] = chain.index
    row[:, 15] = layout.depth[nodes]
    items = _cut(row, n_tiles[nodes], np.diff(layout.pre_offset)[nodes], sizes.pre_tile, (1,))
    tile = np.concatenate([np.arange(layout.tile_offset[x], layout.tile_offset[x + 1]) for x in nodes])
    items[:, 6] = chain.first_entry + layout.tile_entry[tile]
    items[:, 11] = layout.tile_longest[tile]
    items[:, 12] = chain.first_partial + tile
    return items


def branch_ranges(chain: Chain, n_categories: int, first_result: int) -> np.ndarray:
    """Rows for root.branch_sums: the partial derivatives of every branch, and where their sum goes."""
    n_branches = chain.layout.classes.n_nodes - 1
    ranges = np.empty((n_branches, 3), np.int64)
    ranges[:, 0] = chain.first_partial + chain.layout.tile_offset[:n_branches]
    ranges[:, 1] = chain.first_partial + chain.layout.tile_offset[1 : n_branches + 1]
    ranges[:, 2] = first_result + np.arange(n_branches) * n_categories
    return ranges


def adjoint_jobs(chain: Chain, nodes: np.ndarray) -> np.ndarray:
    """Rows for kernels/triton/adjoint.py."""
    layout, row = chain.layout, _node_rows(chain, nodes)
    jobs = np.zeros((len(nodes), 8), np.int64)
    jobs[:, 0] = row[:, 0]
    jobs[:, 1] = chain.first_pre_column + layout.pre_offset[nodes]
    jobs[:, 2] = np.diff(layout.pre_offset)[nodes]
    jobs[:, 3:7] = row[:, [1, 3, 4, 6]]
    return jobs


def in_level_order(items: list[np.ndarray]) -> np.ndarray:
    """Steps of several chains, interleaved so that every chain's level (column 15) comes with the others'."""
    rows = np.concatenate(items)
    return rows if len(items) == 1 else rows[np.argsort(rows[:, 15], kind="stable")]
