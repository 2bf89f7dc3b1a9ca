"""The way down the tree for four states, categories in the lanes (reference/preorder.py specifies it).

Where the reference scatters a parent's columns over the child's classes, every class here collects its
columns, in the same order: no two threads write one row, u stays in registers, and no sum depends on the
number of threads.
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.four_states import (
    add_four,
    add_product_four,
    add_scaled_four,
    load_four,
    multiply_four,
    scale_four,
    store_four,
    transposed_product_four,
)
from phloem.pruning.cpu.lanes import load, zeros
from phloem.pruning.cpu.siblings import beside


@uncounted(forceinline=True)
def collect_four(first, last, above, order, sibling_row, sibling, q, values, lanes):
    """u = Σ of q_parent ∘ m_sibling over the parent's columns in one class."""
    width, zero = 4 * len(lanes), zeros(values, lanes)
    u = (zero, zero, zero, zero)
    for j in range(first, last):
        f = (above + order[j]) * width
        g = (sibling_row + sibling[j]) * width
        u = add_product_four(u, load_four(q, f, lanes), load_four(values, g, lanes))
    return u


@uncounted
def tip_down_four(x, block, nodes, columns, messages, sets, shape, q, adjoint, adjoint_at):
    """d log L / d P of a tip's branch, laid out as Matrices.down, into adjoint[adjoint_at:]."""
    lanes, n, values = shape.lanes, len(shape.lanes), messages.values[block]
    order, sibling, parent_row, above, sibling_row = beside(x, nodes, columns, messages)
    row = columns.start[nodes.columns_at[x]]
    zero = zeros(values, lanes)
    for state in range(4):
        store_four(adjoint, adjoint_at + state * 4 * n, (zero, zero, zero, zero), lanes)
    for k in range(nodes.size[x]):
        first, last = parent_row + columns.first[row + k], parent_row + columns.first[row + k + 1]
        u = collect_four(first, last, above, order, sibling_row, sibling, q, values, lanes)
        code = columns.left[row + k]
        for s in range(sets.first[code], sets.first[code + 1]):
            at = adjoint_at + sets.states[s] * 4 * n
            store_four(adjoint, at, add_four(load_four(adjoint, at, lanes), u), lanes)


@uncounted
def node_down_four(
    x,
    begin,
    end,
    block,
    nodes,
    columns,
    messages,
    matrices,
    shape,
    q,
    outer,
    outer_at,
    with_partials,
    scratch,
):
    """q = Pᵀ u of the classes begin:end of an internal node, and into outer[outer_at:] the sum over them of
    p uᵀ, that is d log L / d P laid out as Matrices.down, if with_partials, else of m uᵀ.

    q: as messages.values[block]; the parent's rows are read, x's written.
    """
    lanes, n, values, down = shape.lanes, len(shape.lanes), messages.values[block], matrices.down[block]
    order, sibling, parent_row, above, sibling_row = beside(x, nodes, columns, messages)
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    rescaled = messages.rescaled[block, nodes.messages_at[x]] != 0
    factors = scratch.rows
    matrix = nodes.matrix_at[x] * shape.matrix
    zero = zeros(values, lanes)
    a0 = a1 = a2 = a3 = (zero, zero, zero, zero)
    for k in range(begin, end):
        first, last = parent_row + columns.first[row + k], parent_row + columns.first[row + k + 1]
        u = collect_four(first, last, above, order, sibling_row, sibling, q, values, lanes)
        y = transposed_product_four(down, matrix, u, lanes)
        p = load_four(values, (out + k) * 4 * n, lanes)
        a, b = left_row + columns.left[row + k], right_row + columns.right[row + k]
        if with_partials:
            p = multiply_four(load_four(values, a * 4 * n, lanes), load_four(values, b * 4 * n, lanes))
        if rescaled:
            shift_factors(messages.exponents[block], (out + k) * n, a * n, b * n, n, factors)
            f, g = load(factors, 0, lanes), load(factors, n, lanes)
            y = scale_four(scale_four(y, f), g)
            if with_partials:
                p = scale_four(scale_four(p, f), g)
        store_four(q, (out + k) * 4 * n, y, lanes)
        a0, a1 = add_scaled_four(a0, u, p[0]), add_scaled_four(a1, u, p[1])
        a2, a3 = add_scaled_four(a2, u, p[2]), add_scaled_four(a3, u, p[3])
    store_four(outer, outer_at, a0, lanes)
    store_four(outer, outer_at + 4 * n, a1, lanes)
    store_four(outer, outer_at + 8 * n, a2, lanes)
    store_four(outer, outer_at + 12 * n, a3, lanes)


@uncounted
def shift_factors(exponents, own, left, right, n, factors):
    """2**-shift of every lane, where shift is what the node itself rescaled by, as two factors in range."""
    for lane in range(n):
        shift = exponents[own + lane] - exponents[left + lane] - exponents[right + lane]
        factors[lane] = math.ldexp(1.0, -(shift // 2))
        factors[n + lane] = math.ldexp(1.0, shift // 2 - shift)
