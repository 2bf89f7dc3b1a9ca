"""The way down the tree for four states, categories in the lanes (reference/preorder.py is the
specification).

Where the reference scatters a parent's columns over the child's classes, every class here collects its
columns, in the same order: no two threads write one row, u stays in registers, and the sum does not depend
on the thread count.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.kernels.numba.compile import compiled
from phloem.kernels.numba.four_states import (
    add_four,
    add_product_four,
    add_scaled_four,
    load_four,
    multiply_four,
    scale_four,
    store_four,
    transposed_product_four,
)
from phloem.kernels.numba.lanes import load, zeros
from phloem.kernels.numba.siblings import beside


@compiled(forceinline=True)
def collect_four(first, last, above, order, sibling_row, sibling, q, values, width, offset, lanes):
    """u = Σ of q_parent ∘ m_sibling over the parent's columns in one class."""
    zero = zeros(values, lanes)
    u = (zero, zero, zero, zero)
    for j in range(first, last):
        f = (above + order[j]) * width + offset
        g = (sibling_row + sibling[j]) * width + offset
        u = add_product_four(u, load_four(q, f, lanes), load_four(values, g, lanes))
    return u


@compiled
def tip_down_four(x, nodes, columns, messages, sets, shape, q, adjoint, adjoint_at):
    """d log L / d P of a tip's branch, laid out as P, into adjoint[adjoint_at:]."""
    lanes, n = shape.lanes, len(shape.lanes)
    order, sibling, parent_row, above, sibling_row = beside(x, nodes, columns, messages)
    row = columns.start[nodes.columns_at[x]]
    zero = zeros(messages.values, lanes)
    for block in range(shape.blocks):
        a = adjoint_at + block * 16 * n
        for state in range(4):
            store_four(adjoint, a + state * 4 * n, (zero, zero, zero, zero), lanes)
        for k in range(nodes.size[x]):
            first, last = parent_row + columns.first[row + k], parent_row + columns.first[row + k + 1]
            u = collect_four(
                first,
                last,
                above,
                order,
                sibling_row,
                sibling,
                q,
                messages.values,
                shape.width,
                block * 4 * n,
                lanes,
            )
            code = columns.left[row + k]
            for s in range(sets.first[code], sets.first[code + 1]):
                at = a + sets.states[s] * 4 * n
                store_four(adjoint, at, add_four(load_four(adjoint, at, lanes), u), lanes)


@compiled
def node_down_four(x, begin, end, nodes, columns, messages, matrices, shape, q, adjoint, adjoint_at):
    """u, and q = Pᵀ u, of the classes begin:end of an internal node, and their share of d log L / d P.

    q: as messages.values; the parent's rows are read, x's written. adjoint[adjoint_at:]: out, laid out as P.
    """
    lanes, values, width = shape.lanes, messages.values, shape.width
    n = len(lanes)
    order, sibling, parent_row, above, sibling_row = beside(x, nodes, columns, messages)
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    rescaled = messages.rescaled[nodes.messages_at[x]] != 0
    factors = np.empty(2 * n, values.dtype)
    for block in range(shape.blocks):
        offset = block * 4 * n
        matrix = nodes.matrix_at[x] * matrices.size + 4 * offset
        zero = zeros(values, lanes)
        a0 = a1 = a2 = a3 = (zero, zero, zero, zero)
        for k in range(begin, end):
            first, last = parent_row + columns.first[row + k], parent_row + columns.first[row + k + 1]
            u = collect_four(first, last, above, order, sibling_row, sibling, q, values, width, offset, lanes)
            left_at, right_at = left_row + columns.left[row + k], right_row + columns.right[row + k]
            p = multiply_four(
                load_four(values, left_at * width + offset, lanes),
                load_four(values, right_at * width + offset, lanes),
            )
            y = transposed_product_four(matrices.down, matrix, u, lanes)
            if rescaled:
                e = messages.exponents
                own = (out + k) * shape.exponents + block * n
                a, b = left_at * shape.exponents + block * n, right_at * shape.exponents + block * n
                for lane in range(n):
                    shift = e[own + lane] - e[a + lane] - e[b + lane]
                    factors[lane] = math.ldexp(1.0, -(shift // 2))
                    factors[n + lane] = math.ldexp(1.0, shift // 2 - shift)
                f, g = load(factors, 0, lanes), load(factors, n, lanes)
                p, y = scale_four(scale_four(p, f), g), scale_four(scale_four(y, f), g)
            store_four(q, (out + k) * width + offset, y, lanes)
            a0, a1 = add_scaled_four(a0, u, p[0]), add_scaled_four(a1, u, p[1])
            a2, a3 = add_scaled_four(a2, u, p[2]), add_scaled_four(a3, u, p[3])
        store_four(adjoint, adjoint_at + 4 * offset, a0, lanes)
        store_four(adjoint, adjoint_at + 4 * offset + 4 * n, a1, lanes)
        store_four(adjoint, adjoint_at + 4 * offset + 8 * n, a2, lanes)
        store_four(adjoint, adjoint_at + 4 * offset + 12 * n, a3, lanes)
