"""From adjoints of transition matrices to derivatives of branch lengths (reference/branch.py specifies
it)."""

from __future__ import annotations

import numpy as np

from phloem.kernels.numba.compile import compiled


@compiled
def branch_derivative_four(matrix_row, matrices, rate_columns, adjoint, adjoint_at, shape, derivative):
    """derivative[c] = ⟨d log L / d P[c], P[c] Q⟩ for the matrix in region matrix_row; Q P = P Q."""
    n = len(shape.lanes)
    for c in range(shape.categories):
        offset = (c // n) * 16 * n + c % n
        m, a = matrix_row * matrices.size + offset, adjoint_at + offset
        total = 0.0
        for j in range(4):
            for i in range(4):
                slope = 0.0
                for e in range(rate_columns.first[j], rate_columns.first[j + 1]):
                    slope += rate_columns.values[e] * matrices.down[m + (4 * rate_columns.states[e] + i) * n]
                total += slope * adjoint[a + (4 * j + i) * n]
        derivative[c] = total


@compiled
def branch_derivative_padded(matrix_row, matrices, rate_columns, adjoint, adjoint_at, shape, derivative):
    """The same for padded states; only the entries of Q that are not zero are visited."""
    padded = shape.padded
    slope, product = np.empty(padded), np.empty(padded)
    for c in range(shape.categories):
        m, a = matrix_row * matrices.size + c * shape.matrix, adjoint_at + c * shape.matrix
        product[:] = 0.0
        for j in range(shape.states):
            slope[:] = 0.0
            for e in range(rate_columns.first[j], rate_columns.first[j + 1]):
                rate, line = rate_columns.values[e], m + rate_columns.states[e] * padded
                for i in range(padded):
                    slope[i] += rate * matrices.down[line + i]
            for i in range(padded):
                product[i] += slope[i] * adjoint[a + j * padded + i]
        total = 0.0
        for i in range(padded):
            total += product[i]
        derivative[c] = total
