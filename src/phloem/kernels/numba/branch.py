"""From adjoints of transition matrices to derivatives of branch lengths.

reference/branch.py specifies it; only the entries of Q that are not zero are visited, and Q P = P Q.
"""

from __future__ import annotations

from phloem.kernels.numba.compile import compiled


@compiled
def branch_derivative_four(matrix, down, rate_columns, adjoint, at, shape, derivative):
    """derivative[lane] = ⟨d log L / d P, P Q⟩ for the matrix at `matrix` of down and its adjoint at `at`."""
    n = len(shape.lanes)
    for lane in range(n):
        total = 0.0
        for j in range(4):
            for i in range(4):
                slope = 0.0
                for e in range(rate_columns.first[j], rate_columns.first[j + 1]):
                    line = matrix + (4 * rate_columns.states[e] + i) * n + lane
                    slope += rate_columns.values[e] * down[line]
                total += slope * adjoint[at + (4 * j + i) * n + lane]
        derivative[lane] = total


@compiled
def branch_derivative_padded(matrix, down, rate_columns, adjoint, at, shape, derivative, slope, product):
    """The same for padded states. slope, product: scratch, a row each."""
    padded = shape.padded
    product[:padded] = 0
    for j in range(shape.states):
        slope[:padded] = 0
        for e in range(rate_columns.first[j], rate_columns.first[j + 1]):
            rate, line = rate_columns.values[e], matrix + rate_columns.states[e] * padded
            for i in range(padded):
                slope[i] += rate * down[line + i]
        for i in range(padded):
            product[i] += slope[i] * adjoint[at + j * padded + i]
    total = 0.0
    for i in range(padded):
        total += product[i]
    derivative[0] = total
