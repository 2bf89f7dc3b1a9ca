"""Any number of states: the way up and down the tree, and what one thread does of it."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.adjoint import branch_derivative_padded, message_derivative_padded
from phloem.pruning.cpu.eigenbasis import needs_partials
from phloem.pruning.cpu.lanes import (
    add,
    any_above,
    largest,
    load,
    maximum,
    multiply,
    multiply_add,
    store,
    zeros,
)
from phloem.pruning.cpu.matrix_product import ROWS, product
from phloem.pruning.cpu.root import root_down, root_sites
from phloem.pruning.cpu.schedule import finish, next_task, wait_for
from phloem.pruning.cpu.siblings import beside
from phloem.pruning.cpu.transition import no_time, transition_padded

# The way up the tree for any number of states, by matrix products (reference/recursion.py specifies it).


BATCH = 16 * ROWS  # rows that stay in the cache between the steps of one product


@uncounted
def tip_messages_padded(x, c, nodes, columns, messages, matrices, sets, shape):
    """m_x of a tip: for every code the sum of P's columns over the states it allows. No exponents."""
    lanes, padded, down = shape.lanes, shape.padded, matrices.down[c]
    values, exponents = messages.values[c], messages.exponents[c]
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    matrix = nodes.matrix_at[x] * shape.matrix
    for k in range(nodes.size[x]):
        exponents[out + k] = 0
        code, at = columns.left[row + k], (out + k) * padded
        for i in range(0, padded, len(lanes)):
            total = zeros(values, lanes)
            for s in range(sets.first[code], sets.first[code + 1]):
                total = add(total, load(down, matrix + sets.states[s] * padded + i, lanes))
            store(values, at + i, total)


@uncounted
def gather_product(x, begin, end, c, nodes, columns, messages, shape, scratch):
    """scratch[k] = m_left[left_class[k]] ∘ m_right[right_class[k]] for rows begin:end of node x, category
    c."""
    lanes, values, padded = shape.lanes, messages.values[c], shape.padded
    row = columns.start[nodes.columns_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    for k in range(begin, end):
        a = (left_row + columns.left[row + k]) * padded
        b = (right_row + columns.right[row + k]) * padded
        at = (k - begin) * padded
        for i in range(0, padded, len(lanes)):
            store(scratch, at + i, multiply(load(values, a + i, lanes), load(values, b + i, lanes)))


@uncounted
def gather_rescaled(x, begin, end, c, nodes, columns, messages, shape, scratch):
    """gather_product; rows of scratch that are too small are rescaled. Fills x's exponents."""
    lanes, values, padded = shape.lanes, messages.values[c], shape.padded
    exponents = messages.exponents[c]
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    for k in range(begin, end):
        left, right = left_row + columns.left[row + k], right_row + columns.right[row + k]
        a, b, at = left * padded, right * padded, (k - begin) * padded
        best = zeros(scratch, lanes)
        for i in range(0, padded, len(lanes)):
            p = multiply(load(values, a + i, lanes), load(values, b + i, lanes))
            store(scratch, at + i, p)
            best = maximum(best, p)
        e = exponents[left] + exponents[right]
        if not any_above(best, shape.smallest):
            top = largest(best)
            if top > 0:
                _, power = math.frexp(top)
                for i in range(padded):
                    scratch[at + i] = math.ldexp(scratch[at + i], -power)
                e += power
                messages.rescaled[c, nodes.messages_at[x]] = 1
        exponents[out + k] = e


@uncounted
def node_messages_padded(x, begin, end, c, nodes, columns, messages, matrices, shape, scratch):
    """m_x (at the root: p) of the rows begin:end of an internal node in category c, and their exponents.

    begin: a multiple of 6. scratch: at least BATCH rows of padded states and a little more.
    """
    padded, values, down = shape.padded, messages.values[c], matrices.down[c]
    out = messages.start[nodes.messages_at[x]]
    matrix, top = nodes.matrix_at[x] * shape.matrix, nodes.parent[x] < 0 or no_time(x, matrices)
    for first in range(begin, end, BATCH):
        last = min(first + BATCH, end)
        gather_rescaled(x, first, last, c, nodes, columns, messages, shape, scratch)
        at = (out + first) * padded
        if top:
            for entry in range((last - first) * padded):
                values[at + entry] = scratch[entry]
            continue
        product(
            scratch, 0, padded, 1, down, matrix, padded, values, at, padded,
            last - first, padded, shape.states, False,
        )  # fmt: skip


# The way down the tree for any number of states (reference/recursion.py specifies it; see
# preorder_four.py).


@uncounted
def collect(x, begin, end, c, nodes, columns, messages, shape, q, scratch):
    """scratch[k] = u_x of classes begin:end, category c: Σ of q_parent ∘ m_sibling over a class's columns."""
    lanes, values, padded = shape.lanes, messages.values[c], shape.padded
    order, sibling, parent_row, above, sibling_row = beside(x, nodes, columns, messages)
    row = columns.start[nodes.columns_at[x]]
    for k in range(begin, end):
        at = (k - begin) * padded
        first, last = parent_row + columns.first[row + k], parent_row + columns.first[row + k + 1]
        if first == last:  # a code that no pattern has
            for i in range(0, padded, len(lanes)):
                store(scratch, at + i, zeros(scratch, lanes))
            continue
        f, g = (above + order[first]) * padded, (sibling_row + sibling[first]) * padded
        for i in range(0, padded, len(lanes)):
            store(scratch, at + i, multiply(load(q, f + i, lanes), load(values, g + i, lanes)))
        for j in range(first + 1, last):
            f, g = (above + order[j]) * padded, (sibling_row + sibling[j]) * padded
            for i in range(0, padded, len(lanes)):
                u = load(scratch, at + i, lanes)
                store(scratch, at + i, multiply_add(load(q, f + i, lanes), load(values, g + i, lanes), u))


@uncounted
def shift_rows(x, begin, end, c, nodes, columns, messages, shape, rows, start):
    """Multiply rows[start + k · padded :] by 2**-shift, shift what node x itself rescaled column k by."""
    e, padded = messages.exponents[c], shape.padded
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    for k in range(begin, end):
        shift = e[out + k] - e[left_row + columns.left[row + k]] - e[right_row + columns.right[row + k]]
        if shift != 0:
            at = start + (k - begin) * padded
            for i in range(padded):
                rows[at + i] = math.ldexp(rows[at + i], -shift)


@uncounted
def tip_down_padded(x, c, nodes, columns, messages, sets, shape, q, outer, outer_at, with_partials, u):
    """What node_down_padded does, at a tip: p is the indicator of the states that a code allows."""
    lanes, padded, values = shape.lanes, shape.padded, messages.values[c]
    row = columns.start[nodes.columns_at[x]]
    at = messages.start[nodes.messages_at[x]] * padded
    if with_partials:
        for entry in range(0, shape.matrix, len(lanes)):
            store(outer, outer_at + entry, zeros(outer, lanes))
    for first in range(0, nodes.size[x], BATCH):
        rows = min(nodes.size[x] - first, BATCH)
        collect(x, first, first + rows, c, nodes, columns, messages, shape, q, u)
        if with_partials:
            for k in range(rows):
                add_to_states(outer, outer_at, sets, columns.left[row + first + k], u, k * padded, shape)
        else:
            product(
                values, at + first * padded, 1, padded, u, 0, padded, outer, outer_at, padded,
                shape.states, padded, rows, first > 0,
            )  # fmt: skip


@uncounted
def add_to_states(outer, outer_at, sets, code, u, at, shape):
    """Add the row u[at:] to the row of every state that code allows."""
    lanes, padded = shape.lanes, shape.padded
    for s in range(sets.first[code], sets.first[code + 1]):
        to = outer_at + sets.states[s] * padded
        for i in range(0, padded, len(lanes)):
            store(outer, to + i, add(load(outer, to + i, lanes), load(u, at + i, lanes)))


@uncounted
def node_down_padded(
    x, begin, end, c, nodes, columns, messages, matrices, shape, q, outer, outer_at, with_partials, u, p
):
    """q = Pᵀ u of the classes begin:end of an internal node, and into outer[outer_at:] the sum over them of
    p uᵀ, that is d log L / d P laid out as Matrices.down, if with_partials, else of m uᵀ.

    q: as messages.values[c]; the parent's rows are read, x's written. u, p: scratch, BATCH rows and a
    little more.
    """
    padded, states, values = shape.padded, shape.states, messages.values[c]
    out = messages.start[nodes.messages_at[x]]
    matrix = nodes.matrix_at[x] * shape.matrix
    rescaled = messages.rescaled[c, nodes.messages_at[x]] != 0
    for first in range(begin, end, BATCH):
        last = min(first + BATCH, end)
        at, rows = (out + first) * padded, last - first
        collect(x, first, last, c, nodes, columns, messages, shape, q, u)
        product(u, 0, padded, 1, matrices.up[c], matrix, padded, q, at, padded, rows, padded, states, False)
        if rescaled:
            shift_rows(x, first, last, c, nodes, columns, messages, shape, q, at)
        more = first > begin
        if with_partials:
            gather_product(x, first, last, c, nodes, columns, messages, shape, p)
            if rescaled:
                shift_rows(x, first, last, c, nodes, columns, messages, shape, p, 0)
            product(p, 0, 1, padded, u, 0, padded, outer, outer_at, padded, states, padded, rows, more)
        else:
            product(values, at, 1, padded, u, 0, padded, outer, outer_at, padded, states, padded, rows, more)


# What one thread does in a pass over the tree, any number of states (see run_four.py).


@uncounted
def run_up_padded(
    tasks, counter, done, nodes, columns, messages, matrices, model, sets, sites, shape, scratch
):
    """Transition matrices, branch messages and the root's site likelihoods."""
    n_nodes = len(nodes.left)
    rows = scratch.rows
    while True:
        task = next_task(counter)
        if task >= len(tasks):
            break
        x, begin, end, block = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        if block < 0:
            for other in range(shape.blocks):
                wait_for(done, other * 2 * n_nodes + x, nodes.size[x])
            root_sites(x, begin, end, nodes, messages, model, sites, shape, scratch)
            continue
        at = block * 2 * n_nodes
        if begin < 0:
            transition_padded(x, block, nodes, matrices, model, shape, scratch)
            finish(done, at + n_nodes + x, 1)
            continue
        wait_for(done, at + n_nodes + x, 1)
        if nodes.left[x] < 0:
            tip_messages_padded(x, block, nodes, columns, messages, matrices, sets, shape)
        else:
            wait_for(done, at + nodes.left[x], nodes.size[nodes.left[x]])
            wait_for(done, at + nodes.right[x], nodes.size[nodes.right[x]])
            node_messages_padded(x, begin, end, block, nodes, columns, messages, matrices, shape, rows)
        finish(done, at + x, end - begin)


@uncounted
def run_down_padded(
    tasks, counter, done, thread, nodes, columns, messages, matrices, model, sets, sites, shape, scratch, down
):
    """Pre-order vectors, and every task's share of the branch derivatives (and of d log L / d P if kept)."""
    n_nodes, adjoint = len(nodes.left), down.adjoint
    u, p = scratch.rows, scratch.more_rows
    while True:
        task = next_task(counter)
        if task >= len(tasks):
            break
        x, begin, end, block = tasks[task, 0], tasks[task, 1], tasks[task, 2], tasks[task, 3]
        parent, ready, q = nodes.parent[x], block * 2 * n_nodes, down.q[block]
        if parent < 0:
            row = messages.start[nodes.messages_at[x]] + begin
            root_down(
                x, begin, end, block, nodes, columns, messages, model, sites, down.site_weights, q, row, shape
            )
            finish(done, ready + x, end - begin)
            continue
        wait_for(done, ready + parent, nodes.size[parent])
        at = (task if down.keep_adjoint else thread) * shape.matrix
        matrix, share, keep = nodes.matrix_at[x] * shape.matrix, down.derivative[task], down.keep_adjoint
        tip = nodes.left[x] < 0
        partials = keep and (tip or down.whole or needs_partials(x, block, matrices.lengths, model, shape))
        if tip:
            tip_down_padded(x, block, nodes, columns, messages, sets, shape, q, adjoint, at, keep, u)
        else:
            node_down_padded(
                x, begin, end, block, nodes, columns, messages, matrices, shape, q, adjoint, at, partials, u,
                p,
            )  # fmt: skip
            finish(done, ready + x, end - begin)
        if partials:
            branch_derivative_padded(
                matrix, block, matrices.down[block], down.rate_columns, adjoint, at, shape, share
            )
        else:
            message_derivative_padded(block, down.rate_columns, adjoint, at, shape, share)
