"""Transition matrices P = I + R (exp(Λ r t) − 1) L of one branch, in the layouts of records.py.

The identity apart, as in the reference: on a short branch R exp(Λ r t) L would leave rounding errors where a
rare change has its probability, and a branch of length zero would allow every change.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled
from phloem.pruning.cpu.matrix_product import product


@compiled
def transition_four(x, block, nodes, matrices, model, shape):
    """Fill P of the branch above x for S = 4 and one block of categories; spare lanes get zeros."""
    lanes, down = len(shape.lanes), matrices.down[block]
    growth = np.empty(4)
    for lane in range(lanes):
        c = block * lanes + lane
        at = nodes.matrix_at[x] * shape.matrix + lane
        for k in range(4):
            growth[k] = 0.0
            if c < shape.categories:
                growth[k] = np.expm1(model.values[k] * model.rates[c] * matrices.lengths[x])
        for i in range(4):
            for j in range(4):
                total = 1.0 if i == j and c < shape.categories else 0.0
                for k in range(4):
                    total += model.right[i, k] * growth[k] * model.left[k, j]
                down[at + (4 * j + i) * lanes] = max(total, 0.0)


@compiled
def transition_padded(x, c, nodes, matrices, model, shape, scaled, p):
    """Fill P of the branch above x for category c: `down`, and `up` if it is wanted and x is no tip.

    model.left: (S, rows) and model.right: (S, padded), that is Rᵀ, both padded with zeros.
    scaled: scratch as large as model.left; p: scratch as large as a matrix.
    """
    states, padded, down = shape.states, shape.padded, matrices.down[c]
    rows = model.left.shape[1]
    for k in range(states):
        growth = np.expm1(model.values[k] * model.rates[c] * matrices.lengths[x])
        line, left = scaled[k * rows : (k + 1) * rows], model.left[k]
        for j in range(rows):
            line[j] = left[j] * growth
    right = model.right.ravel()
    product(scaled, 0, 1, rows, right, 0, padded, p, 0, padded, states, padded, states, False)
    at = nodes.matrix_at[x] * shape.matrix
    own = down[at : at + states * padded]
    for state in range(states):
        p[state * (padded + 1)] += 1.0
    for entry in range(states * padded):
        own[entry] = max(p[entry], 0.0)
    if matrices.want_up and nodes.left[x] >= 0:
        transpose(down, matrices.up[c], at, states, padded)


@compiled
def transpose(down, up, at, states, padded):
    """up[i, j] = down[j, i] for the matrix at `at`, with zero padding."""
    down = down[at : at + states * padded]
    for i in range(states):
        line = up[at + i * padded : at + (i + 1) * padded]
        for j in range(states):
            line[j] = down[j * padded + i]
        line[states:] = 0.0
