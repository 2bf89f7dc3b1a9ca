"""The way down the tree for any number of states (reference/preorder.py specifies it; see
preorder_four.py)."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.lanes import add, load, multiply, multiply_add, store, zeros
from phloem.pruning.cpu.matrix_product import product
from phloem.pruning.cpu.postorder_padded import BATCH, gather_product
from phloem.pruning.cpu.siblings import beside


@uncounted
def collect(x, begin, end, c, nodes, columns, messages, shape, q, scratch):
    """scratch[k] = u_x of classes begin:end, category c: Σ of q_parent ∘ m_sibling over a class's columns."""
    lanes, values, padded = shape.lanes, messages.values[c], shape.padded
    order, sibling, parent_row, above, sibling_row = beside(x, nodes, columns, messages)
    row = columns.start[nodes.columns_at[x]]
    for k in range(begin, end):
        at = (k - begin) * padded
        first, last = parent_row + columns.first[row + k], parent_row + columns.first[row + k + 1]
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
