"""The way up the tree for any number of states, by matrix products (reference/postorder.py specifies it)."""

from __future__ import annotations

import math

from phloem.kernels.numba.compile import compiled
from phloem.kernels.numba.lanes import largest, load, maximum, multiply, store, zeros
from phloem.kernels.numba.matrix_product import ROWS, product

BATCH = 8 * ROWS  # rows that stay in the first-level cache between the steps of one product


@compiled
def tip_messages_padded(x, nodes, columns, messages, matrices, sets, shape):
    """m_x of a tip: for every code the sum of P's columns over the states it allows. No exponents."""
    padded = shape.padded
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    for k in range(nodes.size[x]):
        code = columns.left[row + k]
        for c in range(shape.categories):
            messages.exponents[(out + k) * shape.exponents + c] = 0
            matrix = nodes.matrix_at[x] * matrices.size + c * shape.matrix
            at = (out + k) * shape.width + c * padded
            messages.values[at : at + padded] = 0
            for s in range(sets.first[code], sets.first[code + 1]):
                line = matrix + sets.states[s] * padded
                for i in range(padded):
                    messages.values[at + i] += matrices.down[line + i]


@compiled
def gather_product(x, begin, end, c, nodes, columns, messages, shape, scratch):
    """scratch[k] = m_left[left_class[k]] ∘ m_right[right_class[k]] for rows begin:end of node x, category
    c."""
    lanes, values, padded = shape.lanes, messages.values, shape.padded
    n = len(lanes)
    row = columns.start[nodes.columns_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    for k in range(begin, end):
        a = (left_row + columns.left[row + k]) * shape.width + c * padded
        b = (right_row + columns.right[row + k]) * shape.width + c * padded
        at = (k - begin) * padded
        for i in range(0, padded, n):
            store(scratch, at + i, multiply(load(values, a + i, lanes), load(values, b + i, lanes)))


@compiled
def rescale_rows(x, begin, end, c, nodes, columns, messages, shape, scratch):
    """Exponents of rows begin:end of node x; rows of scratch that are too small are rescaled."""
    lanes, padded = shape.lanes, shape.padded
    exponents = messages.exponents
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    for k in range(begin, end):
        at = (k - begin) * padded
        best = zeros(scratch, lanes)
        for i in range(0, padded, len(lanes)):
            best = maximum(best, load(scratch, at + i, lanes))
        top = largest(best)
        e = exponents[(left_row + columns.left[row + k]) * shape.exponents + c]
        e += exponents[(right_row + columns.right[row + k]) * shape.exponents + c]
        if 0 < top < shape.smallest:
            _, power = math.frexp(top)
            for i in range(padded):
                scratch[at + i] = math.ldexp(scratch[at + i], -power)
            e += power
            messages.rescaled[nodes.messages_at[x]] = 1
        exponents[(out + k) * shape.exponents + c] = e


@compiled
def node_messages_padded(x, begin, end, nodes, columns, messages, matrices, shape, scratch):
    """m_x (at the root: p) of the rows begin:end of an internal node, and their exponents.

    begin: a multiple of 6. scratch: at least BATCH rows of padded states.
    """
    padded = shape.padded
    out = messages.start[nodes.messages_at[x]]
    for first in range(begin, end, BATCH):
        last = min(first + BATCH, end)
        for c in range(shape.categories):
            gather_product(x, first, last, c, nodes, columns, messages, shape, scratch)
            rescale_rows(x, first, last, c, nodes, columns, messages, shape, scratch)
            at = (out + first) * shape.width + c * padded
            if nodes.parent[x] < 0:
                for k in range(last - first):
                    for i in range(padded):
                        messages.values[at + k * shape.width + i] = scratch[k * padded + i]
                continue
            matrix = nodes.matrix_at[x] * matrices.size + c * shape.matrix
            product(
                scratch, 0, padded, 1, matrices.down, matrix, padded, messages.values, at, shape.width,
                last - first, padded, shape.states, False,
            )  # fmt: skip
