"""The log-likelihood of one chain's copy of one partition, changed in place by a proposal.

A proposal is written to the region of a node's columns, messages and matrix that the accepted state does not
use; to accept is to take over the numbers of the regions, to reject is to forget them.
"""

from __future__ import annotations

from phloem.hardware.numba_compile import merged, uncounted
from phloem.pruning.cpu.addresses import float64_at, int64_at
from phloem.pruning.cpu.cell_records import (
    COLUMNS,
    MATRICES,
    MESSAGES,
    OTHER_TIPS,
    cell_arrays,
    cell_model,
    cell_numbers,
)
from phloem.pruning.cpu.column_classes import number_pairs
from phloem.pruning.cpu.lanes import any_nonzero, load, multiply_add, sum_lanes, zeros
from phloem.pruning.cpu.matrix_product import VECTOR_BYTES
from phloem.pruning.cpu.postorder_four import node_messages_four, tip_messages_four
from phloem.pruning.cpu.postorder_padded import node_messages_padded, tip_messages_padded
from phloem.pruning.cpu.records import (
    Columns,
    Matrices,
    Messages,
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


@uncounted
def propose_cell(numbers, addresses, tree, model_changed, everything, scratch):
    """Log-likelihood of a cell at a proposed tree, recomputing only what differs from its accepted state.

    numbers, addresses: the cell's rows of the tables. model_changed: whether the proposal's slot of the model
    holds other numbers than the accepted one. everything: trust no cache (a start, a checkpoint).
    """
    n = cell_numbers(numbers)
    cell = cell_arrays(n, addresses)
    cell.slot[1] = 1 - cell.slot[0] if model_changed else cell.slot[0]
    count = _list_changes(n, cell, tree, model_changed, everything, scratch)
    model = cell_model(cell, cell.slot[1])
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
    smallest = 2.0**-257 if n.guarded else 0.0
    if n.padded == 4:
        shape = Shape(
            n.states, n.categories, n.padded, n.blocks, n.width, n.exponents, n.matrix, FOUR, smallest
        )
        _pass_up_four(count, scratch.todo, nodes, columns, messages, matrices, model, sets, shape)
        _sites_at_tip(n, tree, nodes, messages, model, sites, shape, room, cell, scratch)
    else:
        shape = Shape(
            n.states, n.categories, n.padded, n.blocks, n.width, n.exponents, n.matrix, WIDE, smallest
        )
        _pass_up_padded(count, scratch.todo, nodes, columns, messages, matrices, model, sets, shape, room)
        _sites_at_tip(n, tree, nodes, messages, model, sites, shape, room, cell, scratch)
    value = total_log_likelihood(
        scratch.site_log[: n.patterns],
        cell.weights,
        cell.unobservable,
        n.ascertained == 1,
        scratch.site_weights[: n.patterns],
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
    for i in range(3 * nodes):
        at[i] = at[3 * nodes + i]
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
                node_messages_padded(x, 0, size, block, nodes, columns, messages, matrices, shape, room.rows)


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
