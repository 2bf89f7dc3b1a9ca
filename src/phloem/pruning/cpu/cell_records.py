"""What one chain's copy of one partition consists of, and how compiled loops find it in tables.

A table of numbers and one of addresses hold any number of cells, each with sizes of its own, so that one
compiled loop serves them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import merged
from phloem.pruning.cpu.addresses import float64_at, int32_at, int64_at, uint8_at
from phloem.pruning.cpu.records import ModelNumbers

COLUMNS, MESSAGES, MATRICES = range(3)  # rows of CellArrays.at
OTHER_CHILDREN, OTHER_TIPS, OTHER_BELOW = 1, 2, 4  # bits of ProposedTree.moved


class CellNumbers(NamedTuple):
    """Sizes of a cell, one row of a table. tips: T; patterns: P; codes: of characters; states, categories,
    padded, blocks, width, exponents, matrix: as in records.Shape; processes: M; first_lengths,
    length_classes: which rows of a chain's lengths the cell uses, K of them; message_rows, column_rows: of
    all regions; guarded: 1 if columns are rescaled; ascertained: 1 if some patterns stand for unobservable
    ones; repeats: 1 to work on distinct columns."""

    tips: int
    patterns: int
    codes: int
    states: int
    categories: int
    padded: int
    blocks: int
    width: int
    exponents: int
    matrix: int
    processes: int
    first_lengths: int
    length_classes: int
    message_rows: int
    column_rows: int
    guarded: int
    ascertained: int
    repeats: int


class CellArrays(NamedTuple):
    """Arrays of a cell, by address in the table. N = 2T-1 nodes, root last; regions 0 … 2N-1, node x owns x
    and x + N.

    Shared by the chains of a partition: tip_codes (T, P) int32, rows of the state sets; set_first,
    set_states: records.StateSets; weights (P,); unobservable (P,) uint8; invariant_states (P · S,) uint8;
    column_start, message_start (2N,) int64, the first row of every region.
    Of the cell: at (2, 3, N) int64: the region in use of every node's columns, messages and matrix, of the
    accepted state and of the proposal; size (2N,) int64 distinct columns of a region; class_of (2N - 2T, P)
    int32, classes of all patterns in the regions of internal nodes; left, right (column rows,) int32;
    values (blocks, message rows · width); taken (blocks, message rows · exponents) int32, rescaled
    (blocks, 2N) uint8; matrices (blocks, 2N · matrix). Model, two slots: eigenvalues (2, M, S), right, left
    (2, M, ., .), root_frequencies (2, M, S), process, length_class (C,) int64, rates, weights_of_categories
    (2, C), invariant (2,), invariant_frequencies (2, S). slot (2,) int64: of the accepted model, and of the
    proposal's. log_likelihood (2,): accepted and proposed."""

    tip_codes: np.ndarray
    set_first: np.ndarray
    set_states: np.ndarray
    weights: np.ndarray
    unobservable: np.ndarray
    invariant_states: np.ndarray
    column_start: np.ndarray
    message_start: np.ndarray
    at: np.ndarray
    size: np.ndarray
    class_of: np.ndarray
    left: np.ndarray
    right: np.ndarray
    values: np.ndarray
    taken: np.ndarray
    rescaled: np.ndarray
    matrices: np.ndarray
    eigenvalues: np.ndarray
    eigen_right: np.ndarray
    eigen_left: np.ndarray
    root_frequencies: np.ndarray
    process: np.ndarray
    length_class: np.ndarray
    rates: np.ndarray
    category_weights: np.ndarray
    invariant: np.ndarray
    invariant_frequencies: np.ndarray
    slot: np.ndarray
    log_likelihood: np.ndarray


class CellScratch(NamedTuple):
    """What one thread works in, as large as its largest cell needs. rows, more_rows, scaled, matrix, parts,
    powers, root: as in records.Scratch; mantissa, site_log, site_weights (P,), power (P,) int64; tip (codes ·
    width,): tip 0's message times what the root weighs it by; table: of number_pairs, and base (1,), what of
    it counts as empty; todo (N, 3) int64: nodes to recompute, and whether their matrix and their message."""

    rows: np.ndarray
    more_rows: np.ndarray
    scaled: np.ndarray
    matrix: np.ndarray
    parts: np.ndarray
    powers: np.ndarray
    root: np.ndarray
    mantissa: np.ndarray
    power: np.ndarray
    site_log: np.ndarray
    site_weights: np.ndarray
    tip: np.ndarray
    table: np.ndarray
    base: np.ndarray
    todo: np.ndarray
    dirty: np.ndarray


class ProposedTree(NamedTuple):
    """A chain's proposed tree beside the accepted one. left, right, parent: (N,) int64, -1 where there is
    none; order: (N,) children before parents, root last; reordered: 1 if the topology is another; moved: (N,)
    uint8, 1: the children are others, 2: so is the set of tips below, 4: so is that of a child; lengths,
    old_lengths: (G, N), G rows of branch lengths."""

    left: np.ndarray
    right: np.ndarray
    parent: np.ndarray
    order: np.ndarray
    reordered: int
    moved: np.ndarray
    lengths: np.ndarray
    old_lengths: np.ndarray


@merged
def cell_numbers(n):
    """The record of a row of the table of numbers."""
    return CellNumbers(
        n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15],
        n[16], n[17],
    )  # fmt: skip


@merged
def cell_arrays(n, a):
    """The arrays of a row of the table of addresses; n: the cell's numbers."""
    nodes, internal = 2 * n.tips - 1, n.tips - 1
    wide = n.states if n.padded == 4 else n.padded
    rows = n.states if n.padded == 4 else -(-n.states // 6) * 6
    return CellArrays(
        int32_at(a[0], (n.tips, n.patterns)),
        int64_at(a[1], (n.codes + 1,)),
        int64_at(a[2], (n.codes * n.states,)),
        float64_at(a[3], (n.patterns,)),
        uint8_at(a[4], (n.patterns,)),
        uint8_at(a[5], (n.patterns * n.states,)),
        int64_at(a[6], (2 * nodes,)),
        int64_at(a[7], (2 * nodes,)),
        int64_at(a[8], (2, 3, nodes)),
        int64_at(a[9], (2 * nodes,)),
        int32_at(a[10], (2 * internal, n.patterns)),
        int32_at(a[11], (n.column_rows,)),
        int32_at(a[12], (n.column_rows,)),
        float64_at(a[13], (n.blocks, n.message_rows * n.width)),
        int32_at(a[14], (n.blocks, n.message_rows * n.exponents)),
        uint8_at(a[15], (n.blocks, 2 * nodes)),
        float64_at(a[16], (n.blocks, 2 * nodes * n.matrix)),
        float64_at(a[17], (2, n.processes, n.states)),
        float64_at(a[18], (2, n.processes, n.states, wide)),
        float64_at(a[19], (2, n.processes, n.states, rows)),
        float64_at(a[20], (2, n.processes, n.states)),
        int64_at(a[21], (n.categories,)),
        int64_at(a[22], (n.categories,)),
        float64_at(a[23], (2, n.categories)),
        float64_at(a[24], (2, n.categories)),
        float64_at(a[25], (2,)),
        float64_at(a[26], (2, n.states)),
        int64_at(a[27], (2,)),
        float64_at(a[28], (2,)),
    )


@merged
def cell_model(cell, slot):
    """The model in one of a cell's two slots."""
    return ModelNumbers(
        cell.eigenvalues[slot],
        cell.eigen_right[slot],
        cell.eigen_left[slot],
        cell.root_frequencies[slot],
        cell.process,
        cell.length_class,
        cell.rates[slot],
        cell.category_weights[slot],
        cell.invariant[slot],
        cell.invariant_frequencies[slot],
    )
