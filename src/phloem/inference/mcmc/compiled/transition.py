"""Transition matrices of one branch, P[c] = I + right · expm1(Λ r_c t) · left, in their kernel's order.

expm1, because the difference of P from I is what a short branch says: exp would lose it to rounding.
"""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.compile import compiled
from phloem.inference.mcmc.records import LANES


@compiled(fastmath={"contract"})
def set_transition_4(length, n_categories, eigenvalues, right, left, rates, matrix):
    """Four states: P[c, i, j] at 64 (c // 4) + 8 (4 (i // 2) + j) + 4 (i % 2) + c % 4, see column.py.

    Lanes beyond n_categories are set to zero: their messages stay 0.
    """
    for block in range(matrix.shape[0] // 64):
        for lane in range(LANES):
            c = block * LANES + lane
            if c >= n_categories:
                for at in range(16):
                    matrix[64 * block + 4 * at + lane] = 0.0
                continue
            t = length * rates[c]
            e0, e1 = math.expm1(eigenvalues[0] * t), math.expm1(eigenvalues[1] * t)
            e2, e3 = math.expm1(eigenvalues[2] * t), math.expm1(eigenvalues[3] * t)
            for i in range(4):
                r0, r1, r2, r3 = right[i, 0] * e0, right[i, 1] * e1, right[i, 2] * e2, right[i, 3] * e3
                first = 64 * block + 32 * (i // 2) + 4 * (i % 2) + lane
                for j in range(4):
                    p = r0 * left[0, j] + r1 * left[1, j] + r2 * left[2, j] + r3 * left[3, j]
                    matrix[first + 8 * j] = max(1.0 + p if i == j else p, 0.0)


@compiled(fastmath={"contract"})
def set_transition(length, n_categories, eigenvalues, right, left, rates, matrix):
    """Any number of states: P[c, i, j] at (c S + j) S + i."""
    s = eigenvalues.shape[0]
    for c in range(n_categories):
        out = matrix[c * s * s : (c + 1) * s * s]
        out[:] = 0.0
        for k in range(s):
            e = math.expm1(eigenvalues[k] * rates[c] * length)
            for j in range(s):
                factor = e * left[k, j]
                for i in range(s):
                    out[j * s + i] += factor * right[i, k]
        for at in range(s):
            out[at * s + at] += 1.0
        for at in range(s * s):
            out[at] = max(out[at], 0.0)
