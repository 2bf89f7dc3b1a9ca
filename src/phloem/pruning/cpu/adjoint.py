"""From adjoints of transition matrices to derivatives of branch lengths and of rate matrices."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import compiled, uncounted
from phloem.model.record import EigenSystem, SiteModel
from phloem.pruning.cpu.lanes import fill, load, multiply_add, sum_lanes, zeros
from phloem.pruning.cpu.matrix_product import ROWS, VECTOR_BYTES, product

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


# d log L / d Q from d log L / d P, through a real eigensystem (model/transition.py specifies it).


_TIE = 0.05  # below this |z| a series is more exact than the difference of two exponentials


@compiled
def divided_difference(a, b, exp_a, exp_b, t):
    """(exp(a t) - exp(b t)) / (a - b), where exp_a = exp(a t) and exp_b = exp(b t); t exp(a t) on ties."""
    z = (a - b) * t / 2
    if abs(z) > _TIE:
        return (exp_a - exp_b) / (a - b)
    z *= z
    return t * math.exp((a + b) * t / 2) * (1 + z / 6 * (1 + z / 20 * (1 + z / 42)))


@compiled
def sum_in_eigenbasis(adjoint, times, values, right, left, total):
    """total[k, l] += Σ over branches and categories of (Rᵀ A Lᵀ)[k, l] · divided difference.

    adjoint: (B, C, S, S); times: (B, C); right: R, (S, whole sixes) flat; left: Lᵀ, (S, whole vectors) flat;
    total: (S, S).
    """
    n_branches, n_categories, states, _ = adjoint.shape
    wide, padded = len(right) // states, len(left) // states
    a, half = np.zeros(wide * states), np.empty(wide * padded)
    g, growth = np.empty(wide * padded), np.empty(states)
    for x in range(n_branches):
        for c in range(n_categories):
            t = times[x, c]
            a[: states * states] = adjoint[x, c].ravel()
            product(a, 0, states, 1, left, 0, padded, half, 0, padded, states, padded, states, False)
            product(right, 0, 1, wide, half, 0, padded, g, 0, padded, states, padded, states, False)
            for k in range(states):
                growth[k] = math.exp(values[k] * t)
            for k in range(states):
                for l in range(states):
                    slope = divided_difference(values[k], values[l], growth[k], growth[l], t)
                    total[k, l] += g[k * padded + l] * slope


def rate_matrix_adjoints(adjoint: np.ndarray, lengths: np.ndarray, model: SiteModel) -> list[np.ndarray]:
    """(S, S) of every process from adjoint (B, C, S, S) and effective lengths (B,) or (K, B); every
    eigensystem must be real."""
    times = model.by_category(lengths) * model.rates[:, None]
    return [
        _process_adjoint(adjoint[:, model.process == m], times[model.process == m].T, process.real_eigen)
        for m, process in enumerate(model.processes)
    ]


def _process_adjoint(adjoint: np.ndarray, times: np.ndarray, eigen: EigenSystem | None) -> np.ndarray:
    """times: (B, C) rate × length."""
    assert eigen is not None
    values, right, left = eigen.values, eigen.right, eigen.left
    states, lanes = len(values), VECTOR_BYTES // 8
    wide, padded = _widened(right, ROWS), _widened(left.T, lanes)
    total = np.zeros((states, states))
    adjoint, times, values = (
        np.array(array, np.float64, order="C") for array in (adjoint, times, values)
    )  # copies of one type each: Numba compiles once more for read-only arrays
    sum_in_eigenbasis(adjoint, times, values, wide, padded, total)
    return left.T @ total @ right.T


def _widened(square: np.ndarray, multiple: int) -> np.ndarray:
    """(S · W,) rows of a square matrix, zeros behind them up to a multiple (np.pad is slow)."""
    states = len(square)
    rows = np.zeros((states, states + -states % multiple))
    rows[:, :states] = square
    return rows.reshape(-1)
