"""Transition matrices P = I + R (exp(Λ r t) − 1) L of one branch, in the layouts of records.py."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.lanes import as_double
from phloem.pruning.cpu.matrix_product import product
from phloem.pruning.cpu.records import Operand, by_layout

# Logarithms and exponentials of whole arrays, in vector instructions: library functions are not vectorised
# and would take much of the time of a small problem.


_LOG_2 = 0.6931471805599453
_MANTISSA = np.int64((1 << 52) - 1)
_ONE = np.int64(1023 << 52)
_HALF_RANGE = np.int64(0x6A09E667F3BCD)  # mantissa bits of √2
_SUBNORMAL = 2.2250738585072014e-308
_PER_LOG_2 = 1.4426950408889634
_LOG_2_HIGH, _LOG_2_LOW = 0.693145751953125, 1.42860682030941723212e-6  # the first with bits to spare
_ROUND = 6755399441055744.0  # 1.5 · 2**52: what is added to it loses its fraction


@uncounted(fastmath={"contract"})
def logarithms(mantissa, power, begin, end, out):
    """out[k] = log(mantissa[k] · 2**power[k]) for k in begin:end, in vector instructions.

    mantissa = m 2**e with m in [√½, √2); log m = 2 artanh s, s = (m-1)/(m+1), |s| < 0.1716, the series cut
    after s**19 (error below 2e-17). Library logarithms are not vectorised and would take half of the time of
    a small problem. What is not a positive normal number goes to them.
    """
    bits = mantissa.view(np.int64)
    plain = True
    for k in range(begin, end):
        b = bits[k]
        upper = np.int64((b & _MANTISSA) >= _HALF_RANGE)
        m = np.int64((b & _MANTISSA) | (_ONE - (upper << 52)))
        e = float(np.int32((b >> 52) - 1023 + upper + power[k]))
        x = as_double(m)
        s = (x - 1.0) / (x + 1.0)
        z = s * s
        series = 1.0 / 17.0 + z * (1.0 / 19.0)
        series = 1.0 / 13.0 + z * (1.0 / 15.0 + z * series)
        series = 1.0 / 9.0 + z * (1.0 / 11.0 + z * series)
        series = 1.0 / 5.0 + z * (1.0 / 7.0 + z * series)
        series = 1.0 + z * (1.0 / 3.0 + z * series)
        out[k] = 2.0 * s * series + e * _LOG_2
        plain &= _SUBNORMAL <= mantissa[k] < np.inf
    if not plain:
        for k in range(begin, end):
            if not _SUBNORMAL <= mantissa[k] < np.inf:
                positive = mantissa[k] > 0 or mantissa[k] != mantissa[k]
                out[k] = math.log(mantissa[k]) + power[k] * _LOG_2 if positive else -np.inf


@uncounted(fastmath={"contract"})
def exponentials_less_one(x, n):
    """x[k] becomes exp(x[k]) - 1 for k < n, to about a place of the last; below -700 it is -1.

    exp(x) = 2**k exp(r), |r| <= log(2) / 2, where a series of 13 terms is exact to 1e-17.
    """
    for i in range(n):
        y = min(max(x[i], -700.0), 700.0)
        k = (y * _PER_LOG_2 + _ROUND) - _ROUND
        r = (y - k * _LOG_2_HIGH) - k * _LOG_2_LOW
        p = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0)
        p = 1.0 / 3628800.0 + r * (1.0 / 39916800.0 + r * p)
        p = 1.0 / 40320.0 + r * (1.0 / 362880.0 + r * p)
        p = 1.0 / 720.0 + r * (1.0 / 5040.0 + r * p)
        p = 1.0 / 24.0 + r * (1.0 / 120.0 + r * p)
        p = r + r * r * (0.5 + r * (1.0 / 6.0 + r * p))
        power = as_double((np.int64(np.int32(k)) + np.int64(1023)) << 52)
        x[i] = power * p + (power - 1.0)


@uncounted
def transition_four(x, block, nodes, matrices, model, shape, scratch):
    """Fill P of the branch above x for S = 4 and one block of categories; spare lanes get zeros."""
    lanes, down, growth = len(shape.lanes), matrices.down[block], scratch.growth
    for lane in range(lanes):
        c = block * lanes + lane
        m, t = 0, 0.0
        if c < shape.categories:
            m, t = model.process[c], model.rates[c] * matrices.lengths[model.length_class[c], x]
        for k in range(4):
            growth[4 * lane + k] = model.values[m, k] * t
    exponentials_less_one(growth, 4 * lanes)
    for lane in range(lanes):
        c = block * lanes + lane
        at = nodes.matrix_at[x] * shape.matrix + lane
        if c >= shape.categories:
            for entry in range(16):
                down[at + entry * lanes] = 0.0
            continue
        m = model.process[c]
        right, left = model.right[m], model.left[m]
        g0, g1 = growth[4 * lane], growth[4 * lane + 1]
        g2, g3 = growth[4 * lane + 2], growth[4 * lane + 3]
        for i in range(4):
            r0, r1, r2, r3 = right[i, 0] * g0, right[i, 1] * g1, right[i, 2] * g2, right[i, 3] * g3
            for j in range(4):
                total = r0 * left[0, j] + r1 * left[1, j] + (r2 * left[2, j] + r3 * left[3, j])
                down[at + (4 * j + i) * lanes] = max(total + 1.0 if i == j else total, 0.0)


@uncounted
def transition_padded(x, c, nodes, matrices, model, shape, scratch):
    """Fill P of the branch above x for category c: `down`, and `up` if it is wanted and x is no tip."""
    states, padded, down = shape.states, shape.padded, matrices.down[c]
    m, scaled, p = model.process[c], scratch.scaled, scratch.matrix
    values, all_left, right = model.values[m], model.left[m], model.right[m].reshape(-1)
    rows = all_left.shape[1]
    t = model.rates[c] * matrices.lengths[model.length_class[c], x]
    for k in range(states):
        scratch.growth[k] = values[k] * t
    exponentials_less_one(scratch.growth, states)
    for k in range(states):
        line, left, growth = scaled[k * rows : (k + 1) * rows], all_left[k], scratch.growth[k]
        for j in range(rows):
            line[j] = left[j] * growth
    growing, out = Operand(scaled, 0, 1, rows), Operand(p, 0, padded, 1)
    product(growing, Operand(right, 0, padded, 1), out, states, padded, states, False)
    at = nodes.matrix_at[x] * shape.matrix
    own = down[at : at + states * padded]
    for state in range(states):
        p[state * (padded + 1)] += 1.0
    for entry in range(states * padded):
        own[entry] = max(p[entry], 0.0)
    if matrices.want_up and nodes.left[x] >= 0:
        transpose(down, matrices.up[c], at, states, padded)


transition = by_layout(transition_four, transition_padded)


@uncounted
def transpose(down, up, at, states, padded):
    """up[i, j] = down[j, i] for the matrix at `at`, with zero padding."""
    down = down[at : at + states * padded]
    for i in range(states):
        line = up[at + i * padded : at + (i + 1) * padded]
        for j in range(states):
            line[j] = down[j * padded + i]
        line[states:] = 0.0


@uncounted(forceinline=True)
def no_time(x, matrices):
    """Whether nothing happens above x: the root, or a branch of length 0 in every length class. Then P = I,
    and the product with it is left out."""
    longest = 0.0
    for k in range(matrices.lengths.shape[0]):
        longest = max(longest, matrices.lengths[k, x])
    return longest == 0.0
