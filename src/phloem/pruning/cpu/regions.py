"""Memory of one alignment on one tree: two regions for each node's columns, messages and matrix, which of
them a state has in use, what a proposal changes of that, and how many bytes it all takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from phloem.model.record import SiteModel
from phloem.pruning.cpu.column_classes import number_all, number_pairs, sort_all, table_entries
from phloem.pruning.cpu.matrix_product import ROWS
from phloem.pruning.cpu.records import Columns, Messages, Shape
from phloem.pruning.cpu.storage import rows_for, shape_of
from phloem.pruning.interface import Problem
from phloem.pruning.topology import Topology, match_clades


@dataclass
class Regions:
    """Where each region starts and how many rows it has room for; a region that must grow moves to the
    end."""

    start: np.ndarray
    capacity: np.ndarray
    rows: int = 0

    @staticmethod
    def none(n_regions: int) -> Regions:
        """Regions without any room yet."""
        return Regions(np.zeros(n_regions, np.int64), np.zeros(n_regions, np.int64))

    def reserve(self, region: int, rows: int) -> None:
        """Room for so many rows, and a quarter more where it had some: a region moves only now and then."""
        if self.capacity[region] >= rows:
            return
        if self.capacity[region] > 0:
            rows += rows // 4
        self.start[region], self.capacity[region] = self.rows, rows
        self.rows += rows


def grown(array: np.ndarray, entries: int) -> np.ndarray:
    """The array if its last axis has room for `entries`, else a copy: with half as much again, unless it was
    empty."""
    if array.shape[-1] >= entries:
        return array
    entries = entries if array.shape[-1] == 0 else entries + entries // 2
    larger = np.empty((*array.shape[:-1], entries), array.dtype)
    larger[..., : array.shape[-1]] = array
    return larger


@dataclass
class MessageStore:
    """Branch messages of every region; q: the pre-order vectors, in the same regions."""

    regions: Regions
    shape: Shape
    values: np.ndarray
    exponents: np.ndarray
    rescaled: np.ndarray
    q: np.ndarray

    @staticmethod
    def build(columns: Regions, shape: Shape, precision: str) -> MessageStore:
        """Room for as many rows as the distinct columns of every node have."""
        start = columns.start
        regions = Regions(start.copy(), columns.capacity.copy(), columns.rows)
        empty = np.empty((shape.blocks, 0), precision)
        exponents = np.empty((shape.blocks, 0), np.int32)
        rescaled = np.zeros((shape.blocks, len(start)), np.uint8)
        store = MessageStore(regions, shape, empty, exponents, rescaled, empty)
        store.grow()
        return store

    def grow(self) -> None:
        """Make room for every region."""
        self.values = grown(self.values, self.regions.rows * self.shape.width)
        self.exponents = grown(self.exponents, self.regions.rows * self.shape.exponents)

    def grow_down(self) -> None:
        """Make room for the pre-order vectors."""
        if self.q.shape[1] < self.values.shape[1]:
            self.q = np.empty_like(self.values)

    def messages(self) -> Messages:
        """As the kernels want it."""
        return Messages(self.regions.start, self.values, self.exponents, self.rescaled)


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


# States of the engine, and what a proposal changes of one.


class State(NamedTuple):
    """One evaluated state. It names the region in use of every node, so that accepting or rejecting a
    proposal is choosing between two of these records. slot: which of the two sets of root arrays it owns.
    lengths: (K, N). log_likelihood: not a number until it is evaluated."""

    topology: Topology
    columns_at: np.ndarray
    messages_at: np.ndarray
    matrix_at: np.ndarray
    lengths: np.ndarray
    model: SiteModel
    slot: int
    log_likelihood: float = np.nan


def proposed_state(
    old: State, columns: ColumnStore, lengths, changed, model: SiteModel | None, left, right
) -> tuple[State, np.ndarray, np.ndarray]:
    """The state after a change (arguments as Evaluator.propose has them), not evaluated yet; the nodes whose
    matrices it changes, and those whose messages it does, ascending. Both get the regions that the old state
    does not use, as do the columns that another topology changes, which are numbered here."""
    lengths, root = two_dimensional(lengths), old.lengths.shape[1] - 1
    state = old._replace(lengths=lengths, slot=1 - old.slot, log_likelihood=np.nan)
    moved = np.empty(0, np.int64)
    if left is not None:
        match = match_clades(old.topology, left, right)
        moved, node = match.moved, match.old_node
        changed = np.flatnonzero((lengths != old.lengths[:, node]).any(0))
        state = state._replace(
            topology=match.topology,
            columns_at=columns.renumber(match.topology, moved, old.topology, old.columns_at[node]),
            messages_at=old.messages_at[node],
            matrix_at=old.matrix_at[node],
        )
    if model is not None:
        state, changed = state._replace(model=model), np.arange(root)
    changed = np.setdiff1d(np.asarray(changed, np.int64), [root])
    above = state.topology.with_ancestors(np.concatenate([changed, moved, [root]]))
    dirty = np.flatnonzero(above)
    messages_at, matrix_at = _flipped(state.messages_at, dirty), _flipped(state.matrix_at, changed)
    return state._replace(messages_at=messages_at, matrix_at=matrix_at), changed, dirty


def two_dimensional(lengths: np.ndarray) -> np.ndarray:
    """(K, N) own copy of lengths (N,) or (K, N)."""
    return np.array(np.atleast_2d(lengths), np.float64, order="C")


def _flipped(regions: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """The same regions, but the other one of `nodes`."""
    n_nodes, result = len(regions), regions.copy()
    result[nodes] = np.where(result[nodes] < n_nodes, result[nodes] + n_nodes, result[nodes] - n_nodes)
    return result


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
