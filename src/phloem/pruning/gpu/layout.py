"""What the GPU kernels walk over, for one topology: columns of both passes and the sums between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.pruning.cpu.step_lists import group_columns
from phloem.pruning.interface import ColumnClasses


@dataclass(frozen=True)
class TreeLayout:
    """level: (N,) edges to the furthest tip below; depth: (N,) edges from the root; parent, sibling: (N,).

    Pre-order columns: node x owns pre_offset[x]:pre_offset[x+1]; pre_class: the column of x each stands for.
    A class that gathers more than `longest` columns of the parent is kept as several pre-order columns:
    q = Pᵀu is linear, so the children's sums may add them up instead, and no sum is ever long.
    Tiles (of pre_tile pre-order columns, node after node): tile_offset: (N+1,); tile_longest: entries of the
    longest column; tile_entry: first entry. Entries lie as (longest, pre_tile) blocks: entry_parent is a
    pre-order column of the parent (-1 none), entry_sibling a column of the sibling, both counted from their
    node's first.
    """

    classes: ColumnClasses
    parent: np.ndarray
    sibling: np.ndarray
    level: np.ndarray
    depth: np.ndarray
    pre_offset: np.ndarray
    pre_class: np.ndarray
    tile_offset: np.ndarray
    tile_longest: np.ndarray
    tile_entry: np.ndarray
    entry_parent: np.ndarray
    entry_sibling: np.ndarray


def tree_layout(classes: ColumnClasses, pre_tile: int, longest: int) -> TreeLayout:
    """Lay out the pre-order pass of a topology."""
    n_nodes, n_tips = classes.n_nodes, classes.n_tips
    parent, sibling = np.full(n_nodes, -1), np.full(n_nodes, -1)
    internal = np.arange(n_tips, n_nodes)
    parent[classes.left] = parent[classes.right] = internal
    sibling[classes.left], sibling[classes.right] = classes.right, classes.left
    level, depth = _levels(classes, parent)
    nodes: list[_NodeSums | None] = [None] * n_nodes
    root = n_nodes - 1
    nodes[root] = _NodeSums(np.arange(classes.size(root), dtype=np.int32), _NONE, _NONE, _NONE, _NONE)
    for k in range(root, n_tips - 1, -1):
        above = nodes[k]
        assert above is not None
        at_left = classes.left_class[classes.columns(k)][above.stands_for]
        at_right = classes.right_class[classes.columns(k)][above.stands_for]
        left, right = int(classes.left[k - n_tips]), int(classes.right[k - n_tips])
        nodes[left] = _NodeSums(*group_columns(at_left, at_right, classes.size(left), pre_tile, longest))
        nodes[right] = _NodeSums(*group_columns(at_right, at_left, classes.size(right), pre_tile, longest))
    return _join(classes, parent, sibling, level, depth, [n for n in nodes if n is not None])


@dataclass(frozen=True)
class _NodeSums:
    """One node's part of the layout; tile_size: entries of each tile."""

    stands_for: np.ndarray
    tile_longest: np.ndarray
    tile_size: np.ndarray
    entry_parent: np.ndarray
    entry_sibling: np.ndarray


_NONE = np.zeros(0, np.int32)


def _levels(classes: ColumnClasses, parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    level, depth = np.zeros(classes.n_nodes, np.int64), np.zeros(classes.n_nodes, np.int64)
    for k, (a, b) in enumerate(zip(classes.left, classes.right)):
        level[classes.n_tips + k] = 1 + max(level[a], level[b])
    for x in range(classes.n_nodes - 2, -1, -1):
        depth[x] = depth[parent[x]] + 1
    return level, depth


def _join(classes, parent, sibling, level, depth, nodes: list[_NodeSums]) -> TreeLayout:
    tile_size = np.concatenate([n.tile_size for n in nodes])
    return TreeLayout(
        classes=classes,
        parent=parent,
        sibling=sibling,
        level=level,
        depth=depth,
        pre_offset=np.concatenate([[0], np.cumsum([len(n.stands_for) for n in nodes])]),
        pre_class=np.concatenate([n.stands_for for n in nodes]),
        tile_offset=np.concatenate([[0], np.cumsum([len(n.tile_size) for n in nodes])]),
        tile_longest=np.concatenate([n.tile_longest for n in nodes]),
        tile_entry=np.concatenate([[0], np.cumsum(tile_size)])[:-1],
        entry_parent=np.concatenate([n.entry_parent for n in nodes]),
        entry_sibling=np.concatenate([n.entry_sibling for n in nodes]),
    )
