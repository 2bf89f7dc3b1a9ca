"""What population sizes of neighbouring times are drawn in, all at once (compiled/field.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.inference.time.structure import TimeModel


class Field(NamedTuple):
    """density, settings: the tree prior's, as TimeData has them. n: K sizes, the first of its numbers; 0:
    it has none of the kind. precise: 1 where a precision that is not fixed comes after them. To work in: x,
    by_number (n,) of all its numbers, by_height (N,), rows (7, K): the mode; D and L of the curvature L D Lᵀ
    there, L by its values below the diagonal; slopes, and three of moved ones. spacing: of times between
    which sizes are constant, 0 where they are none; cell: (N,) int64 between which of them joinings are in a
    trajectory, motion (7, N): compiled/crossings.py. place: of log N₁ among the coordinates of numbers."""

    density: int
    settings: np.ndarray
    n: int
    precise: int
    x: np.ndarray
    by_number: np.ndarray
    by_height: np.ndarray
    rows: np.ndarray
    spacing: float
    cell: np.ndarray
    motion: np.ndarray
    place: int


def field_of(model: TimeModel, density: int, settings: np.ndarray) -> Field:
    """Of a chain's tree prior."""
    blocks = model.parameters.blocks
    size = sum(block.size for block in blocks)
    n = blocks[0].size if model.tree_prior.field else 0
    precise = int(size > n > 0 and "precision" not in model.fixed)
    nodes = 2 * model.n_tips - 1
    spacing = float(settings[0]) if model.tree_prior.stepped else 0.0
    return Field(
        density, settings, n, precise, np.ones(size), np.zeros(size), np.zeros(nodes), np.zeros((7, n)),
        spacing, np.zeros(nodes, np.int64), np.zeros((7, nodes)),
        int(model.space.coordinate_offsets[model.space.index("pop_size")]) if n else 0,
    )  # fmt: skip
