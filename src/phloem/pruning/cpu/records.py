"""What the CPU kernels work on: flat arrays, grouped by meaning.

A row is one distinct column of one node. Categories come in blocks, the first axis of every array: nothing
couples them between the tips and the root, so that one block's messages stay in the cache.
S = 4: a block is up to four categories, its row is (state, lane), so that a vector is one state of them all;
other S: a block is one category, its row is its states, padded with zeros to whole vectors.
Rows, classes and matrices lie in regions; a node has two of each, and a proposal swaps which one is current.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from phloem.hardware.numba_compile import OneOf


class Shape(NamedTuple):
    """states: S; categories: C; padded: states with padding (4, or whole vectors); blocks: of categories;
    width, exponents, matrix: entries that a row of messages, a row of exponents and a transition matrix
    have in one block; lanes: a tuple as long as a vector; smallest: rescale when a column's largest entry
    is below; layout: FOUR where S = 4, else ANY: types of their own, by which kernels are chosen when what
    calls them is compiled (by_layout)."""

    states: int
    categories: int
    padded: int
    blocks: int
    width: int
    exponents: int
    matrix: int
    lanes: tuple
    smallest: float
    layout: tuple


FOUR, ANY = (), (0,)


def by_layout(four: Any, padded: Any) -> OneOf:
    """One of two kernels, by the layout of the Shape, or of the Sweep, among the arguments."""

    def choose(arguments: tuple) -> Any:
        named = {kind.instance_class: kind for kind in arguments if isinstance(kind, types.NamedTuple)}
        if Sweep in named:
            named[Shape] = named[Sweep].types[Sweep._fields.index("shape")]
        return padded if len(named[Shape].types[Shape._fields.index("layout")]) else four

    return OneOf(choose, f"{four.__name__}, {padded.__name__}")


class Nodes(NamedTuple):
    """left, right, parent: (N,) int64, -1 where there is none; columns_at, messages_at, matrix_at: (N,)
    int64, the region in use; size: (N,) int64, number of distinct columns."""

    left: np.ndarray
    right: np.ndarray
    parent: np.ndarray
    columns_at: np.ndarray
    messages_at: np.ndarray
    matrix_at: np.ndarray
    size: np.ndarray


class Columns(NamedTuple):
    """Classes of every region: start (2N,) first row of a region; left, right: as in ColumnClasses.
    For the way down, per parent: left_order, right_order: its rows sorted by the child's class; left_sibling,
    right_sibling: the other child's class in that order; per child: first (K+1), where each class begins."""

    start: np.ndarray
    left: np.ndarray
    right: np.ndarray
    first: np.ndarray
    left_order: np.ndarray
    left_sibling: np.ndarray
    right_order: np.ndarray
    right_sibling: np.ndarray


class Messages(NamedTuple):
    """start: (2N,) first row of a region; values: (blocks, rows · width); exponents: (blocks, rows ·
    exponents), int32; rescaled: (blocks, 2N) uint8, whether the node itself rescaled any of its columns."""

    start: np.ndarray
    values: np.ndarray
    exponents: np.ndarray
    rescaled: np.ndarray


class Matrices(NamedTuple):
    """Transition matrices, (blocks, 2N · matrix): `down` has the child's state first, `up`, wanted for the
    way down the tree only, the parent's. S = 4: (child, parent, lane), `up` unused; else child states are
    padded to whole sixes of rows and parent states to whole vectors. lengths: (K, N), one row a length
    class."""

    down: np.ndarray
    up: np.ndarray
    lengths: np.ndarray
    want_up: bool


class ModelNumbers(NamedTuple):
    """M processes, C categories. values (M, S), right (M, ., .), left (M, ., .): eigensystems (unused where
    matrices come from the matrix exponential; for padded states left is padded to whole sixes of columns and
    right is its transpose, padded); root_frequencies (M, S). process, length_class (C,) int64: of every
    category; rates, weights (C,). invariant: weight of invariable sites; invariant_frequencies (S,)."""

    values: np.ndarray
    right: np.ndarray
    left: np.ndarray
    root_frequencies: np.ndarray
    process: np.ndarray
    length_class: np.ndarray
    rates: np.ndarray
    weights: np.ndarray
    invariant: float
    invariant_frequencies: np.ndarray


class Scratch(NamedTuple):
    """What one thread works in. rows, more_rows: batches of rows of padded states in the messages' type;
    scaled, matrix: as large as an eigensystem's padded part and a transition matrix; parts, powers: (C + 1,);
    root: root frequencies × weights laid out as a row of messages, all blocks one after the other; growth:
    (max(S, 16),)."""

    rows: np.ndarray
    more_rows: np.ndarray
    scaled: np.ndarray
    matrix: np.ndarray
    parts: np.ndarray
    powers: np.ndarray
    root: np.ndarray
    growth: np.ndarray


class EigenScratch(NamedTuple):
    """For sums in the eigenbasis (eigenbasis.py). adjoint, right, left, half, basis: (matrix,); share
    (exponents,); growth (S,); pairs (40, or S)."""

    adjoint: np.ndarray
    share: np.ndarray
    right: np.ndarray
    left: np.ndarray
    half: np.ndarray
    basis: np.ndarray
    growth: np.ndarray
    pairs: np.ndarray


class StateSets(NamedTuple):
    """State sets of the character codes: code k allows states[first[k] : first[k + 1]]."""

    first: np.ndarray
    states: np.ndarray


class Sweep(NamedTuple):
    """What a pass over the tree works on: one block of categories after the other."""

    nodes: Nodes
    columns: Columns
    messages: Messages
    matrices: Matrices
    sets: StateSets
    shape: Shape


class RootSites(NamedTuple):
    """Of the root's columns: site_log: log-likelihood; mantissa, power: the likelihood is mantissa ·
    2**power; invariant_states: (K × S) uint8, states that all tips allow."""

    site_log: np.ndarray
    mantissa: np.ndarray
    power: np.ndarray
    invariant_states: np.ndarray


class RateColumns(NamedTuple):
    """Every process' Q without its zeros, by columns: Q_m[states[e], j] = values[e] for e in
    first[m, j]:first[m, j + 1]. process: (C,) int64."""

    process: np.ndarray
    first: np.ndarray
    states: np.ndarray
    values: np.ndarray


class Down(NamedTuple):
    """The way down: site_weights: (K,) d log L / d site log-likelihood; q: Pᵀu, laid out as Messages.values;
    adjoint: d log L / d P = Σ p uᵀ laid out as Matrices.down, one per task if keep_adjoint, else one per
    thread, its slot, as scratch; Σ m uᵀ in its place where that does (eigenbasis.needs_partials), unless
    whole is set; derivative: (tasks, exponents) every task's share of ⟨d log L / d P, Q P⟩ in its block,
    zeros before; where adjoints are projected into the eigenbasis, a node's first task has all of it."""

    site_weights: np.ndarray
    q: np.ndarray
    adjoint: np.ndarray
    derivative: np.ndarray
    rate_columns: RateColumns
    keep_adjoint: bool
    whole: bool
    slot: int


class Outer(NamedTuple):
    """What a node adds on the way down. q: of its block, as one of Messages.values; sums[at:]: Σ p uᵀ over
    its columns, that is d log L / d P laid out as Matrices.down, if with_partials, else Σ m uᵀ. turned[
    turned_at:]: the node's P for qᵀ = uᵀ P: S = 4: as it is, else transposed."""

    q: np.ndarray
    sums: np.ndarray
    at: int
    with_partials: bool
    turned: np.ndarray
    turned_at: int


class Operand(NamedTuple):
    """A matrix in a flat array: entry (i, k) is array[at + i · row + k · inner]."""

    array: np.ndarray
    at: int
    row: int
    inner: int


class Unsummed(NamedTuple):
    """Derivatives by site. batch: root columns done together, a multiple of 6. rate_matrix: (blocks, ·) Q of
    every block's categories in the messages' type; S = 4: (row, column, lane); else transposed, rows padded.
    rates: of every category in that type, zeros to whole blocks. ones: (K,).
    Out, whichever is wanted: first: (N, K) L'/L; or share: (tasks, 3, N), a task's sums over its columns of
    weights · (L''/L - (L'/L)²), hidden · L'/L and hidden · L''/L, with weights and hidden (K,)."""

    batch: int
    rate_matrix: np.ndarray
    rates: np.ndarray
    ones: np.ndarray
    weights: np.ndarray
    hidden: np.ndarray
    first: np.ndarray
    share: np.ndarray
    want_sites: bool
