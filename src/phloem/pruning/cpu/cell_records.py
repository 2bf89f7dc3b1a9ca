"""What one chain's copy of one partition consists of, and how compiled loops find it in tables.

A table of numbers and one of addresses hold any number of cells, each with sizes of its own, so that one
compiled loop serves them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import merged
from phloem.pruning.cpu.records import (
    Columns,
    EigenScratch,
    Matrices,
    Messages,
    ModelNumbers,
    Scratch,
    StateSets,
)
from phloem.pruning.cpu.storage import float64_at, int32_at, int64_at, uint8_at

COLUMNS, MESSAGES, MATRICES = range(3)  # rows of CellArrays.at
OTHER_CHILDREN, OTHER_TIPS, OTHER_BELOW = 1, 2, 4  # bits of ProposedTree.moved


class CellNumbers(NamedTuple):
    """Sizes of a cell, one row of a table. tips: T; patterns: P; codes: of characters; states, categories,
    padded, blocks, width, exponents, matrix: as in records.Shape; processes: M; first_lengths,
    length_classes: which rows of a chain's lengths the cell uses, K of them; message_rows, column_rows: of
    all regions; guarded: 1 if columns are rescaled; ascertained: 1 if some patterns stand for unobservable
    ones; repeats: 1 to work on distinct columns; sites: L where neighbours depend on each other, else 0, and
    distances: D, how many there are between neighbours."""

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
    hangs: int
    sites: int
    distances: int


class CellArrays(NamedTuple):
    """Arrays of a cell, by address in the table. N = 2T-1 nodes, root last; regions 0 … 2N-1, node x owns x
    and x + N.

    Shared by the chains of a partition: tip_codes (T, P) int32, rows of the state sets; set_first,
    set_states: records.StateSets; weights (P,); unobservable (P,) uint8; invariant_states (P · S,) uint8;
    column_start, message_start (2N,) int64, the first row of every region; site_pattern, site_step (L,),
    site_distances (D,) int64: site_order.SiteOrder; class_edges (C - 1,): normal quantiles between classes.
    Of the cell: at (2, 3, N) int64: the region in use of every node's columns, messages and matrix, of the
    accepted state and of the proposal; size (2N,) int64 distinct columns of a region; version (2N,) int64 how
    often they were numbered; class_of (2N - 2T, P) int32, classes of all patterns in the regions of internal
    nodes; left, right (column rows,) int32;
    values (blocks, message rows · width); taken (blocks, message rows · exponents) int32, rescaled
    (blocks, 2N) uint8; matrices (blocks, 2N · matrix). Model, two slots: eigenvalues (2, M, S), right, left
    (2, M, ., .), root_frequencies (2, M, S), process, length_class (C,) int64, rates, weights_of_categories
    (2, C), invariant (2,), invariant_frequencies (2, S), neighbours
    (2, D, C, C): site_order.neighbour_powers. slot (2,) int64: of the accepted model, and of the
    proposal's. log_likelihood (2,): accepted and proposed. site_log (P,): of the last evaluation that was not
    a chain's proposal."""

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
    version: np.ndarray
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
    site_log: np.ndarray
    site_pattern: np.ndarray
    site_step: np.ndarray
    site_distances: np.ndarray
    class_edges: np.ndarray
    neighbours: np.ndarray


class DownArrays(NamedTuple):
    """What a cell's way down writes, by address in a table of its own; all of it is of the last gradient.

    q (blocks, message rows · width): Pᵀu, in the regions of the messages. first, left_order, left_sibling,
    right_order, right_sibling (column rows,) int32: as in records.Columns; sorted_by (2N,) int64: under which
    numbering of which parent's region `first` of a region holds (and of the root of a tree that hangs: from
    which numbering its columns were made).
    lengths (K, N): d log L / d effective length. Of the model, if asked for: rates, weights (C,);
    root_frequencies (M, S); invariant (S + 1,), the frequencies of invariable sites and then their weight;
    rate_matrix (M, whole sixes of S, padded): d log L / d Q."""

    q: np.ndarray
    first: np.ndarray
    left_order: np.ndarray
    left_sibling: np.ndarray
    right_order: np.ndarray
    right_sibling: np.ndarray
    sorted_by: np.ndarray
    lengths: np.ndarray
    rates: np.ndarray
    weights: np.ndarray
    root_frequencies: np.ndarray
    invariant: np.ndarray
    rate_matrix: np.ndarray


class DownScratch(NamedTuple):
    """What one thread needs besides for ways down. messages_at, size (N,) int64: of every node; up (blocks,
    matrix): a transposed matrix of every block; rate_first, rate_states, rate_values: records.RateColumns, Q
    in full; eigen: of its sums in the eigenbasis."""

    messages_at: np.ndarray
    size: np.ndarray
    up: np.ndarray
    rate_first: np.ndarray
    rate_states: np.ndarray
    rate_values: np.ndarray
    eigen: EigenScratch


class CellScratch(NamedTuple):
    """What one thread works in, as large as its largest cell needs. kernel: of the kernels; mantissa,
    site_log, site_weights (P,), power (P,) int64; tip (codes · width,): tip 0's message times what the root
    weighs it by; table: of number_pairs, and base (1,), what of it counts as empty; todo (N, 2) int64: nodes
    to recompute, and whether their matrix is another; dirty (N,); relative (P · C,), along (3 (C + 1)²,):
    where neighbours depend on each other, likelihoods of categories, and what goes along the sites."""

    kernel: Scratch
    mantissa: np.ndarray
    power: np.ndarray
    site_log: np.ndarray
    site_weights: np.ndarray
    tip: np.ndarray
    table: np.ndarray
    base: np.ndarray
    todo: np.ndarray
    dirty: np.ndarray
    relative: np.ndarray
    along: np.ndarray


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


class ForestTrees(NamedTuple):
    """Trees of H chains. left, right, parent: (H, N) int64, -1 where there is none; order: (H, N) children
    before parents, root last; lengths (H, G, N), G rows of effective branch lengths, of which a cell uses
    those that CellNumbers says."""

    left: np.ndarray
    right: np.ndarray
    parent: np.ndarray
    order: np.ndarray
    lengths: np.ndarray


MODEL_FIELDS = (
    "eigenvalues", "eigen_right", "eigen_left", "root_frequencies", "rates", "category_weights", "invariant",
    "invariant_frequencies", "slot", "neighbours",
)  # fmt: skip
"""Arrays that cells of one model share."""

# columns of the table of addresses, in the order of CellArrays
(
    TIP_CODES, SET_FIRST, SET_STATES, WEIGHTS, UNOBSERVABLE, INVARIANT_STATES, COLUMN_START, MESSAGE_START,
    AT, SIZE, VERSION, CLASS_OF, LEFT, RIGHT, VALUES, TAKEN, RESCALED, P, EIGENVALUES, EIGEN_RIGHT,
    EIGEN_LEFT, ROOT_FREQUENCIES, PROCESS, LENGTH_CLASS, RATES, CATEGORY_WEIGHTS, INVARIANT,
    INVARIANT_FREQUENCIES, SLOT, LOG_LIKELIHOOD, SITE_LOG,
    SITE_PATTERN, SITE_STEP, SITE_DISTANCES, CLASS_EDGES, NEIGHBOURS,
) = range(36)  # fmt: skip

# columns of the table of addresses of ways down, in the order of DownArrays
(
    Q, FIRST, LEFT_ORDER, LEFT_SIBLING, RIGHT_ORDER, RIGHT_SIBLING, SORTED_BY, D_LENGTHS, D_RATES, D_WEIGHTS,
    D_FREQUENCIES, D_INVARIANT, D_RATE_MATRIX,
) = range(13)  # fmt: skip


@merged
def cell_numbers(n):
    """The record of a row of the table of numbers."""
    return CellNumbers(
        n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15],
        n[16], n[17], n[18], n[19], n[20],
    )  # fmt: skip


@merged
def cell_at(n, a):
    """Regions in use, (2, 3, N): of the accepted state and of the proposal."""
    return int64_at(a[AT], (2, 3, 2 * n.tips - 1))


@merged
def cell_columns(n, a):
    """Classes; the orders of the way down are not there."""
    left = int32_at(a[LEFT], (n.column_rows,))
    return Columns(
        int64_at(a[COLUMN_START], (4 * n.tips - 2,)), left, int32_at(a[RIGHT], (n.column_rows,)), left, left,
        left, left, left,
    )  # fmt: skip


@merged
def sorted_columns(n, a, down):
    """Classes with the orders of the way down. down: the cell's row of that table."""
    rows = (n.column_rows,)
    return Columns(
        int64_at(a[COLUMN_START], (4 * n.tips - 2,)), int32_at(a[LEFT], rows), int32_at(a[RIGHT], rows),
        int32_at(down[FIRST], rows), int32_at(down[LEFT_ORDER], rows), int32_at(down[LEFT_SIBLING], rows),
        int32_at(down[RIGHT_ORDER], rows), int32_at(down[RIGHT_SIBLING], rows),
    )  # fmt: skip


@merged
def cell_messages(n, a):
    """Messages of every region."""
    return Messages(
        int64_at(a[MESSAGE_START], (4 * n.tips - 2,)),
        float64_at(a[VALUES], (n.blocks, n.message_rows * n.width)),
        int32_at(a[TAKEN], (n.blocks, n.message_rows * n.exponents)),
        uint8_at(a[RESCALED], (n.blocks, 4 * n.tips - 2)),
    )


@merged
def cell_matrices(n, a, lengths):
    """Transition matrices of every region; lengths: (G, N) of the chain."""
    down = float64_at(a[P], (n.blocks, (4 * n.tips - 2) * n.matrix))
    return Matrices(down, down, lengths[n.first_lengths : n.first_lengths + n.length_classes], False)


@merged
def cell_sets(n, a):
    """State sets of the codes."""
    return StateSets(int64_at(a[SET_FIRST], (n.codes + 1,)), int64_at(a[SET_STATES], (n.codes * n.states,)))


@merged
def cell_model(n, a, slot):
    """The model in one of a cell's two slots."""
    rows = n.states if n.states == 4 else -(-n.states // 6) * 6
    return ModelNumbers(
        float64_at(a[EIGENVALUES], (2, n.processes, n.states))[slot],
        float64_at(a[EIGEN_RIGHT], (2, n.processes, n.states, n.padded))[slot],
        float64_at(a[EIGEN_LEFT], (2, n.processes, n.states, rows))[slot],
        float64_at(a[ROOT_FREQUENCIES], (2, n.processes, n.states))[slot],
        int64_at(a[PROCESS], (n.categories,)),
        int64_at(a[LENGTH_CLASS], (n.categories,)),
        float64_at(a[RATES], (2, n.categories))[slot],
        float64_at(a[CATEGORY_WEIGHTS], (2, n.categories))[slot],
        float64_at(a[INVARIANT], (2,))[slot],
        float64_at(a[INVARIANT_FREQUENCIES], (2, n.states))[slot],
    )
