"""The way up the tree for any number of states, by matrix products (reference/postorder.py specifies it)."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.lanes import add, any_above, largest, load, maximum, multiply, store, zeros
from phloem.pruning.cpu.matrix_product import ROWS, product
from phloem.pruning.cpu.transition import no_time

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
