"""How many distinct columns a problem has, and how many bytes the CPU engine will hold for it."""

from __future__ import annotations

import numpy as np

from phloem.pruning.cpu.column_store import ColumnStore
from phloem.pruning.cpu.storage import rows_for, shape_of
from phloem.pruning.interface import Problem
from phloem.pruning.topology import Topology


def column_sizes(problem: Problem) -> np.ndarray:
    """(N,) distinct columns of every node."""
    topology = Topology.build(problem.left, problem.right)
    return ColumnStore.build(problem, topology).size[: len(topology.left)]


def forecast_bytes(problem: Problem, sizes: np.ndarray) -> int:
    """Bytes of the engine's arrays for value and gradient; a proposal may double the messages' part.

    By row: messages up and down, exponents, classes and their sorted orders. By node: transition matrices
    (two regions) with their transposes and adjoints. While numbering classes: one a node and pattern.
    """
    shape = shape_of(problem)
    entry = np.dtype(problem.precision).itemsize
    rows = sum(rows_for(int(size)) for size in sizes)
    row_bytes = shape.blocks * (2 * shape.width * entry + shape.exponents * 4) + 7 * 4
    matrix_bytes = shape.matrix * shape.blocks * entry
    numbering = 4 * len(sizes) * problem.tip_codes.shape[1]
    return int(rows * row_bytes + 4 * len(sizes) * matrix_bytes + numbering)
