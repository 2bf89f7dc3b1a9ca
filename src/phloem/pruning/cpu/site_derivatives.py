"""Derivatives of every root column's likelihood in every branch length."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import compiled
from phloem.model.record import SiteModel
from phloem.pruning.cpu.four_states import (
    dot_four,
    load_four,
    multiply_four,
    scale_four,
    shift_factors,
    store_four,
    transposed_product_four,
)
from phloem.pruning.cpu.lanes import load, multiply, multiply_add, store, sum_lanes, zeros
from phloem.pruning.cpu.matrix_product import ROWS, product
from phloem.pruning.cpu.records import Shape, Unsummed
from phloem.pruning.cpu.root import root_down
from phloem.pruning.cpu.schedule import next_task

# What the derivatives by site share, whatever the number of states: classes, and where results go.


@compiled
def classes_below(begin, rows, batch, nodes, columns, at):
    """at[x · batch + j] = class at node x of root column begin + j, for every node and j < rows."""
    n_nodes = len(nodes.left)
    for j in range(rows):
        at[(n_nodes - 1) * batch + j] = begin + j
    for x in range(n_nodes - 1, -1, -1):
        left, right = nodes.left[x], nodes.right[x]
        if left < 0:
            continue
        row = columns.start[nodes.columns_at[x]]
        for j in range(rows):
            k = row + at[x * batch + j]
            at[left * batch + j], at[right * batch + j] = columns.left[k], columns.right[k]


@compiled
def keep_sites(task, begin, rows, slope, curve, unsummed):
    """Put the ratios of a batch, slope and curve (N · batch), where they are wanted (records.Unsummed)."""
    batch, first, share = unsummed.batch, unsummed.first, unsummed.share
    for x in range(len(slope) // batch):
        for j in range(rows):
            k, one, two = begin + j, slope[x * batch + j], curve[x * batch + j]
            if unsummed.want_sites:
                first[x, k] = one
            else:
                share[task, 0, x] += unsummed.weights[k] * (two - one * one)
                share[task, 1, x] += unsummed.hidden[k] * one
                share[task, 2, x] += unsummed.hidden[k] * two


@compiled
def sibling(x, nodes):
    """The other child of x's parent."""
    parent = nodes.parent[x]
    return nodes.right[parent] if nodes.left[parent] == x else nodes.left[parent]


# Derivatives of every root column's likelihood in every branch length, four states
# (reference/recursion.py specifies it).
#
# A batch of root columns goes from the root to the tips, every column with pre-order vectors of its own; only
# messages are shared, by class. Memory is one batch of q for each internal node.


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


# Derivatives of every root column's likelihood in every branch length, any number of states
# (reference/recursion.py specifies it).
#
# A batch of root columns goes from the root to the tips, every column with pre-order vectors of its own; only
# messages are shared, by class. Memory is one batch of q for each internal node.


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


# What the CPU engine's derivatives by site need: batches, tasks, the rate matrix as the kernels want it.


SMALLEST_BATCH, LARGEST_BATCH = 2 * ROWS, 16 * ROWS
_BATCH_ENTRIES = 1 << 18  # of pre-order vectors of a whole tree: they stay in the second-level cache or near
MOST_TASKS = 64  # bounds the memory of their shares


def batch_size(n_tips: int, shape: Shape) -> int:
    """Root columns that are done together: memory is (T-1) · width entries for each of them."""
    batch = _BATCH_ENTRIES // ((n_tips - 1) * shape.width) // ROWS * ROWS
    return min(max(batch, SMALLEST_BATCH), LARGEST_BATCH)


def site_ranges(n_columns: int, batch: int) -> np.ndarray:
    """(n, 2) ranges of root columns, whole batches but the last; they do not depend on threads."""
    length = -(-n_columns // (MOST_TASKS * batch)) * batch
    begin = np.arange(0, n_columns, length)
    return np.stack([begin, np.minimum(begin + length, n_columns)], 1)


def unsummed(model: SiteModel, of_rates, shape: Shape, precision: str, weights, hidden, tasks, n_nodes: int,
             batch: int, want_sites: bool) -> Unsummed:  # fmt: skip
    """The kernels' record; of_rates: (C,) rates of the categories whose lengths are meant, else 0; hidden:
    (K,) share of the visible probability that an ascertained column lacks, L_k / (1 - H), else 0. Outputs
    that are not wanted are empty."""
    first = np.empty((n_nodes if want_sites else 0, len(weights)))
    share = np.zeros((0 if want_sites else len(tasks), 3, n_nodes))
    rates = np.zeros(shape.blocks * shape.exponents, precision)
    rates[: shape.categories] = of_rates
    return Unsummed(
        batch, _rate_matrices(model, shape, precision), rates, np.ones(len(weights)), weights,
        hidden, first, share, want_sites,
    )  # fmt: skip


def _rate_matrices(model: SiteModel, shape: Shape, precision: str) -> np.ndarray:
    """(blocks, ·), as records.Unsummed says."""
    by_process = np.stack([p.rate_matrix for p in model.processes]).astype(precision)
    if shape.padded == 4:
        flat = np.zeros((shape.blocks * shape.exponents, 16), precision)
        flat[: shape.categories] = by_process[model.process].reshape(-1, 16)
        q = flat.reshape(shape.blocks, shape.exponents, 16)
        return np.ascontiguousarray(q.swapaxes(1, 2)).reshape(shape.blocks, -1)
    wide = np.pad(by_process.swapaxes(1, 2), ((0, 0), (0, 0), (0, shape.padded - shape.states)))
    return np.ascontiguousarray(wide[model.process].reshape(shape.categories, -1))


def second_derivatives(share: np.ndarray, total_weight: float) -> np.ndarray:
    """(N,) from every task's sums, in their order (reference: branch_second_derivatives)."""
    seen, slope, curve = share.sum(0)
    return seen + total_weight * (curve + slope**2)
