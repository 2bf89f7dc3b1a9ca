"""Lists of steps for the GPU kernels: which tile, from where, after what, and in which order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.pruning.cpu.schedule import list_schedule
from phloem.pruning.cpu.step_lists import StepNodes, count_steps, list_root, list_steps
from phloem.pruning.gpu.layout import TreeLayout

# Sizes the GPU kernels are compiled for: they depend on states and precision only, never on the data's
# size.


@dataclass(frozen=True)
class Tiling:
    """width: states in memory (a multiple of 4). block: states of one matrix tile (matrix_block where
    matrices are made). chunks: blocks that cover width. post_tile, pre_tile: columns of a step. longest:
    columns summed into one pre-order column. warps: of post-order and pre-order programs; programs: of each
    a multiprocessor runs. registers: limit for a thread, 0 none; fewer registers let more programs run at a
    time."""

    width: int
    block: int
    chunks: int
    post_tile: int
    pre_tile: int
    root_tile: int
    longest: int
    post_warps: int
    pre_warps: int
    post_programs: int
    pre_programs: int
    post_registers: int
    pre_registers: int
    matrix_warps: int
    matrix_block: int


def tiling(n_states: int, precision: str) -> Tiling:
    """The tiling measured fastest on an H100 for this number of states (docs/gpu.md has the figures)."""
    width = -(-n_states // 4) * 4
    if width == 4:
        return Tiling(4, 4, 1, 128, 256, 64, 3, 4, 4, 4, 4, 0, 128, 4, 16)
    block = 16
    while block < min(n_states, 64):
        block *= 2
    chunks = -(-n_states // block)
    wide = 64 if precision == "float32" and chunks == 1 else 32  # twice the columns take the same registers
    if block < 64:
        return Tiling(width, block, chunks, 64, wide, 16, 9, 4, 4, 4, 4, 0, 128, 4, block)
    if wide == 64:
        return Tiling(width, block, chunks, 32, wide, 16, 5, 4, 4, 4, 2, 0, 0, 4, 64)
    return Tiling(width, block, chunks, 32, wide, 16, 5, 4, 8, 4, 2, 0, 128, 4, 64)


def tree_steps(tip_codes: np.ndarray, n_states: int, n_categories: int, precision: str) -> int:
    """Steps of all messages of a tree: how much of a GPU it fills. tip_codes: (T, P)."""
    sizes, (n_tips, n_patterns) = tiling(n_states, precision), tip_codes.shape
    return 2 * n_tips * -(-n_patterns // sizes.post_tile) * sizes.chunks * n_categories


# Lists of steps for the GPU kernels: which tile, from where, after what. Plain integers, one row a step.
#
# The columns are explained at the top of kernels/postorder.py, preorder.py and root.py; post-order lists
# are written by pruning/cpu/step_lists.py.


ROW = 16


@dataclass(frozen=True)
class Chain:
    """Where one tree lives in the buffers of its batch.

    index: of the chain, and of its model. first_column (of messages and of classes), first_pre_column,
    first_entry, first_root, first_partial: offsets of its parts.
    """

    layout: TreeLayout
    index: int
    n_chains: int
    first_column: int
    first_pre_column: int
    first_entry: int
    first_root: int
    first_partial: int

    def column(self, nodes: np.ndarray) -> np.ndarray:
        """First column of each node, in the messages and in the class arrays."""
        return self.first_column + self.layout.classes.offset[nodes]

    def matrix(self, nodes: np.ndarray) -> np.ndarray:
        n_branches = self.layout.classes.n_nodes - 1
        return self.index * n_branches + np.minimum(nodes, n_branches - 1)

    def counter(self, nodes: np.ndarray, pre: bool = False) -> np.ndarray:
        n_nodes = self.layout.classes.n_nodes
        return 2 + (int(pre) * self.n_chains + self.index) * n_nodes + nodes


def matrix_jobs(chain: Chain, branches: np.ndarray) -> np.ndarray:
    """Rows for pruning/gpu/kernels/transition.py: the matrices of some branches."""
    jobs = np.zeros((len(branches), 4), np.int64)
    jobs[:, 0] = chain.index * chain.layout.classes.n_nodes + branches
    jobs[:, 1] = chain.matrix(branches)
    jobs[:, 2] = chain.index
    return jobs


def postorder_items(chain: Chain, sizes: Tiling, parts: int) -> np.ndarray:
    """Steps of all nodes, root excluded, lower levels first. parts: programs that share a step."""
    nodes = _step_nodes(chain)
    rows = np.empty((count_steps(nodes.size, sizes.post_tile), ROW), np.int64)
    first_counter = int(chain.counter(np.arange(len(nodes.size)))[0])
    list_steps(nodes, chain.index, first_counter, sizes.post_tile, parts, rows)
    return rows


def _step_nodes(chain: Chain) -> StepNodes:
    classes, nodes = chain.layout.classes, np.arange(chain.layout.classes.n_nodes)
    left, right = (np.asarray(side, np.int64) for side in (classes.left, classes.right))
    size = np.diff(classes.offset)
    return StepNodes(left, right, chain.layout.parent, chain.column(nodes), size, chain.matrix(nodes))


def _cut(row: np.ndarray, n_tiles: np.ndarray, n_columns: np.ndarray, tile: int, moving: tuple[int, ...]):
    """One row a tile: columns named in moving advance by the tile, column 2 is the number left for it."""
    items = np.repeat(row, n_tiles, axis=0)
    start = (np.arange(len(items)) - np.repeat(np.cumsum(n_tiles) - n_tiles, n_tiles)) * tile
    items[:, 2] = np.minimum(np.repeat(n_columns, n_tiles) - start, tile)
    for column in moving:
        items[:, column] += start
    return items


def root_items(chain: Chain, sizes: Tiling) -> np.ndarray:
    """Steps of the root."""
    layout, classes = chain.layout, chain.layout.classes
    root = classes.n_nodes - 1
    rows = np.empty((-(-classes.size(root) // sizes.root_tile), ROW), np.int64)
    first_pre_column = chain.first_pre_column + int(layout.pre_offset[root])
    list_root(_step_nodes(chain), chain.index, first_pre_column, chain.first_root, sizes.root_tile, rows)
    return rows


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
    """Rows for pruning/gpu/kernels/transition.py."""
    layout, classes = chain.layout, chain.layout.classes
    internal, k = nodes >= classes.n_tips, np.maximum(nodes - classes.n_tips, 0)
    jobs = np.zeros((len(nodes), 8), np.int64)
    jobs[:, 0] = internal
    jobs[:, 1] = chain.first_pre_column + layout.pre_offset[nodes]
    jobs[:, 2] = np.diff(layout.pre_offset)[nodes]
    jobs[:, 3] = jobs[:, 6] = chain.column(nodes)
    jobs[:, 4] = np.where(internal, chain.column(classes.left[k]), 0)
    jobs[:, 5] = np.where(internal, chain.column(classes.right[k]), 0)
    jobs[:, 7] = jobs[:, 1]
    return jobs


def in_level_order(items: list[np.ndarray]) -> np.ndarray:
    """Steps of several chains, interleaved so that every chain's level (column 15) comes with the others'."""
    rows = np.concatenate(items)
    return rows if len(items) == 1 else rows[np.argsort(rows[:, 15], kind="stable")]


# The order of post-order steps on a GPU: programs take them one after the other, so it decides who waits.


def critical_path_first(items: np.ndarray, chains: list[Chain], n_at_a_time: int) -> np.ndarray:
    """Post-order steps of all nodes of all chains, reordered so that n_at_a_time programs seldom wait.

    By level, the narrow top of a tree comes last, with most programs idle; here deep nodes go first and the
    wide levels fill up the rounds. Steps depend on earlier ones only, in this order too.
    """
    first_counter = int(chains[0].counter(np.array([0]))[0])
    n_nodes = chains[0].layout.classes.n_nodes
    node = items[:, 7] - first_counter
    by_node = np.argsort(node, kind="stable")
    n_tiles = np.bincount(node, minlength=n_nodes * len(chains))
    parent = np.concatenate(
        [np.where(c.layout.parent >= 0, c.layout.parent + k * n_nodes, -1) for k, c in enumerate(chains)]
    )
    depth = np.concatenate([c.layout.depth for c in chains])
    order = list_schedule(np.cumsum(n_tiles) - n_tiles, n_tiles, parent, depth, n_at_a_time)
    return items[by_node[order]]
