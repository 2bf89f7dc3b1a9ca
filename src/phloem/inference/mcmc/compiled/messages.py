"""Branch messages on distinct columns: m_x = P_x (m_left[class] ∘ m_right[class])."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.column import product_times_matrix
from phloem.inference.mcmc.compiled.compile import compiled


@compiled
def message_4(x, width, out_at, left_at, right_at, left_class, right_class, representative, count, matrix):
    """Four states. x: messages of the chain; column k of the node is at out_at + k width, made from the
    columns left_class[representative[k]] and right_class[representative[k]] of its children."""
    for k in range(count):
        p = representative[k]
        l, r, o = left_at + left_class[p] * width, right_at + right_class[p] * width, out_at + k * width
        for block in range(width // 16):
            at = 16 * block
            product_times_matrix(x, o + at, x, l + at, x, r + at, matrix, 4 * at)


@compiled(fastmath={"contract"})
def message(
    x, n_states, width, out_at, left_at, right_at, left_class, right_class, representative, count, matrix
):
    """Any number of states; a column is category-major: x[c S + s]."""
    for k in range(count):
        p = representative[k]
        l, r, o = left_at + left_class[p] * width, right_at + right_class[p] * width, out_at + k * width
        for c in range(width // n_states):
            first = c * n_states
            out = x[o + first : o + first + n_states]
            out[:] = 0.0
            whole = n_states - n_states % 4
            for j in range(0, whole, 4):  # four at a time: out is loaded and stored a quarter as often
                a, b = l + first + j, r + first + j
                p0, p1, p2, p3 = x[a] * x[b], x[a + 1] * x[b + 1], x[a + 2] * x[b + 2], x[a + 3] * x[b + 3]
                rows = matrix[(first + j) * n_states : (first + j + 4) * n_states]
                row0, row1 = rows[:n_states], rows[n_states : 2 * n_states]
                row2, row3 = rows[2 * n_states : 3 * n_states], rows[3 * n_states :]
                for i in range(n_states):
                    out[i] += (row0[i] * p0 + row1[i] * p1) + (row2[i] * p2 + row3[i] * p3)
            for j in range(whole, n_states):
                pj = x[l + first + j] * x[r + first + j]
                row = matrix[(first + j) * n_states : (first + j + 1) * n_states]
                for i in range(n_states):
                    out[i] += row[i] * pj


@compiled
def tip_message(x, n_states, width, out_at, n_codes, matrix):
    """The message of a tip: one column for every character code, from the codes' own columns at the start
    of x, times the column of ones that follows them."""
    ones_at = n_codes * width
    for code in range(n_codes):
        o, l = out_at + code * width, code * width
        if n_states == 4:
            for block in range(width // 16):
                at = 16 * block
                product_times_matrix(x, o + at, x, l + at, x, ones_at + at, matrix, 4 * at)
            continue
        for c in range(width // n_states):
            first = c * n_states
            out = x[o + first : o + first + n_states]
            out[:] = 0.0
            for j in range(n_states):
                if x[l + first + j] > 0.0:
                    row = matrix[(first + j) * n_states : (first + j + 1) * n_states]
                    for i in range(n_states):
                        out[i] += row[i]


@compiled
def child_exponents(taken, child_class, representative, count, begin, exponent):
    """Add a child's powers of two to those of its parent's columns (begin: to zero; taken: empty for a
    tip)."""
    for k in range(count):
        power = 0 if begin else exponent[k]
        exponent[k] = power + taken[child_class[representative[k]]] if taken.shape[0] > 0 else power


@compiled
def rescale(x, width, out_at, count, exponent):
    """Take an exact power of two out of every column whose largest entry is below 2**-256, and add it to
    exponent.

    One power for all categories: a category can be smaller than another by far, but what it can gain on it
    higher up is bounded by exp(tree length × rate), so what underflows here never mattered.
    """
    for k in range(count):
        o = out_at + k * width
        largest = 0.0
        for i in range(width):
            largest = max(largest, x[o + i])
        if 0.0 < largest < 8.636168555094445e-78:
            power = math.frexp(largest)[1]
            factor = math.ldexp(1.0, -(power // 2))
            rest = math.ldexp(1.0, -(power - power // 2))
            for i in range(width):
                x[o + i] = x[o + i] * factor * rest
            exponent[k] += power
