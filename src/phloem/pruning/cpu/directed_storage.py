"""Room for directed messages (directed.py), of the data and of every thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np

from phloem.pruning.cpu.cell_memory import aligned
from phloem.pruning.cpu.directed import Shape
from phloem.pruning.cpu.directed_insertions import Desk, Star
from phloem.pruning.cpu.directed_lengths import Room
from phloem.pruning.cpu.directed_quartets import Quartet
from phloem.pruning.cpu.directed_regrafts import Walk
from phloem.pruning.interface import Problem

# Two registers of float64: the products of a matrix then wait for each other half as often as with one.
LANES = (0,) * (16 if llvm.get_host_cpu_features().get("avx512f") else 8)


class Thread(NamedTuple):
    """half: as Messages.half."""

    desk: Desk
    half: np.ndarray


def shape_of(problems: Sequence[Problem]) -> Shape:
    """Blocks of patterns, and the most states and categories of any."""
    blocks = sum(-(-len(one.pattern_weights) // len(LANES)) for one in problems)
    states = max(one.state_sets.shape[1] for one in problems)
    categories = max(one.n_categories for one in problems)
    tips = problems[0].tip_codes.shape[0]
    return Shape(LANES, tips, blocks, categories, -(-states // 4) * 4, len(problems))


def bytes_of(problems: Sequence[Problem]) -> float:
    """What the messages of problems that share lengths take, and their matrices."""
    shape = shape_of(problems)
    column, edges = float(shape.categories * shape.states), 4.0 * shape.tips - 6
    return 8 * edges * column * (shape.blocks * len(LANES) + 2 * shape.parts * shape.states)


def thread_of(shape: Shape, radius: int, n_sets: int) -> Thread:
    """n_sets: of branch lengths."""
    n, size = len(shape.lanes), shape.categories * shape.states
    column, edges = size * n, 4 * shape.tips - 6
    a, b, c, d, e = (aligned(column) for _ in range(5))
    theta, stack = aligned(shape.blocks * column), np.zeros(4 * shape.tips, np.int64)
    room = Room(a, b, theta, np.zeros(3 * size * shape.parts), stack)
    walk = Walk(aligned((radius + 1) * column), np.zeros((radius + 1) * n), c, d, e)
    ends, sent = aligned(3 * shape.blocks * column), aligned(3 * shape.blocks * column)
    star = Star(
        ends, sent, np.zeros(shape.blocks * n), np.zeros((3, n_sets)), np.zeros(radius + 1, np.int64),
        np.zeros(0),
    )  # fmt: skip
    return Thread(Desk(room, walk, star), aligned(edges * column))


def quartet_of(shape: Shape, room: Room, n_sets: int) -> Quartet:
    n, size = len(shape.lanes), shape.categories * shape.states
    span = shape.blocks * size * n
    return Quartet(
        room, aligned(4 * span), aligned(4 * span), aligned(span), np.zeros(shape.blocks * n),
        np.zeros((5, n_sets)), np.zeros(size * shape.states * shape.parts),
    )  # fmt: skip
