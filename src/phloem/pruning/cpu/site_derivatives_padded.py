"""Derivatives of every root column's likelihood in every branch length, any number of states
(reference/site_derivatives.py specifies it).

A batch of root columns goes from the root to the tips, every column with pre-order vectors of its own; only
messages are shared, by class. Memory is one batch of q for each internal node.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import compiled
from phloem.pruning.cpu.lanes import load, multiply, multiply_add, store, sum_lanes, zeros
from phloem.pruning.cpu.matrix_product import product
from phloem.pruning.cpu.root import root_down
from phloem.pruning.cpu.schedule import next_task
from phloem.pruning.cpu.site_columns import classes_below, keep_sites, sibling


@compiled
def gather_sites(x, rows, c, nodes, messages, shape, unsummed, q, at, u, m):
    """u[j] = q_parent ∘ m_sibling and m[j] = m_x of every root column of the batch, category c."""
    lanes, padded, batch, values = shape.lanes, shape.padded, unsummed.batch, messages.values[c]
    other, above = sibling(x, nodes), (nodes.parent[x] - (len(nodes.left) + 1) // 2) * batch
    out, beside = messages.start[nodes.messages_at[x]], messages.start[nodes.messages_at[other]]
    for j in range(rows):
        own, f = (out + at[x * batch + j]) * padded, (above + j) * padded
        g = (beside + at[other * batch + j]) * padded
        for i in range(0, padded, len(lanes)):
            store(u, j * padded + i, multiply(load(q, f + i, lanes), load(values, g + i, lanes)))
            store(m, j * padded + i, load(values, own + i, lanes))


@compiled
def add_ratios(x, rows, rate, shape, batch, u, change, ratio):
    """ratio[x · batch + j] += rate · ⟨u[j], change[j]⟩"""
    lanes, padded = shape.lanes, shape.padded
    for j in range(rows):
        total = zeros(u, lanes)
        for i in range(j * padded, (j + 1) * padded, len(lanes)):
            total = multiply_add(load(u, i, lanes), load(change, i, lanes), total)
        ratio[x * batch + j] += rate * sum_lanes(total)


@compiled
def shift_sites(x, rows, c, nodes, messages, shape, batch, at, q, q_row):
    """Multiply the rows of q from q_row by 2**-shift, shift what node x itself rescaled their columns by."""
    e, padded, left, right = messages.exponents[c], shape.padded, nodes.left[x], nodes.right[x]
    out = messages.start[nodes.messages_at[x]]
    left_row, right_row = messages.start[nodes.messages_at[left]], messages.start[nodes.messages_at[right]]
    for j in range(rows):
        shift = e[out + at[x * batch + j]] - e[left_row + at[left * batch + j]]
        shift -= e[right_row + at[right * batch + j]]
        if shift != 0:
            for i in range((q_row + j) * padded, (q_row + j + 1) * padded):
                q[i] = math.ldexp(q[i], -shift)


@compiled
def branch_sites_padded(
    x, rows, c, nodes, messages, matrices, shape, unsummed, q, at, u, m, change, slope, curve
):
    """Add category c to slope and curve (if it is wanted) of the branch above x; if x is internal, its q.

    q: (T-1, batch) rows laid out as messages; at: (N · batch) classes; u, m, change: scratch, a batch of
    rows; slope, curve: (N · batch).
    """
    padded, states, batch, rate = shape.padded, shape.states, unsummed.batch, unsummed.rates[c]
    gather_sites(x, rows, c, nodes, messages, shape, unsummed, q, at, u, m)
    generator = unsummed.rate_matrix[c]
    product(m, 0, padded, 1, generator, 0, padded, change, 0, padded, rows, padded, states, False)
    add_ratios(x, rows, rate, shape, batch, u, change, slope)
    if not unsummed.want_sites:
        product(change, 0, padded, 1, generator, 0, padded, m, 0, padded, rows, padded, states, False)
        add_ratios(x, rows, rate * rate, shape, batch, u, m, curve)
    if nodes.left[x] < 0:
        return
    q_row, matrix = (x - (len(nodes.left) + 1) // 2) * batch, nodes.matrix_at[x] * shape.matrix
    up = matrices.up[c]
    product(u, 0, padded, 1, up, matrix, padded, q, q_row * padded, padded, rows, padded, states, False)
    if messages.rescaled[c, nodes.messages_at[x]] != 0:
        shift_sites(x, rows, c, nodes, messages, shape, batch, at, q, q_row)


@compiled
def run_sites_padded(tasks, counter, nodes, columns, messages, matrices, model, sets, sites, shape, unsummed):
    """Batches of the root columns begin:end of every task that this thread takes. tasks: (n, 2)."""
    n_nodes, batch, dtype = len(nodes.left), unsummed.batch, messages.values.dtype
    root, top, entries = n_nodes - 1, (n_nodes // 2 - 1) * batch, batch * shape.padded
    q, at = np.empty((n_nodes // 2) * entries, dtype), np.empty(n_nodes * batch, np.int64)
    u, m, change = np.empty(entries, dtype), np.empty(entries, dtype), np.empty(entries, dtype)
    slope, curve = np.empty(n_nodes * batch), np.empty(n_nodes * batch)
    while True:
        task = next_task(counter)
        if task >= len(tasks):
            break
        for begin in range(tasks[task, 0], tasks[task, 1], batch):
            rows = min(batch, tasks[task, 1] - begin)
            classes_below(begin, rows, batch, nodes, columns, at)
            slope[:], curve[:] = 0.0, 0.0
            for c in range(shape.blocks):
                root_down(
                    root, begin, begin + rows, c, nodes, columns, messages, model, sites, unsummed.ones,
                    q, top, shape,
                )  # fmt: skip
                for x in range(root - 1, -1, -1):
                    branch_sites_padded(
                        x, rows, c, nodes, messages, matrices, shape, unsummed, q, at, u, m, change, slope,
                        curve,
                    )  # fmt: skip
            keep_sites(task, begin, rows, slope, curve, unsummed)
