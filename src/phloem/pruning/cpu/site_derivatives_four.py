"""Derivatives of every root column's likelihood in every branch length, four states
(reference/site_derivatives.py specifies it).

A batch of root columns goes from the root to the tips, every column with pre-order vectors of its own; only
messages are shared, by class. Memory is one batch of q for each internal node.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled
from phloem.pruning.cpu.four_states import (
    dot_four,
    load_four,
    multiply_four,
    scale_four,
    store_four,
    transposed_product_four,
)
from phloem.pruning.cpu.lanes import load, multiply, sum_lanes
from phloem.pruning.cpu.preorder_four import shift_factors
from phloem.pruning.cpu.root import root_down
from phloem.pruning.cpu.schedule import next_task
from phloem.pruning.cpu.site_columns import classes_below, keep_sites, sibling


@compiled
def branch_sites_four(
    x, rows, block, nodes, columns, messages, matrices, shape, unsummed, q, at, slope, curve
):
    """Add a block of categories to slope and curve of the branch above x; if x is internal, its q as well.

    q: (T-1, batch) rows laid out as messages; at: (N · batch) classes; slope, curve: (N · batch).
    """
    lanes, n, batch, values = shape.lanes, len(shape.lanes), unsummed.batch, messages.values[block]
    n_tips, other, parent = (len(nodes.left) + 1) // 2, sibling(x, nodes), nodes.parent[x]
    out, beside = messages.start[nodes.messages_at[x]], messages.start[nodes.messages_at[other]]
    above, below, matrix = (parent - n_tips) * batch, (x - n_tips) * batch, nodes.matrix_at[x] * shape.matrix
    rescaled = messages.rescaled[block, nodes.messages_at[x]] != 0
    left, right = nodes.left[x], nodes.right[x]
    rates, factors = load(unsummed.rates, block * n, lanes), np.empty(2 * n, values.dtype)
    for j in range(rows):
        k = out + at[x * batch + j]
        m = load_four(values, k * 4 * n, lanes)
        u = multiply_four(
            load_four(q, (above + j) * 4 * n, lanes),
            load_four(values, (beside + at[other * batch + j]) * 4 * n, lanes),
        )
        one = transposed_product_four(unsummed.rate_matrix[block], 0, m, lanes)
        two = transposed_product_four(unsummed.rate_matrix[block], 0, one, lanes)
        change = multiply(rates, dot_four(u, one))
        slope[x * batch + j] += sum_lanes(change)
        curve[x * batch + j] += sum_lanes(multiply(multiply(rates, rates), dot_four(u, two)))
        if left < 0:
            continue
        y = transposed_product_four(matrices.down[block], matrix, u, lanes)
        if rescaled:
            a = messages.start[nodes.messages_at[left]] + at[left * batch + j]
            b = messages.start[nodes.messages_at[right]] + at[right * batch + j]
            shift_factors(messages.exponents[block], k * n, a * n, b * n, n, factors)
            y = scale_four(scale_four(y, load(factors, 0, lanes)), load(factors, n, lanes))
        store_four(q, (below + j) * 4 * n, y, lanes)


@compiled
def run_sites_four(tasks, counter, nodes, columns, messages, matrices, model, sets, sites, shape, unsummed):
    """Batches of the root columns begin:end of every task that this thread takes. tasks: (n, 2)."""
    n_nodes, batch = len(nodes.left), unsummed.batch
    root, top = n_nodes - 1, (n_nodes // 2 - 1) * batch
    q = np.empty((n_nodes // 2) * batch * shape.width, messages.values.dtype)
    at = np.empty(n_nodes * batch, np.int64)
    slope, curve = np.empty(n_nodes * batch), np.empty(n_nodes * batch)
    while True:
        task = next_task(counter)
        if task >= len(tasks):
            break
        for begin in range(tasks[task, 0], tasks[task, 1], batch):
            rows = min(batch, tasks[task, 1] - begin)
            classes_below(begin, rows, batch, nodes, columns, at)
            slope[:], curve[:] = 0.0, 0.0
            for block in range(shape.blocks):
                root_down(
                    root, begin, begin + rows, block, nodes, columns, messages, model, sites, unsummed.ones,
                    q, top, shape,
                )  # fmt: skip
                for x in range(root - 1, -1, -1):
                    branch_sites_four(
                        x, rows, block, nodes, columns, messages, matrices, shape, unsummed, q, at, slope,
                        curve,
                    )  # fmt: skip
            keep_sites(task, begin, rows, slope, curve, unsummed)
