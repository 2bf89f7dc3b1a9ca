"""Four states: the way up and down the tree, node by node."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.adjoint import beside
from phloem.pruning.cpu.lanes import (
    add,
    add_integers,
    any_below,
    entry,
    high_twice,
    joined,
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

# Four states at once: a column block (x0, x1, x2, x3) of vectors, one vector a state, categories in the
# lanes.


@uncounted(forceinline=True)
def load_four(array, at, lanes):
    """The four vectors that start at `at`."""
    n = len(lanes)
    return (
        load(array, at, lanes),
        load(array, at + n, lanes),
        load(array, at + 2 * n, lanes),
        load(array, at + 3 * n, lanes),
    )


@uncounted(forceinline=True)
def store_four(array, at, x, lanes):
    """The reverse of load_four."""
    n = len(lanes)
    store(array, at, x[0])
    store(array, at + n, x[1])
    store(array, at + 2 * n, x[2])
    store(array, at + 3 * n, x[3])


@uncounted(forceinline=True)
def multiply_four(x, y):
    """x ∘ y"""
    return multiply(x[0], y[0]), multiply(x[1], y[1]), multiply(x[2], y[2]), multiply(x[3], y[3])


@uncounted(forceinline=True)
def scale_four(x, factor):
    """x · factor, factor one vector"""
    return multiply(x[0], factor), multiply(x[1], factor), multiply(x[2], factor), multiply(x[3], factor)


@uncounted(forceinline=True)
def add_four(x, y):
    """x + y"""
    return add(x[0], y[0]), add(x[1], y[1]), add(x[2], y[2]), add(x[3], y[3])


@uncounted(forceinline=True)
def dot_four(x, y):
    """Σ_i x_i ∘ y_i"""
    total = multiply(x[0], y[0])
    total = multiply_add(x[1], y[1], total)
    total = multiply_add(x[2], y[2], total)
    return multiply_add(x[3], y[3], total)


@uncounted(forceinline=True)
def transposed_product_four(matrix, at, x, lanes):
    """Σ_i matrix[j, i] · x_i for the four rows j of the matrix that starts at `at`."""
    n = len(lanes)
    return (
        dot_four(load_four(matrix, at, lanes), x),
        dot_four(load_four(matrix, at + 4 * n, lanes), x),
        dot_four(load_four(matrix, at + 8 * n, lanes), x),
        dot_four(load_four(matrix, at + 12 * n, lanes), x),
    )


# The way up the tree for four states, categories in the lanes (reference/recursion.py specifies it).
#
# A column is (state, lane): two vectors of twice the lanes hold two states each, so that a machine with wide
# registers does two states at once and one with narrow ones loses nothing.


@uncounted(forceinline=True)
def tip_messages_four(x, block, sweep):
    """m_x of a tip: for every code the sum of P's columns over the states it allows. No exponents."""
    nodes, columns, messages, matrices, sets, shape = sweep
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
def node_messages_four(x, begin, end, block, sweep, rows):
    """m_x (at the root: p) of the rows begin:end of an internal node, and their exponents. rows: not used."""
    nodes, columns, messages, matrices, _, shape = sweep
    lanes, n, down = shape.lanes, len(shape.lanes), matrices.down[block]
    two, wide, width = 2 * n, lanes + lanes, 4 * n
    values, exponents = messages.values[block], messages.exponents[block]
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    top = nodes.parent[x] < 0 or no_time(x, matrices)
    matrix = 0 if nodes.parent[x] < 0 else nodes.matrix_at[x] * shape.matrix
    guarded = shape.smallest > 0.0  # else no exponents are kept, and none are read
    k, small = begin, False
    while k < end:
        # P stays in registers up to a column that must be rescaled: no call lies between its uses
        p00, p01 = load(down, matrix, wide), load(down, matrix + two, wide)
        p10, p11 = load(down, matrix + width, wide), load(down, matrix + width + two, wide)
        p20, p21 = load(down, matrix + 2 * width, wide), load(down, matrix + 2 * width + two, wide)
        p30, p31 = load(down, matrix + 3 * width, wide), load(down, matrix + 3 * width + two, wide)
        while k < end:
            at = (out + k) * width
            if small:
                first, second, small = load(values, at, wide), load(values, at + two, wide), False
            else:
                a, b = left_row + entry(columns.left, row + k), right_row + entry(columns.right, row + k)
                first = multiply(load(values, a * width, wide), load(values, b * width, wide))
                second = multiply(load(values, a * width + two, wide), load(values, b * width + two, wide))
                if guarded:
                    taken = add_integers(load(exponents, a * n, lanes), load(exponents, b * n, lanes))
                    store(exponents, (out + k) * n, taken)
                    small = any_below(larger_of_halves(maximum(first, second)), shape.smallest)
            if top or small:
                store(values, at, first)
                store(values, at + two, second)
                if small:
                    break
            else:
                x0, x1, x2, x3 = low_twice(first), high_twice(first), low_twice(second), high_twice(second)
                upper = multiply_add(p10, x1, multiply(p00, x0))
                lower = multiply_add(p11, x1, multiply(p01, x0))
                store(values, at, multiply_add(p30, x3, multiply_add(p20, x2, upper)))
                store(values, at + two, multiply_add(p31, x3, multiply_add(p21, x2, lower)))
            k += 1
        if small:
            rescale_four(values, (out + k) * width, exponents, (out + k) * n, n, shape.smallest)
            messages.rescaled[block, nodes.messages_at[x]] = 1


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


# The way down the tree for four states, categories in the lanes (reference/recursion.py specifies it).
#
# Where the reference scatters a parent's columns over the child's classes, every class here collects its
# columns, in the same order: no two threads write one row, u stays in registers, and no sum depends on the
# number of threads.


@uncounted(forceinline=True)
def collect_four(first, last, rows, order, sibling, q, values, wide):
    """u = Σ of q_parent ∘ m_sibling over the parent's columns in one class, which has one at least: states 0
    and 1, then 2 and 3. rows: the first of the parent and of the sibling."""
    two = len(wide)
    f, g = (rows[0] + entry(order, first)) * 2 * two, (rows[1] + entry(sibling, first)) * 2 * two
    upper = multiply(load(q, f, wide), load(values, g, wide))
    lower = multiply(load(q, f + two, wide), load(values, g + two, wide))
    for j in range(first + 1, last):
        f, g = (rows[0] + entry(order, j)) * 2 * two, (rows[1] + entry(sibling, j)) * 2 * two
        upper = multiply_add(load(q, f, wide), load(values, g, wide), upper)
        lower = multiply_add(load(q, f + two, wide), load(values, g + two, wide), lower)
    return upper, lower


@uncounted
def tip_down_four(x, block, sweep, outer, rows):
    """What node_down_four does, at a tip, always with partials: p is the indicator of the states that a code
    allows. rows: not used."""
    nodes, columns, messages, _, sets, shape = sweep
    q, adjoint, adjoint_at = outer.q, outer.sums, outer.at
    lanes, n, values = shape.lanes, len(shape.lanes), messages.values[block]
    wide, two = lanes + lanes, 2 * n
    order, sibling, parent_row, above, sibling_row = beside(x, nodes, columns, messages)
    row = columns.start[nodes.columns_at[x]]
    for part in range(8):
        store(adjoint, adjoint_at + part * two, zeros(values, wide))
    for k in range(nodes.size[x]):
        first, last = parent_row + columns.first[row + k], parent_row + columns.first[row + k + 1]
        if first == last:  # a code that no pattern has
            continue
        upper, lower = collect_four(first, last, (above, sibling_row), order, sibling, q, values, wide)
        code = columns.left[row + k]
        for s in range(sets.first[code], sets.first[code + 1]):
            at = adjoint_at + sets.states[s] * 4 * n
            store(adjoint, at, add(load(adjoint, at, wide), upper))
            store(adjoint, at + two, add(load(adjoint, at + two, wide), lower))


@uncounted
def node_down_four(x, begin, end, block, sweep, outer, scratch):
    """q = Pᵀ u of the classes begin:end of an internal node, the parent's rows read and x's written, and the
    sum over them of p uᵀ or m uᵀ: records.Outer."""
    nodes, columns, messages, _, _, shape = sweep
    q, with_partials = outer.q, outer.with_partials
    lanes, n, values = shape.lanes, len(shape.lanes), messages.values[block]
    wide, two, width = lanes + lanes, 2 * n, 4 * n
    order, sibling, parent_row, above, sibling_row = beside(x, nodes, columns, messages)
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    rescaled = messages.rescaled[block, nodes.messages_at[x]] != 0
    factors = scratch.rows
    # Pᵀ, and the sums, stay in registers where there are enough: states 0 and 1 in a vector, 2 and 3 in one
    (t00, t01), (t10, t11) = turned_pair(outer, 0, lanes), turned_pair(outer, 1, lanes)
    (t20, t21), (t30, t31) = turned_pair(outer, 2, lanes), turned_pair(outer, 3, lanes)
    a00 = a01 = a10 = a11 = a20 = a21 = a30 = a31 = zeros(values, wide)
    for k in range(begin, end):
        first = parent_row + entry(columns.first, row + k)
        last = parent_row + entry(columns.first, row + k + 1)
        u, v = collect_four(first, last, (above, sibling_row), order, sibling, q, values, wide)
        x0, x1, x2, x3 = low_twice(u), high_twice(u), low_twice(v), high_twice(v)
        upper = multiply_add(t10, x1, multiply(t00, x0))
        lower = multiply_add(t11, x1, multiply(t01, x0))
        upper = multiply_add(t30, x3, multiply_add(t20, x2, upper))
        lower = multiply_add(t31, x3, multiply_add(t21, x2, lower))
        at = (out + k) * width
        p, r = load(values, at, wide), load(values, at + two, wide)
        if with_partials or rescaled:
            a, b = left_row + entry(columns.left, row + k), right_row + entry(columns.right, row + k)
            if with_partials:
                p = multiply(load(values, a * width, wide), load(values, b * width, wide))
                r = multiply(load(values, a * width + two, wide), load(values, b * width + two, wide))
            if rescaled:
                shift_factors(messages.exponents[block], (out + k) * n, a * n, b * n, n, factors)
                f, g = load(factors, 0, lanes), load(factors, n, lanes)
                f, g = joined(f, f), joined(g, g)
                upper, lower = multiply(multiply(upper, f), g), multiply(multiply(lower, f), g)
                if with_partials:
                    p, r = multiply(multiply(p, f), g), multiply(multiply(r, f), g)
        store(q, at, upper)
        store(q, at + two, lower)
        y0, y1, y2, y3 = low_twice(p), high_twice(p), low_twice(r), high_twice(r)
        a00, a01 = multiply_add(u, y0, a00), multiply_add(v, y0, a01)
        a10, a11 = multiply_add(u, y1, a10), multiply_add(v, y1, a11)
        a20, a21 = multiply_add(u, y2, a20), multiply_add(v, y2, a21)
        a30, a31 = multiply_add(u, y3, a30), multiply_add(v, y3, a31)
    store_pair(outer, 0, a00, a01, two)
    store_pair(outer, 1, a10, a11, two)
    store_pair(outer, 2, a20, a21, two)
    store_pair(outer, 3, a30, a31, two)


@uncounted(forceinline=True)
def turned_pair(outer, i, lanes):
    """What state i of u adds to states 0 and 1 of Pᵀ u, and to 2 and 3."""
    n = len(lanes)
    at = outer.turned_at + i * n
    return (
        joined(load(outer.turned, at, lanes), load(outer.turned, at + 4 * n, lanes)),
        joined(load(outer.turned, at + 8 * n, lanes), load(outer.turned, at + 12 * n, lanes)),
    )


@uncounted(forceinline=True)
def store_pair(outer, j, upper, lower, two):
    """Row j of the sums, whose states 0 and 1 are in upper."""
    store(outer.sums, outer.at + j * 2 * two, upper)
    store(outer.sums, outer.at + j * 2 * two + two, lower)


@uncounted
def shift_factors(exponents, own, left, right, n, factors):
    """2**-shift of every lane, where shift is what the node itself rescaled by, as two factors in range."""
    for lane in range(n):
        shift = exponents[own + lane] - exponents[left + lane] - exponents[right + lane]
        factors[lane] = math.ldexp(1.0, -(shift // 2))
        factors[n + lane] = math.ldexp(1.0, shift // 2 - shift)
