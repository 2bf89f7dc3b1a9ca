"""The way down the tree for any number of states (reference/preorder.py specifies it; see
preorder_four.py)."""

from __future__ import annotations

import math

from phloem.kernels.numba.compile import compiled
from phloem.kernels.numba.lanes import load, multiply, multiply_add, store, zeros
from phloem.kernels.numba.matrix_product import product
from phloem.kernels.numba.postorder_padded import BATCH, gather_product
from phloem.kernels.numba.siblings import beside


@compiled
def collect(x, begin, end, c, nodes, columns, messages, shape, q, scratch):
    """scratch[k] = u_x of classes begin:end, category c: Σ of q_parent ∘ m_sibling over the columns in a
    class."""
    lanes, values, padded = shape.lanes, messages.values, shape.padded
    order, sibling, parent_row, above, sibling_row = beside(x, nodes, columns, messages)
    row = columns.start[nodes.columns_at[x]]
    for k in range(begin, end):
        at = (k - begin) * padded
        first, last = parent_row + columns.first[row + k], parent_row + columns.first[row + k + 1]
        for j in range(first, last):
            f = (above + order[j]) * shape.width + c * padded
            g = (sibling_row + sibling[j]) * shape.width + c * padded
            if j == first:
                for i in range(0, padded, len(lanes)):
                    store(scratch, at + i, multiply(load(q, f + i, lanes), load(values, g + i, lanes)))
            else:
                for i in range(0, padded, len(lanes)):
                    old = load(scratch, at + i, lanes)
                    store(
                        scratch, at + i, multiply_add(load(q, f + i, lanes), load(values, g + i, lanes), old)
                    )


@compiled
def shift_rows(x, begin, end, c, nodes, columns, messages, shape, rows, start, row_width):
    """Multiply rows[start + k·row_width :] by 2**-shift, shift that by which node x itself rescaled column
    k."""
    e, width = messages.exponents, shape.exponents
    row = columns.start[nodes.columns_at[x]]
    out = messages.start[nodes.messages_at[x]]
    left_row = messages.start[nodes.messages_at[nodes.left[x]]]
    right_row = messages.start[nodes.messages_at[nodes.right[x]]]
    for k in range(begin, end):
        shift = e[(out + k) * width + c] - e[(left_row + columns.left[row + k]) * width + c]
        shift -= e[(right_row + columns.right[row + k]) * width + c]
        if shift != 0:
            at = start + (k - begin) * row_width
            for i in range(shape.padded):
                rows[at + i] = math.ldexp(rows[at + i], -shift)


@compiled
def tip_down_padded(x, nodes, columns, messages, sets, shape, q, adjoint, adjoint_at, scratch):
    """d log L / d P of a tip's branch, laid out as matrices.down, into adjoint[adjoint_at:]."""
    lanes, padded = shape.lanes, shape.padded
    row = columns.start[nodes.columns_at[x]]
    for c in range(shape.categories):
        a = adjoint_at + c * shape.matrix
        for i in range(0, shape.matrix, len(lanes)):
            store(adjoint, a + i, zeros(adjoint, lanes))
        for k in range(nodes.size[x]):
            collect(x, k, k + 1, c, nodes, columns, messages, shape, q, scratch)
            code = columns.left[row + k]
            for s in range(sets.first[code], sets.first[code + 1]):
                at = a + sets.states[s] * padded
                for i in range(padded):
                    adjoint[at + i] += scratch[i]


@compiled
def node_down_padded(x, begin, end, nodes, columns, messages, matrices, shape, q, adjoint, adjoint_at, u, p):
    """q = Pᵀ u of the classes begin:end of an internal node, and their share of d log L / d P.

    q: as messages.values; the parent's rows are read, x's written. adjoint[adjoint_at:]: out, as
    matrices.down. u, p: scratch, BATCH rows and a little more each.
    """
    padded, states = shape.padded, shape.states
    out = messages.start[nodes.messages_at[x]]
    rescaled = messages.rescaled[nodes.messages_at[x]] != 0
    for first in range(begin, end, BATCH):
        last = min(first + BATCH, end)
        for c in range(shape.categories):
            collect(x, first, last, c, nodes, columns, messages, shape, q, u)
            gather_product(x, first, last, c, nodes, columns, messages, shape, p)
            matrix = nodes.matrix_at[x] * matrices.size + c * shape.matrix
            at = (out + first) * shape.width + c * padded
            product(
                u, 0, padded, 1, matrices.up, matrix, padded, q, at, shape.width,
                last - first, padded, states, False,
            )  # fmt: skip
            if rescaled:
                shift_rows(x, first, last, c, nodes, columns, messages, shape, p, 0, padded)
                shift_rows(x, first, last, c, nodes, columns, messages, shape, q, at, shape.width)
            product(
                p, 0, 1, padded, u, 0, padded, adjoint, adjoint_at + c * shape.matrix, padded,
                states, padded, last - first, first > begin,
            )  # fmt: skip
