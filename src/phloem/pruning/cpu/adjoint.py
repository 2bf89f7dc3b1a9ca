"""On the way down: what lies beside a node, and the derivatives of branch lengths from adjoints of transition
matrices (eigenbasis.py: of rate matrices)."""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.lanes import fill, load, multiply_add, sum_lanes, zeros
from phloem.pruning.cpu.records import by_layout


@uncounted(forceinline=True)
def beside(x, nodes, columns, messages):
    """(order, sibling class, first row of the parent's classes, parent's messages, sibling's messages) of
    node x, on the way down."""
    parent = nodes.parent[x]
    parent_row = columns.start[nodes.columns_at[parent]]
    above = messages.start[nodes.messages_at[parent]]
    left, right = nodes.left[parent], nodes.right[parent]
    if left == x:
        return (
            columns.left_order,
            columns.left_sibling,
            parent_row,
            above,
            messages.start[nodes.messages_at[right]],
        )
    return (
        columns.right_order,
        columns.right_sibling,
        parent_row,
        above,
        messages.start[nodes.messages_at[left]],
    )


# From adjoints of transition matrices to derivatives of branch lengths.
#
# reference/recursion.py specifies it; only the entries of Q that are not zero are visited, and Q P = P Q.
# Where nobody asks for d log L / d P = u pᵀ itself, u mᵀ does as well, without gathering p again: ⟨u pᵀ, Q
# P⟩ = ⟨u mᵀ, Q⟩.


@uncounted(forceinline=True)
def process_of(rate_columns, c):
    """The process of category c; of a spare lane, that of the first."""
    return rate_columns.process[c] if c < len(rate_columns.process) else 0


@uncounted
def branch_derivative_four(matrix, block, down, rate_columns, adjoint, at, shape, derivative):
    """derivative[lane] = ⟨d log L / d P, P Q⟩ for the matrix at `matrix` of down and its adjoint at `at`."""
    n = len(shape.lanes)
    for lane in range(n):
        total, first = 0.0, rate_columns.first[process_of(rate_columns, block * n + lane)]
        for j in range(4):
            for i in range(4):
                slope = 0.0
                for e in range(first[j], first[j + 1]):
                    line = matrix + (4 * rate_columns.states[e] + i) * n + lane
                    slope += rate_columns.values[e] * down[line]
                total += slope * adjoint[at + (4 * j + i) * n + lane]
        derivative[lane] = total


@uncounted
def branch_derivative_padded(matrix, c, down, rate_columns, adjoint, at, shape, derivative):
    """The same for padded states."""
    lanes, padded, first = shape.lanes, shape.padded, rate_columns.first[process_of(rate_columns, c)]
    total = 0.0
    for i in range(0, padded, len(lanes)):
        share = zeros(down, lanes)
        for j in range(shape.states):
            slope = zeros(down, lanes)
            for e in range(first[j], first[j + 1]):
                rate = fill(down, rate_columns.values[e], lanes)
                slope = multiply_add(
                    rate, load(down, matrix + rate_columns.states[e] * padded + i, lanes), slope
                )
            share = multiply_add(slope, load(adjoint, at + j * padded + i, lanes), share)
        total += sum_lanes(share)
    derivative[0] = total


@uncounted
def message_derivative_padded(c, rate_columns, outer, at, shape, derivative):
    """derivative = Σ_ij Q[i, j] outer[j, i] where outer[j, i] = Σ over columns of m_j u_i."""
    total, first = 0.0, rate_columns.first[process_of(rate_columns, c)]
    for j in range(shape.states):
        for e in range(first[j], first[j + 1]):
            total += rate_columns.values[e] * outer[at + j * shape.padded + rate_columns.states[e]]
    derivative[0] = total


@uncounted
def message_derivative_four(block, rate_columns, outer, at, shape, derivative):
    """The same for every lane."""
    n = len(shape.lanes)
    for lane in range(n):
        total, first = 0.0, rate_columns.first[process_of(rate_columns, block * n + lane)]
        for j in range(4):
            for e in range(first[j], first[j + 1]):
                total += rate_columns.values[e] * outer[at + (4 * j + rate_columns.states[e]) * n + lane]
        derivative[lane] = total


branch_derivative = by_layout(branch_derivative_four, branch_derivative_padded)
message_derivative = by_layout(message_derivative_four, message_derivative_padded)


@uncounted
def sum_shares(tasks, share, model, total, branches):
    """Add every task's ⟨d log L / d P, Q P⟩ (tasks, lanes), in order, to total (N, C) of its node and block,
    and rate times that to the derivatives of the branch lengths, branches (K, N)."""
    lanes, n_categories = share.shape[1], total.shape[1]
    for task in range(len(tasks)):
        x, block = tasks[task, 0], tasks[task, 3]
        for lane in range(lanes):
            c = block * lanes + lane
            if c < n_categories:
                total[x, c] += share[task, lane]
    for x in range(len(total)):
        for c in range(n_categories):
            branches[model.length_class[c], x] += model.rates[c] * total[x, c]
