"""One chain's copy of one partition: everything its log-likelihood needs, changed in place by a proposal.

A proposal is written to the region of a node's columns, messages and matrix that the accepted state does not
use; to accept is to take over the numbers of the regions, to reject is to forget them. A table of addresses
holds any number of cells, each with sizes of its own, so that one compiled loop serves them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import merged, uncounted
from phloem.pruning.cpu.addresses import float64_at, int32_at, int64_at, uint8_at
from phloem.pruning.cpu.column_classes import number_pairs
from phloem.pruning.cpu.lanes import any_nonzero, load, multiply_add, sum_lanes, zeros
from phloem.pruning.cpu.matrix_product import VECTOR_BYTES
from phloem.pruning.cpu.postorder_four import node_messages_four, tip_messages_four
from phloem.pruning.cpu.postorder_padded import node_messages_padded, tip_messages_padded
from phloem.pruning.cpu.records import (
    Columns,
    Matrices,
    Messages,
    ModelNumbers,
    Nodes,
    RootSites,
    Scratch,
    Shape,
    StateSets,
)
from phloem.pruning.cpu.root import (
    constant_part,
    logarithms,
    scaled_site,
    set_root_row,
    total_log_likelihood,
)
from phloem.pruning.cpu.transition import transition_four, transition_padded

FOUR, WIDE = (0,) * 4, (0,) * (VECTOR_BYTES // 8)
COLUMNS, MESSAGES, MATRICES = range(3)  # rows of Cell.at


class CellNumbers(NamedTuple):
    """Sizes of a cell, one row of a table. tips: T; patterns: P; codes: of characters; states, categories,
    padded, blocks, width, exponents, matrix: as in records.Shape; processes: M; first_lengths, length_classes:
    which rows of a chain's lengths the cell uses, K of them; root_rows: K rows of the root's region;
    guarded: 1 if columns are rescaled; ascertained: 1 if some patterns stand for unobservable ones;
    repeats: 1 to work on distinct columns."""

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

    Shared by the chains of a partition: tip_codes (T, P) int32, rows of the state sets; set_first, set_states:
    records.StateSets; weights (P,); unobservable (P,) uint8; invariant_states (P · S,) uint8; column_start,
    message_start (2N,) int64, the first row of every region.
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


OTHER_CHILDREN, OTHER_TIPS, OTHER_BELOW = 1, 2, 4


@merged
def _numbers(n):
    return CellNumbers(
        n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15],
        n[16], n[17],
    )  # fmt: skip


@merged
def _arrays(n, a):
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
def _model(cell, slot):
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


@uncounted
def propose_cell(numbers, addresses, tree, model_changed, everything, scratch):
    """Log-likelihood of a cell at a proposed tree, recomputing only what differs from its accepted state.

    numbers, addresses: the cell's rows of the tables. model_changed: whether the proposal's slot of the model
    holds other numbers than the accepted one. everything: trust no cache (a start, a checkpoint).
    """
    n = _numbers(numbers)
    cell = _arrays(n, addresses)
    cell.slot[1] = 1 - cell.slot[0] if model_changed else cell.slot[0]
    count = _list_changes(n, cell, tree, model_changed, everything, scratch)
    model = _model(cell, cell.slot[1])
    nodes = Nodes(tree.left, tree.right, tree.parent, cell.at[1, COLUMNS], cell.at[1, MESSAGES],
                  cell.at[1, MATRICES], cell.size)  # fmt: skip
    lengths = tree.lengths[n.first_lengths : n.first_lengths + n.length_classes]
    columns = Columns(cell.column_start, cell.left, cell.right, cell.left, cell.left, cell.left, cell.left,
                      cell.left)  # fmt: skip
    messages = Messages(cell.message_start, cell.values, cell.taken, cell.rescaled)
    matrices = Matrices(cell.matrices, cell.matrices, lengths, False)
    sets = StateSets(cell.set_first, cell.set_states)
    sites = RootSites(scratch.site_log, scratch.mantissa, scratch.power, cell.invariant_states)
    room = Scratch(scratch.rows, scratch.more_rows, scratch.scaled, scratch.matrix, scratch.parts,
                   scratch.powers, scratch.root)  # fmt: skip
    if n.padded == 4:
        smallest = 2.0**-257 if n.guarded else 0.0
        shape = Shape(n.states, n.categories, n.padded, n.blocks, n.width, n.exponents, n.matrix, FOUR, smallest)
        _pass_up_four(count, scratch.todo, nodes, columns, messages, matrices, model, sets, shape)
        _sites_at_tip(n, tree, nodes, messages, model, sites, shape, room, cell, scratch)
    else:
        smallest = 2.0**-257 if n.guarded else 0.0
        shape = Shape(n.states, n.categories, n.padded, n.blocks, n.width, n.exponents, n.matrix, WIDE, smallest)
        _pass_up_padded(count, scratch.todo, nodes, columns, messages, matrices, model, sets, shape, room)
        _sites_at_tip(n, tree, nodes, messages, model, sites, shape, room, cell, scratch)
    value = total_log_likelihood(
        scratch.site_log[: n.patterns], cell.weights, cell.unobservable, n.ascertained == 1, scratch.site_weights[: n.patterns]
    )
    cell.log_likelihood[1] = value
    return value


@uncounted
def settle_cell(numbers, addresses, accept):
    """Take the proposal over, or forget it."""
    if not accept:
        return
    nodes = 2 * numbers[0] - 1
    at = int64_at(addresses[8], (6 * nodes,))
    at[: 3 * nodes] = at[3 * nodes :]
    slot, value = int64_at(addresses[27], (2,)), float64_at(addresses[28], (2,))
    slot[0], value[0] = slot[1], value[1]


@merged
def _list_changes(n, cell, tree, model_changed, everything, scratch):
    """Fill scratch.todo and the proposal's regions; number the columns of nodes with other tips below.
    Returns how many nodes have something to do."""
    n_nodes = 2 * n.tips - 1
    root, todo, dirty = n_nodes - 1, scratch.todo, scratch.dirty
    count = 0
    for x in tree.order:
        region = cell.at[0, COLUMNS, x]
        message, matrix = cell.at[0, MESSAGES, x], cell.at[0, MATRICES, x]
        changed = model_changed or everything
        for k in range(n.first_lengths, n.first_lengths + n.length_classes):
            changed = changed or tree.lengths[k, x] != tree.old_lengths[k, x]
        changed = changed and x != root
        fresh = changed or everything
        if x >= n.tips:
            moved = tree.moved[x] if tree.reordered else 0
            fresh = fresh or moved != 0 or dirty[tree.left[x]] or dirty[tree.right[x]]
            if (moved != 0 or everything) and x != root:
                old = region
                region = region + n_nodes if region < n_nodes else region - n_nodes
                _number(n, cell, tree, x, old, region, moved & OTHER_TIPS or everything, scratch)
        if changed:
            matrix = matrix + n_nodes if matrix < n_nodes else matrix - n_nodes
        if fresh and x != root:
            message = message + n_nodes if message < n_nodes else message - n_nodes
        dirty[x] = fresh
        cell.at[1, COLUMNS, x], cell.at[1, MESSAGES, x], cell.at[1, MATRICES, x] = region, message, matrix
        if fresh and x != root:
            todo[count, 0], todo[count, 1] = x, changed
            count += 1
    return count


@uncounted(forceinline=True)
def class_row(region, tips):
    """Row of class_of that an internal node's region has."""
    n_nodes = 2 * tips - 1
    return region - tips if region < n_nodes else region - n_nodes - 1


@merged
def _number(n, cell, tree, x, old, region, anew, scratch):
    """Classes of node x from those of its children: numbered anew, or, where the tips below are the same, as
    they were, with other pairs."""
    a, b = tree.left[x], tree.right[x]
    first = cell.tip_codes[a] if a < n.tips else cell.class_of[class_row(cell.at[1, COLUMNS, a], n.tips)]
    second = cell.tip_codes[b] if b < n.tips else cell.class_of[class_row(cell.at[1, COLUMNS, b], n.tips)]
    own = cell.class_of[class_row(region, n.tips)]
    start = cell.column_start[region]
    left, right = cell.left[start:], cell.right[start:]
    if anew:
        size = number_pairs(first, second, n.repeats == 1, scratch.table, scratch.base[0], own, left, right)
        scratch.base[0] += size
        cell.size[region] = size
        return
    known = cell.class_of[class_row(old, n.tips)]
    for p in range(n.patterns):
        k = known[p]
        own[p], left[k], right[k] = k, first[p], second[p]
    cell.size[region] = cell.size[old]


@merged
def _pass_up_four(count, todo, nodes, columns, messages, matrices, model, sets, shape):
    for block in range(shape.blocks):
        for i in range(count):
            x = todo[i, 0]
            if todo[i, 1]:
                transition_four(x, block, nodes, matrices, model, shape)
            messages.rescaled[block, nodes.messages_at[x]] = 0
            if nodes.left[x] < 0:
                tip_messages_four(x, block, nodes, columns, messages, matrices, sets, shape)
            else:
                size = nodes.size[nodes.columns_at[x]]
                node_messages_four(x, 0, size, block, nodes, columns, messages, matrices, shape)


@merged
def _pass_up_padded(count, todo, nodes, columns, messages, matrices, model, sets, shape, room):
    for block in range(shape.blocks):
        for i in range(count):
            x = todo[i, 0]
            if todo[i, 1]:
                transition_padded(x, block, nodes, matrices, model, shape, room)
            messages.rescaled[block, nodes.messages_at[x]] = 0
            if nodes.left[x] < 0:
                tip_messages_padded(x, block, nodes, columns, messages, matrices, sets, shape)
            else:
                size = nodes.size[nodes.columns_at[x]]
                node_messages_padded(
                    x, 0, size, block, nodes, columns, messages, matrices, shape, room.rows
                )


@merged
def _sites_at_tip(n, tree, nodes, messages, model, sites, shape, room, cell, scratch):
    """Site log-likelihoods at a root whose one child is tip 0: no column of the root itself is formed.

    L_p = Σ weight π m_tip0 m_other over the row's entries; a tip's message has no exponents.
    """
    root, lanes = 2 * n.tips - 2, shape.lanes
    other = nodes.right[root] if nodes.left[root] == 0 else nodes.left[root]
    set_root_row(model, shape, room.root)
    tip_row, row = messages.start[nodes.messages_at[0]], messages.start[nodes.messages_at[other]]
    for block in range(shape.blocks):
        for k in range(n.codes):
            at, out = (tip_row + k) * shape.width, (k * shape.blocks + block) * shape.width
            for i in range(shape.width):
                scratch.tip[out + i] = room.root[block * shape.width + i] * messages.values[block, at + i]
    codes = cell.tip_codes[0]
    classes = codes if other < n.tips else cell.class_of[class_row(nodes.columns_at[other], n.tips)]
    if other < n.tips:
        classes = cell.tip_codes[other]
    for p in range(n.patterns):
        k, tip = row + classes[p], codes[p] * shape.blocks * shape.width
        taken, total = False, 0.0
        for block in range(shape.blocks):
            if n.guarded:
                if n.exponents == 1:
                    taken = taken or messages.exponents[block, k] != 0
                else:
                    taken = taken or any_nonzero(load(messages.exponents[block], k * n.exponents, lanes))
            column, at, first = messages.values[block], k * shape.width, tip + block * shape.width
            share = zeros(column, lanes)
            for i in range(0, shape.width, len(lanes)):
                share = multiply_add(load(column, at + i, lanes), load(scratch.tip, first + i, lanes), share)
            total += sum_lanes(share)
        if taken:
            scaled_site(p, k, scratch.tip, tip, messages, model, sites, shape, room)
            continue
        if model.invariant > 0:
            total += model.invariant * constant_part(p, model, sites, shape)
        sites.mantissa[p], sites.power[p] = total, 0
    logarithms(sites.mantissa, sites.power, 0, n.patterns, sites.site_log)
