# "Distinct columns of the CPU engine: built once, renumbered where a proposal changes the topology;
# memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.pruning.cpu.column_classes import number_all, number_pairs, sort_all, table_entries
from phloem.pruning.cpu.matrix_product import ROWS
from phloem.pruning.cpu.records import Columns
from phloem.pruning.cpu.storage import Regions, grown, rows_for, shape_of
from phloem.pruning.interface import Problem
from phloem.pruning.topology import Topology

# Distinct columns of the CPU engine: built once, renumbered where a proposal changes the topology.


@dataclass
class ColumnStore:
    """Classes of every region; size: (2N,) columns of each. root_column: (P,) root column of every pattern
    (whatever the topology, since a pattern's class at the root is its whole column of codes). orders: the
    sorted fields of records.Columns, made when a gradient first needs them. class_of: (2N, P) every pattern's
    class in every region, kept once a topology was proposed."""

    problem: Problem
    regions: Regions
    size: np.ndarray
    left: np.ndarray
    right: np.ndarray
    root_column: np.ndarray
    orders: list[np.ndarray]
    class_of: np.ndarray | None = None

    @staticmethod
    def build(problem: Problem, topology: Topology) -> ColumnStore:
        """Number the distinct columns of every node."""
        n_nodes = len(topology.left)
        class_of = np.empty((n_nodes, problem.tip_codes.shape[1]), np.int32)
        regions, size, left, right = _number(problem, topology, class_of)
        orders = [np.empty(0, np.int32)] * 5
        return ColumnStore(problem, regions, size, left, right, class_of[n_nodes - 1].copy(), orders)

    def renumber(self, topology: Topology, moved: np.ndarray, old: Topology, at: np.ndarray) -> np.ndarray:
        """Number the columns of moved nodes (ascending), those with other children than before.

        at: (N,) the regions in use before, by the new topology's nodes. Returns those in use now. Nodes above
        keep theirs: classes are numbered by their first pattern, so they depend on the tips below alone.
        """
        if self.class_of is None:
            class_of = np.empty((len(self.size), self.problem.tip_codes.shape[1]), np.int32)
            _number(self.problem, old, class_of)
            self.class_of = class_of
        n_nodes, n_patterns, base = len(at), self.class_of.shape[1], 0
        table = np.full(table_entries(n_patterns), -1, np.int64)
        left, right, at = np.empty(n_patterns, np.int32), np.empty(n_patterns, np.int32), at.copy()
        for x in moved:
            at[x] = region = at[x] + n_nodes if at[x] < n_nodes else at[x] - n_nodes
            a, b = at[topology.left[x]], at[topology.right[x]]
            counts = int(self.size[a]), int(self.size[b])
            size = number_pairs(
                self.class_of[a], self.class_of[b], counts, self.problem.repeats, table, base,
                self.class_of[region], left, right,
            )  # fmt: skip
            base += size
            self.regions.reserve(region, rows_for(size))
            self.left, self.right = grown(self.left, self.regions.rows), grown(self.right, self.regions.rows)
            rows = slice(self.regions.start[region], self.regions.start[region] + size)
            self.left[rows], self.right[rows], self.size[region] = left[:size], right[:size], size
        return at

    def sort(self, topology: Topology, region: np.ndarray) -> None:
        """Sort the rows of every internal node by its children's classes."""
        self.orders = [grown(array, self.regions.rows) for array in self.orders]
        sort_all(topology.left, topology.right, region, self.size, self.columns())

    def columns(self) -> Columns:
        """As the kernels want it."""
        return Columns(self.regions.start, self.left, self.right, *self.orders)


def _number(problem: Problem, topology: Topology, class_of: np.ndarray):
    """Regions, sizes (2N,) and classes of every node in its first region; class_of: out, (>= N, P)."""
    n_tips, n_patterns = problem.tip_codes.shape
    n_nodes, n_codes = len(topology.left), len(problem.state_sets)
    room = n_tips * rows_for(min(n_codes, n_patterns)) + (n_tips - 1) * rows_for(n_patterns)
    left, right = np.empty(room, np.int32), np.empty(room, np.int32)
    regions, size = Regions.none(2 * n_nodes), np.zeros(2 * n_nodes, np.int64)
    children = topology.left[n_tips:], topology.right[n_tips:]
    # A copy of one type, contiguous and writable, so that number_all is compiled once only.
    codes = np.array(problem.tip_codes, np.uint8 if n_codes <= 256 else np.int32, order="C")
    out = (class_of, left, right, regions.start, size)
    used = number_all(*children, codes, n_codes, problem.repeats, ROWS, out)
    regions.capacity[:n_nodes] = (size[:n_nodes] // ROWS + 1) * ROWS
    regions.rows = used
    return regions, size, left[:used].copy(), right[:used].copy()


# How many distinct columns a problem has, and how many bytes the CPU engine will hold for it.


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
