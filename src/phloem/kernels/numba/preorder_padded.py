"""The way down the tree for any number of states (reference/preorder.py specifies it; see
preorder_four.py)."""

from __future__ import annotations

import math

from phloem.kernels.numba.compile import compiled
from phloem.kernels.numba.lanes import load, multiply, multiply_add, store
from phloem.kernels.numba.matrix_product import product
from phloem.kernels.numba.postorder_padded import BATCH, gather_product
from phloem.kernels.numba.siblings import beside


@compiled
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


@compiled
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


@compiled
def tip_down_padded(x, c, nodes, columns, messages, sets, shape, q, adjoint, adjoint_at, scratch):
    """d log L / d P of a tip's branch in category c, laid out as Matrices.down, into adjoint[adjoint_at:]."""
    padded = shape.padded
    row = columns.start[nodes.columns_at[x]]
    for entry in range(shape.matrix):
        adjoint[adjoint_at + entry] = 0
    for k in range(nodes.size[x]):
        collect(x, k, k + 1, c, nodes, columns, messages, shape, q, scratch)
        code = columns.left[row + k]
        for s in range(sets.first[code], sets.first[code + 1]):
            at = adjoint_at + sets.states[s] * padded
            for i in range(padded):
                adjoint[at + i] += scratch[i]


@compiled
def node_down_padded(
    x, begin, end, c, nodes, columns, messages, matrices, shape, q, adjoint, adjoint_at, u, p
):
    """q = Pᵀ u of the classes begin:end of an internal node, and their share of d log L / d P.

    q: as messages.values[c]; the parent's rows are read, x's written. adjoint[adjoint_at:]: out.
    u, p: scratch, BATCH rows and a little more each.
    """
    padded, states = shape.padded, shape.states
    out = messages.start[nodes.messages_at[x]]
    matrix = nodes.matrix_at[x] * shape.matrix
    rescaled = messages.rescaled[c, nodes.messages_at[x]] != 0
    for first in range(begin, end, BATCH):
        last = min(first + BATCH, end)
        collect(x, first, last, c, nodes, columns, messages, shape, q, u)
        gather_product(x, first, last, c, nodes, columns, messages, shape, p)
        at = (out + first) * padded
        product(
            u, 0, padded, 1, matrices.up[c], matrix, padded, q, at, padded,
            last - first, padded, states, False,
        )  # fmt: skip
        if rescaled:
            shift_rows(x, first, last, c, nodes, columns, messages, shape, p, 0)
            shift_rows(x, first, last, c, nodes, columns, messages, shape, q, at)
        product(
            p, 0, 1, padded, u, 0, padded, adjoint, adjoint_at, padded,
            states, padded, last - first, first > begin,
        )  # fmt: skip
