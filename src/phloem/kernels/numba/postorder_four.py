"""The way up the tree for four states, categories in the lanes (reference/postorder.py is the
specification)."""

from __future__ import annotations

import math

from phloem.kernels.numba.compile import compiled
from phloem.kernels.numba.four_states import combine_four, largest_four, load_four, multiply_four, store_four
from phloem.kernels.numba.lanes import any_below


@compiled
def tip_messages_four(x, nodes, columns, messages, matrices, sets, shape):
    """m_x of a tip: for every code the sum of P's columns over the states it allows. No exponents."""
    lanes = len(shape.lanes)
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    for k in range(nodes.size[x]):
        code = columns.left[row + k]
        for e in range(shape.exponents):
            messages.exponents[(out + k) * shape.exponents + e] = 0
        for block in range(shape.blocks):
            matrix = nodes.matrix_at[x] * matrices.size + block * 16 * lanes
            at = (out + k) * shape.width + block * 4 * lanes
            for i in range(4):
                for lane in range(lanes):
                    total = 0.0
                    for s in range(sets.first[code], sets.first[code + 1]):
                        total += matrices.down[matrix + (4 * sets.states[s] + i) * lanes + lane]
                    messages.values[at + i * lanes + lane] = total


@compiled
def node_messages_four(x, begin, end, nodes, columns, messages, matrices, shape):
    """m_x (at the root: p) of the rows begin:end of an internal node, and their exponents."""
    lanes, values, width = shape.lanes, messages.values, shape.width
    n = len(lanes)
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    top = nodes.parent[x] < 0
    for block in range(shape.blocks):
        matrix = 0 if top else nodes.matrix_at[x] * matrices.size + block * 16 * n
        column0 = load_four(matrices.down, matrix, lanes)
        column1 = load_four(matrices.down, matrix + 4 * n, lanes)
        column2 = load_four(matrices.down, matrix + 8 * n, lanes)
        column3 = load_four(matrices.down, matrix + 12 * n, lanes)
        for k in range(begin, end):
            left_at, right_at = left_row + columns.left[row + k], right_row + columns.right[row + k]
            p = multiply_four(
                load_four(values, left_at * width + block * 4 * n, lanes),
                load_four(values, right_at * width + block * 4 * n, lanes),
            )
            at = (out + k) * width + block * 4 * n
            a, b = left_at * shape.exponents + block * n, right_at * shape.exponents + block * n
            e = (out + k) * shape.exponents + block * n
            for lane in range(n):
                messages.exponents[e + lane] = messages.exponents[a + lane] + messages.exponents[b + lane]
            if any_below(largest_four(p), shape.smallest):
                store_four(values, at, p, lanes)
                rescale_four(values, at, messages.exponents, e, n, shape.smallest)
                messages.rescaled[nodes.messages_at[x]] = 1
                p = load_four(values, at, lanes)
            store_four(values, at, p if top else combine_four(column0, column1, column2, column3, p), lanes)


@compiled
def rescale_four(values, at, exponents, e, lanes, smallest):
    """Rescale the lanes of one column whose largest entry is below `smallest` by an exact power of two."""
    for lane in range(lanes):
        largest = values[at + lane]
        for i in range(1, 4):
            largest = max(largest, values[at + i * lanes + lane])
        if 0 < largest < smallest:
            _, power = math.frexp(largest)
            for i in range(4):
                values[at + i * lanes + lane] = math.ldexp(values[at + i * lanes + lane], -power)
            exponents[e + lane] += power
