"""The way up the tree for four states, categories in the lanes (reference/postorder.py specifies it)."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import compiled
from phloem.pruning.cpu.four_states import (
    combine_four,
    largest_four,
    load_four,
    multiply_four,
    store_four,
)
from phloem.pruning.cpu.lanes import any_below


@compiled
def tip_messages_four(x, block, nodes, columns, messages, matrices, sets, shape):
    """m_x of a tip: for every code the sum of P's columns over the states it allows. No exponents."""
    n, down = len(shape.lanes), matrices.down[block]
    values, exponents = messages.values[block], messages.exponents[block]
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    matrix = nodes.matrix_at[x] * shape.matrix
    for k in range(nodes.size[x]):
        code = columns.left[row + k]
        for lane in range(n):
            exponents[(out + k) * n + lane] = 0
        for entry in range(4 * n):
            total = 0.0
            for s in range(sets.first[code], sets.first[code + 1]):
                total += down[matrix + sets.states[s] * 4 * n + entry]
            values[(out + k) * 4 * n + entry] = total


@compiled
def node_messages_four(x, begin, end, block, nodes, columns, messages, matrices, shape):
    """m_x (at the root: p) of the rows begin:end of an internal node, and their exponents."""
    lanes, n, down = shape.lanes, len(shape.lanes), matrices.down[block]
    values, exponents = messages.values[block], messages.exponents[block]
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    top = nodes.parent[x] < 0
    matrix = 0 if top else nodes.matrix_at[x] * shape.matrix
    column0 = load_four(down, matrix, lanes)
    column1 = load_four(down, matrix + 4 * n, lanes)
    column2 = load_four(down, matrix + 8 * n, lanes)
    column3 = load_four(down, matrix + 12 * n, lanes)
    for k in range(begin, end):
        a, b = left_row + columns.left[row + k], right_row + columns.right[row + k]
        p = multiply_four(load_four(values, a * 4 * n, lanes), load_four(values, b * 4 * n, lanes))
        at, e = (out + k) * 4 * n, (out + k) * n
        for lane in range(n):
            exponents[e + lane] = exponents[a * n + lane] + exponents[b * n + lane]
        if any_below(largest_four(p), shape.smallest):
            store_four(values, at, p, lanes)
            rescale_four(values, at, exponents, e, n, shape.smallest)
            messages.rescaled[block, nodes.messages_at[x]] = 1
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
