"""The gradient of one cell: its way down the tree, from the accepted state or from a proposal.

Pre-order vectors are summed by class on the way (reference/recursion.py specifies it), by the kernels that
CpuEvaluator uses. A tree that hangs from tip 0 has no messages of the root and of the node beside the tip;
they are made here, in the regions of the root, which such a tree does not use.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import merged, uncounted
from phloem.pruning.cpu.adjoint import branch_derivative, message_derivative
from phloem.pruning.cpu.cell import (
    cell_sweep,
    class_row,
    node_beside_tip,
    sites_at_root,
)
from phloem.pruning.cpu.cell_records import (
    CLASS_OF,
    COLUMN_START,
    COLUMNS,
    D_FREQUENCIES,
    D_INVARIANT,
    D_LENGTHS,
    D_RATE_MATRIX,
    D_RATES,
    D_WEIGHTS,
    INVARIANT_STATES,
    MATRICES,
    MESSAGES,
    SIZE,
    SLOT,
    SORTED_BY,
    TIP_CODES,
    VERSION,
    Q,
    cell_at,
    cell_columns,
    cell_model,
    cell_numbers,
    sorted_columns,
)
from phloem.pruning.cpu.column_classes import sort_by_class
from phloem.pruning.cpu.eigenbasis import (
    add_projected,
    enter_block,
    leave_block,
    leave_eigenbasis,
    needs_partials,
    project,
    rate_columns_of,
)
from phloem.pruning.cpu.passes import node_down, node_messages, tip_down
from phloem.pruning.cpu.records import Nodes, Outer, RateColumns, RootSites
from phloem.pruning.cpu.root import root_down, root_gradient
from phloem.pruning.cpu.storage import float64_at, int32_at, int64_at, uint8_at
from phloem.pruning.cpu.transition import transition, transpose


@uncounted
def gradient(numbers, addresses, down, tree, which, parameters, kind, scratch, room):
    """cell_calls.gradient_cell. kind: FOUR_STATES or ANY_STATES."""
    lay_out(numbers, addresses, down, tree, which, room)
    root_messages(numbers, addresses, tree, which, kind, scratch, room)
    value = sites_at_root(numbers, addresses, tree, room.messages_at, which, kind, scratch)
    pass_down(numbers, addresses, down, tree, which, parameters, kind, scratch, room)
    if parameters:
        root_numbers(numbers, addresses, down, tree, which, kind, scratch, room)
    return value


@merged
def _clear(n, down):
    """Set all sums to zero."""
    for array, size in (
        (D_LENGTHS, n.length_classes * (2 * n.tips - 1)), (D_RATES, n.categories), (D_WEIGHTS, n.categories),
        (D_FREQUENCIES, n.processes * n.states), (D_INVARIANT, n.states + 1),
        (D_RATE_MATRIX, n.processes * (16 if n.states == 4 else n.matrix)),
    ):  # fmt: skip
        own = float64_at(down[array], (size,))
        for i in range(size):
            own[i] = 0.0


@uncounted
def lay_out(numbers, addresses, down, tree, which, room):
    """Where the messages of every node are, its number of columns, and their orders for the way down; all
    sums are cleared."""
    n = cell_numbers(numbers)
    _clear(n, down)
    at, columns = cell_at(n, addresses), sorted_columns(n, addresses, down)
    n_nodes, regions = 2 * n.tips - 1, 4 * n.tips - 2
    size, version = int64_at(addresses[SIZE], (regions,)), int64_at(addresses[VERSION], (regions,))
    sorted_by = int64_at(down[SORTED_BY], (regions,))
    for x in range(n_nodes):
        room.messages_at[x] = at[which, MESSAGES, x]
    if n.hangs:
        beside = node_beside_tip(tree, n_nodes - 1)
        room.messages_at[n_nodes - 1], room.messages_at[beside] = n_nodes - 1, regions - 1
        region = at[which, COLUMNS, beside]
        key = 2 * (version[region] * regions + region) + (tree.left[n_nodes - 1] == 0)
        if sorted_by[n_nodes - 1] != key:
            number_root(numbers, addresses, tree, region, columns.left, columns.right)
            sorted_by[n_nodes - 1] = key
    for x in range(n_nodes):
        room.size[x] = size[at[which, COLUMNS, x]]
    for x in range(n.tips, n_nodes):
        region, a, b = at[which, COLUMNS, x], tree.left[x], tree.right[x]
        key, begin, end = version[region] * regions + region, columns.start[region], room.size[x]
        left, right = columns.left[begin : begin + end], columns.right[begin : begin + end]
        for side in range(2):
            child = at[which, COLUMNS, a if side == 0 else b]
            first = columns.first[columns.start[child] :]
            if sorted_by[child] == key:
                continue
            sorted_by[child] = key
            if side == 0:
                order, sibling = columns.left_order[begin:], columns.left_sibling[begin:]
                sort_by_class(left, right, size[child], first, order, sibling)
            else:
                order, sibling = columns.right_order[begin:], columns.right_sibling[begin:]
                sort_by_class(right, left, size[child], first, order, sibling)


@uncounted
def number_root(numbers, addresses, tree, region, left, right):
    """Columns of the root of a tree that hangs from tip 0, one a pattern. region: of the node beside it."""
    n = cell_numbers(numbers)
    root, regions = 2 * n.tips - 2, 4 * n.tips - 2
    codes = int32_at(addresses[TIP_CODES], (n.tips, n.patterns))[0]
    classes = int32_at(addresses[CLASS_OF], (2 * n.tips - 2, n.patterns))[class_row(region, n.tips)]
    begin = int64_at(addresses[COLUMN_START], (regions,))[root]
    for p in range(n.patterns):
        if tree.left[root] == 0:
            left[begin + p], right[begin + p] = codes[p], classes[p]
        else:
            left[begin + p], right[begin + p] = classes[p], codes[p]
    int64_at(addresses[SIZE], (regions,))[root] = n.patterns
    int64_at(addresses[VERSION], (regions,))[root] += 1


@merged
def _nodes(n, a, tree, which, messages_at, matrix_at, size):
    """size: (N,) by node."""
    return Nodes(
        tree.left, tree.right, tree.parent, cell_at(n, a)[which, COLUMNS], messages_at, matrix_at, size
    )


@merged
def _sites(n, a, scratch):
    """Of the root's columns, one a pattern."""
    states = uint8_at(a[INVARIANT_STATES], (n.patterns * n.states,))
    return RootSites(scratch.site_log, scratch.mantissa, scratch.power, states)


@merged
def _model(n, a, which):
    return cell_model(n, a, int64_at(a[SLOT], (2,))[which])


@merged
def _rates(model, room):
    return RateColumns(model.process, room.rate_first, room.rate_states, room.rate_values)


@uncounted
def root_messages(numbers, addresses, tree, which, kind, scratch, room):
    """Messages of the root and of the node beside tip 0, where the tree hangs from it."""
    n = cell_numbers(numbers)
    if not n.hangs:
        return
    matrix_at, root = cell_at(n, addresses)[which, MATRICES], 2 * n.tips - 2
    nodes = _nodes(n, addresses, tree, which, room.messages_at, matrix_at, room.size)
    sweep = cell_sweep(n, addresses, tree, nodes, cell_columns(n, addresses), kind)
    model, beside = _model(n, addresses, which), node_beside_tip(tree, root)
    for block in range(n.blocks):
        transition(beside, block, nodes, sweep.matrices, model, sweep.shape, scratch.kernel)
        for i in range(2):
            x = root if i else beside
            sweep.messages.rescaled[block, room.messages_at[x]] = 0
            node_messages(x, 0, room.size[x], block, sweep, scratch.kernel.rows)


@uncounted
def pass_down(numbers, addresses, down, tree, which, parameters, kind, scratch, room):
    """Pre-order vectors and derivatives by length; with parameters also d log L / d Q, and by rates. scratch
    holds the sites."""
    n = cell_numbers(numbers)
    root, matrix_at, four = 2 * n.tips - 2, cell_at(n, addresses)[which, MATRICES], n.states == 4
    nodes = _nodes(n, addresses, tree, which, room.messages_at, matrix_at, room.size)
    sweep = cell_sweep(n, addresses, tree, nodes, sorted_columns(n, addresses, down), kind)
    shape, matrices, model, eigen = sweep.shape, sweep.matrices, _model(n, addresses, which), room.eigen
    sites, rates = _sites(n, addresses, scratch), _rates(model, room)
    all_q, sums = float64_at(down[Q], (n.blocks, n.message_rows * n.width)), eigen.adjoint
    by_length = float64_at(down[D_LENGTHS], (n.length_classes, root + 1))
    by_rate = float64_at(down[D_RATES], (n.categories,))
    by_q = float64_at(down[D_RATE_MATRIX], (n.processes, 16 if four else n.matrix))
    if not parameters:
        rate_columns_of(model, shape, scratch.kernel, room)
    for block in range(n.blocks):
        q, row = all_q[block], sweep.messages.start[room.messages_at[root]]
        root_down(0, n.patterns, block, sweep, model, sites, scratch.site_weights, q, row)
        if parameters:
            enter_block(block, model, shape, eigen)
        for i in range(root - 1, -1, -1):
            x = tree.order[i]
            at, tip = matrix_at[x] * shape.matrix, tree.left[x] < 0
            partials = (tip and four) or (
                parameters and (tip or needs_partials(x, block, matrices.lengths, model, shape))
            )
            turned = matrices.down[block] if four else room.up[block]
            outer = Outer(q, sums, np.int64(0), partials, turned, at if four else np.int64(0))
            if tip:
                tip_down(x, block, sweep, outer, scratch.kernel.rows)
            else:
                if not four:
                    transpose(matrices.down[block][at:], room.up[block], 0, n.states, n.padded)
                node_down(x, 0, room.size[x], block, sweep, outer, scratch.kernel)
            if parameters:
                project(x, block, matrices.lengths, model, shape, eigen, not partials)
                add_projected(sums, 0, shape, eigen)
            elif partials:
                branch_derivative(at, block, matrices.down[block], rates, sums, 0, shape, eigen.share)
            else:
                message_derivative(block, rates, sums, 0, shape, eigen.share)
            for lane in range(shape.exponents):
                c = block * shape.exponents + lane
                if c < n.categories:
                    k = model.length_class[c]
                    by_length[k, x] += model.rates[c] * eigen.share[lane]
                    by_rate[c] += matrices.lengths[k, x] * eigen.share[lane]
        if parameters:
            leave_block(block, model, shape, eigen, by_q)
    if parameters:
        leave_eigenbasis(model, shape, eigen, by_q)


@uncounted
def root_numbers(numbers, addresses, down, tree, which, kind, scratch, room):
    """Derivatives by what only the root sees."""
    n = cell_numbers(numbers)
    matrix_at = cell_at(n, addresses)[which, MATRICES]
    nodes = _nodes(n, addresses, tree, which, room.messages_at, matrix_at, room.size)
    root_gradient(
        2 * n.tips - 2, cell_sweep(n, addresses, tree, nodes, cell_columns(n, addresses), kind),
        _model(n, addresses, which), _sites(n, addresses, scratch), scratch.site_weights,
        float64_at(down[D_FREQUENCIES], (n.processes, n.states)),
        float64_at(down[D_WEIGHTS], (n.categories,)), float64_at(down[D_INVARIANT], (n.states + 1,)),
    )  # fmt: skip
