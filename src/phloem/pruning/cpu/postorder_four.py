"""The way up the tree for four states, categories in the lanes (reference/postorder.py specifies it).

A column is (state, lane): two vectors of twice the lanes hold two states each, so that a machine with wide
registers does two states at once and one with narrow ones loses nothing.
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.four_states import add_four, load_four, store_four
from phloem.pruning.cpu.lanes import (
    add_integers,
    any_below,
    high_twice,
    larger_of_halves,
    load,
    low_twice,
    maximum,
    multiply,
    multiply_add,
    store,
    zeros,
)
from phloem.pruning.cpu.transition import no_time


@uncounted(forceinline=True)
def tip_messages_four(x, block, nodes, columns, messages, matrices, sets, shape):
    """m_x of a tip: for every code the sum of P's columns over the states it allows. No exponents."""
    lanes, n, down = shape.lanes, len(shape.lanes), matrices.down[block]
    values, exponents = messages.values[block], messages.exponents[block]
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    matrix = nodes.matrix_at[x] * shape.matrix
    nothing = zeros(exponents, lanes)
    for k in range(nodes.size[x]):
        code = columns.left[row + k]
        first, last = sets.first[code], sets.first[code + 1]
        store(exponents, (out + k) * n, nothing)
        total = load_four(down, matrix + sets.states[first] * 4 * n, lanes)
        for s in range(first + 1, last):
            total = add_four(total, load_four(down, matrix + sets.states[s] * 4 * n, lanes))
        store_four(values, (out + k) * 4 * n, total, lanes)


@uncounted(forceinline=True)
def node_messages_four(x, begin, end, block, nodes, columns, messages, matrices, shape):
    """m_x (at the root: p) of the rows begin:end of an internal node, and their exponents."""
    lanes, n, down = shape.lanes, len(shape.lanes), matrices.down[block]
    two, wide, width = 2 * n, lanes + lanes, 4 * n
    values, exponents = messages.values[block], messages.exponents[block]
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    top = nodes.parent[x] < 0 or no_time(x, matrices)
    matrix = 0 if nodes.parent[x] < 0 else nodes.matrix_at[x] * shape.matrix
    p00, p01 = load(down, matrix, wide), load(down, matrix + two, wide)
    p10, p11 = load(down, matrix + width, wide), load(down, matrix + width + two, wide)
    p20, p21 = load(down, matrix + 2 * width, wide), load(down, matrix + 2 * width + two, wide)
    p30, p31 = load(down, matrix + 3 * width, wide), load(down, matrix + 3 * width + two, wide)
    guarded = shape.smallest > 0.0  # else no exponents are kept, and none are read
    for k in range(begin, end):
        a, b = left_row + columns.left[row + k], right_row + columns.right[row + k]
        at = (out + k) * width
        first = multiply(load(values, a * width, wide), load(values, b * width, wide))
        second = multiply(load(values, a * width + two, wide), load(values, b * width + two, wide))
        if guarded:
            taken = add_integers(load(exponents, a * n, lanes), load(exponents, b * n, lanes))
            store(exponents, (out + k) * n, taken)
            if any_below(larger_of_halves(maximum(first, second)), shape.smallest):
                store(values, at, first)
                store(values, at + two, second)
                rescale_four(values, at, exponents, (out + k) * n, n, shape.smallest)
                messages.rescaled[block, nodes.messages_at[x]] = 1
                first, second = load(values, at, wide), load(values, at + two, wide)
        if top:
            store(values, at, first)
            store(values, at + two, second)
            continue
        x0, x1, x2, x3 = low_twice(first), high_twice(first), low_twice(second), high_twice(second)
        upper = multiply_add(p10, x1, multiply(p00, x0))
        lower = multiply_add(p11, x1, multiply(p01, x0))
        store(values, at, multiply_add(p30, x3, multiply_add(p20, x2, upper)))
        store(values, at + two, multiply_add(p31, x3, multiply_add(p21, x2, lower)))


@uncounted
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
