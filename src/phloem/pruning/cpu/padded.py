"""Any number of states: the way up and down the tree, node by node."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.adjoint import beside
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
from phloem.pruning.cpu.records import Operand
from phloem.pruning.cpu.transition import no_time

# The way up the tree for any number of states, by matrix products (reference/recursion.py specifies it).


BATCH = 16 * ROWS  # rows that stay in the cache between the steps of one product


@uncounted
def tip_messages_padded(x, c, sweep):
    """m_x of a tip: for every code the sum of P's columns over the states it allows. No exponents."""
    nodes, columns, messages, matrices, sets, shape = sweep
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
def gather_product(x, begin, end, c, sweep, scratch):
    """scratch[k] = m_left[left_class[k]] ∘ m_right[right_class[k]] for rows begin:end of node x, category
    c."""
    nodes, columns, messages, _, _, shape = sweep
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
def gather_rescaled(x, begin, end, c, sweep, scratch):
    """gather_product; rows of scratch that are too small are rescaled. Fills x's exponents."""
    nodes, columns, messages, _, _, shape = sweep
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
def node_messages_padded(x, begin, end, c, sweep, rows):
    """m_x (at the root: p) of the rows begin:end of an internal node in category c, and their exponents.

    begin: a multiple of 6. rows: scratch, at least BATCH rows of padded states and a little more.
    """
    nodes, _, messages, matrices, _, shape = sweep
    padded, values, down = shape.padded, messages.values[c], matrices.down[c]
    out = messages.start[nodes.messages_at[x]]
    matrix, top = nodes.matrix_at[x] * shape.matrix, nodes.parent[x] < 0 or no_time(x, matrices)
    for first in range(begin, end, BATCH):
        last = min(first + BATCH, end)
        gather_rescaled(x, first, last, c, sweep, rows)
        at = (out + first) * padded
        if top:
            for entry in range((last - first) * padded):
                values[at + entry] = rows[entry]
            continue
        a, b = Operand(rows, 0, padded, 1), Operand(down, matrix, padded, 1)
        product(a, b, Operand(values, at, padded, 1), last - first, padded, shape.states, False)


# The way down the tree for any number of states (reference/recursion.py specifies it; see four_states.py).


@uncounted
def collect(x, begin, end, c, sweep, q, scratch):
    """scratch[k] = u_x of classes begin:end, category c: Σ of q_parent ∘ m_sibling over a class's columns."""
    nodes, columns, messages, _, _, shape = sweep
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
def shift_rows(x, begin, end, c, sweep, rows, start):
    """Multiply rows[start + k · padded :] by 2**-shift, shift what node x itself rescaled column k by."""
    nodes, columns, messages, _, _, shape = sweep
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
def tip_down_padded(x, c, sweep, outer, u):
    """What node_down_padded does, at a tip: p is the indicator of the states that a code allows. u: scratch,
    BATCH rows and a little more."""
    nodes, columns, messages, _, sets, shape = sweep
    lanes, padded, values = shape.lanes, shape.padded, messages.values[c]
    row = columns.start[nodes.columns_at[x]]
    at = messages.start[nodes.messages_at[x]] * padded
    if outer.with_partials:
        for entry in range(0, shape.matrix, len(lanes)):
            store(outer.sums, outer.at + entry, zeros(outer.sums, lanes))
    for first in range(0, nodes.size[x], BATCH):
        rows = min(nodes.size[x] - first, BATCH)
        collect(x, first, first + rows, c, sweep, outer.q, u)
        if outer.with_partials:
            for k in range(rows):
                add_to_states(outer, sets, columns.left[row + first + k], u, k * padded, shape)
        else:
            a, b = Operand(values, at + first * padded, 1, padded), Operand(u, 0, padded, 1)
            out = Operand(outer.sums, outer.at, padded, 1)
            product(a, b, out, shape.states, padded, rows, first > 0)


@uncounted
def add_to_states(outer, sets, code, u, at, shape):
    """Add the row u[at:] to the row of every state that code allows."""
    lanes, padded, sums = shape.lanes, shape.padded, outer.sums
    for s in range(sets.first[code], sets.first[code + 1]):
        to = outer.at + sets.states[s] * padded
        for i in range(0, padded, len(lanes)):
            store(sums, to + i, add(load(sums, to + i, lanes), load(u, at + i, lanes)))


@uncounted
def node_down_padded(x, begin, end, c, sweep, outer, scratch):
    """q = Pᵀ u of the classes begin:end of an internal node, the parent's rows read and x's written, and the
    sum over them of p uᵀ or m uᵀ: records.Outer."""
    messages, shape, q, u, p = sweep.messages, sweep.shape, outer.q, scratch.rows, scratch.more_rows
    padded, states, values = shape.padded, shape.states, messages.values[c]
    out = messages.start[sweep.nodes.messages_at[x]]
    rescaled = messages.rescaled[c, sweep.nodes.messages_at[x]] != 0
    by_rows, sums = Operand(u, 0, padded, 1), Operand(outer.sums, outer.at, padded, 1)
    turned = Operand(outer.turned, outer.turned_at, padded, 1)
    for first in range(begin, end, BATCH):
        last = min(first + BATCH, end)
        at, rows, more = (out + first) * padded, last - first, first > begin
        collect(x, first, last, c, sweep, q, u)
        product(by_rows, turned, Operand(q, at, padded, 1), rows, padded, states, False)
        if rescaled:
            shift_rows(x, first, last, c, sweep, q, at)
        if outer.with_partials:
            gather_product(x, first, last, c, sweep, p)
            if rescaled:
                shift_rows(x, first, last, c, sweep, p, 0)
            product(Operand(p, 0, 1, padded), by_rows, sums, states, padded, rows, more)
        else:
            product(Operand(values, at, 1, padded), by_rows, sums, states, padded, rows, more)
