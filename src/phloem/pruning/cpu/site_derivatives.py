"""Derivatives of every root column's likelihood in every branch length."""

from __future__ import annotations

import math
from typing import NamedTuple

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
from phloem.pruning.cpu.records import Operand, Shape, Unsummed, by_layout
from phloem.pruning.cpu.root import root_down
from phloem.pruning.cpu.schedule import next_task

# What the derivatives by site share, whatever the number of states: classes, and where results go.


class SiteRoom(NamedTuple):
    """Of one thread. q: (T-1, batch) rows laid out as messages; at: (N · batch) classes; slope, curve:
    (N · batch); u, m, change: a batch of rows, for padded states."""

    q: np.ndarray
    at: np.ndarray
    slope: np.ndarray
    curve: np.ndarray
    u: np.ndarray
    m: np.ndarray
    change: np.ndarray


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
def branch_sites_four(x, rows, block, sweep, unsummed, room):
    """Add a block of categories to slope and curve of the branch above x; if x is internal, its q as well."""
    nodes, _, messages, matrices, _, shape = sweep
    q, at, slope, curve = room.q, room.at, room.slope, room.curve
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


# Derivatives of every root column's likelihood in every branch length, any number of states
# (reference/recursion.py specifies it).
#
# A batch of root columns goes from the root to the tips, every column with pre-order vectors of its own; only
# messages are shared, by class. Memory is one batch of q for each internal node.


@compiled
def gather_sites(x, rows, c, sweep, batch, room):
    """u[j] = q_parent ∘ m_sibling and m[j] = m_x of every root column of the batch, category c."""
    nodes, messages, q, at, u, m = sweep.nodes, sweep.messages, room.q, room.at, room.u, room.m
    lanes, padded, values = sweep.shape.lanes, sweep.shape.padded, messages.values[c]
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
def shift_sites(x, rows, c, sweep, batch, room, q_row):
    """Multiply the rows of q from q_row by 2**-shift, shift what node x itself rescaled their columns by."""
    nodes, messages, at, q = sweep.nodes, sweep.messages, room.at, room.q
    e, padded, left, right = messages.exponents[c], sweep.shape.padded, nodes.left[x], nodes.right[x]
    out = messages.start[nodes.messages_at[x]]
    left_row, right_row = messages.start[nodes.messages_at[left]], messages.start[nodes.messages_at[right]]
    for j in range(rows):
        shift = e[out + at[x * batch + j]] - e[left_row + at[left * batch + j]]
        shift -= e[right_row + at[right * batch + j]]
        if shift != 0:
            for i in range((q_row + j) * padded, (q_row + j + 1) * padded):
                q[i] = math.ldexp(q[i], -shift)


@compiled
def branch_sites_padded(x, rows, c, sweep, unsummed, room):
    """Add category c to slope and curve (if it is wanted) of the branch above x; if x is internal, its q."""
    nodes, shape, batch, rate = sweep.nodes, sweep.shape, unsummed.batch, unsummed.rates[c]
    padded, states = shape.padded, shape.states
    gather_sites(x, rows, c, sweep, batch, room)
    u, m, change = (
        Operand(room.u, 0, padded, 1), Operand(room.m, 0, padded, 1), Operand(room.change, 0, padded, 1)
    )  # fmt: skip
    generator = Operand(unsummed.rate_matrix[c], 0, padded, 1)
    product(m, generator, change, rows, padded, states, False)
    add_ratios(x, rows, rate, shape, batch, room.u, room.change, room.slope)
    if not unsummed.want_sites:
        product(change, generator, m, rows, padded, states, False)
        add_ratios(x, rows, rate * rate, shape, batch, room.u, room.m, room.curve)
    if nodes.left[x] < 0:
        return
    q_row = (x - (len(nodes.left) + 1) // 2) * batch
    up = Operand(sweep.matrices.up[c], nodes.matrix_at[x] * shape.matrix, padded, 1)
    product(u, up, Operand(room.q, q_row * padded, padded, 1), rows, padded, states, False)
    if sweep.messages.rescaled[c, nodes.messages_at[x]] != 0:
        shift_sites(x, rows, c, sweep, batch, room, q_row)


branch_sites = by_layout(branch_sites_four, branch_sites_padded)


@compiled
def run_sites(tasks, counter, sweep, model, sites, unsummed):
    """Batches of the root columns begin:end of every task that this thread takes. tasks: (n, 2)."""
    shape, n_nodes, batch = sweep.shape, len(sweep.nodes.left), unsummed.batch
    root, top, dtype = n_nodes - 1, (n_nodes // 2 - 1) * batch, sweep.messages.values.dtype
    room = SiteRoom(
        np.empty((n_nodes // 2) * batch * shape.width, dtype), np.empty(n_nodes * batch, np.int64),
        np.empty(n_nodes * batch), np.empty(n_nodes * batch), np.empty(batch * shape.padded, dtype),
        np.empty(batch * shape.padded, dtype), np.empty(batch * shape.padded, dtype),
    )  # fmt: skip
    while True:
        task = next_task(counter)
        if task >= len(tasks):
            break
        for begin in range(tasks[task, 0], tasks[task, 1], batch):
            rows = min(batch, tasks[task, 1] - begin)
            classes_below(begin, rows, batch, sweep.nodes, sweep.columns, room.at)
            room.slope[:], room.curve[:] = 0.0, 0.0
            for block in range(shape.blocks):
                root_down(begin, begin + rows, block, sweep, model, sites, unsummed.ones, room.q, top)
                for x in range(root - 1, -1, -1):
                    branch_sites(x, rows, block, sweep, unsummed, room)
            keep_sites(task, begin, rows, room.slope, room.curve, unsummed)


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


def unsummed(model: SiteModel, of_rates, shape: Shape, precision: str, columns, counts: tuple[int, int],
             batch: int, want_sites: bool) -> Unsummed:  # fmt: skip
    """The kernels' record; of_rates: (C,) rates of the categories whose lengths are meant, else 0; columns:
    weights (K,) and hidden (K,), the share of the visible probability that an ascertained column lacks,
    L_k / (1 - H), else 0; counts: of tasks and of nodes. Outputs that are not wanted are empty."""
    (weights, hidden), (n_tasks, n_nodes) = columns, counts
    first = np.empty((n_nodes if want_sites else 0, len(weights)))
    share = np.zeros((0 if want_sites else n_tasks, 3, n_nodes))
    rates = np.zeros(shape.blocks * shape.exponents, precision)
    rates[: shape.categories] = of_rates
    return Unsummed(
        batch, _rate_matrices(model, shape, precision), rates, np.ones(len(weights)), weights,
        hidden, first, share, want_sites,
    )  # fmt: skip


def _rate_matrices(model: SiteModel, shape: Shape, precision: str) -> np.ndarray:
    """(blocks, ·), as records.Unsummed says."""
    by_process = np.stack([p.rate_matrix for p in model.processes]).astype(precision)
    if shape.states == 4:
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
