"""Transition matrices P = R exp(Λ r t) L of one branch, in the layouts of records.py."""

from __future__ import annotations

import numpy as np

from phloem.kernels.numba.compile import compiled
from phloem.kernels.numba.matrix_product import product


@compiled
def transition_four(x, nodes, matrices, model, shape):
    """Fill P[c, i, j] of the branch above x for S = 4, lanes of categories innermost; spare lanes get
    zeros."""
    lanes = len(shape.lanes)
    start = nodes.matrix_at[x] * matrices.size
    growth = np.empty(4)
    for c in range(shape.blocks * lanes):
        at = start + (c // lanes) * 16 * lanes + c % lanes
        for k in range(4):
            growth[k] = (
                np.exp(model.values[k] * model.rates[c] * matrices.lengths[x])
                if c < shape.categories
                else 0.0
            )
        for i in range(4):
            for j in range(4):
                total = 0.0
                for k in range(4):
                    total += model.right[i, k] * growth[k] * model.left[k, j]
                matrices.down[at + (4 * j + i) * lanes] = max(total, 0.0)


@compiled
def transition_padded(x, nodes, matrices, model, shape):
    """Fill P[c] of the branch above x: `down` has the child's state first, and `up`, if wanted and x is no
    tip, the parent's. Padding of states is zero.

    model.left: (S, rows) and model.right: (S, padded), that is Rᵀ, both padded with zeros.
    """
    states, padded = shape.states, shape.padded
    rows = model.left.shape[1]
    scaled, p = np.empty((states, rows)), np.empty(rows * padded)
    right = model.right.ravel()
    for c in range(shape.categories):
        for k in range(states):
            growth = np.exp(model.values[k] * model.rates[c] * matrices.lengths[x])
            for j in range(rows):
                scaled[k, j] = model.left[k, j] * growth
        product(scaled.ravel(), 0, 1, rows, right, 0, padded, p, 0, padded, states, padded, states, False)
        at = nodes.matrix_at[x] * matrices.size + c * shape.matrix
        for entry in range(states * padded):
            matrices.down[at + entry] = max(p[entry], 0.0)
        if matrices.want_up and nodes.left[x] >= 0:
            transpose(matrices.down, at, matrices.up, states, padded)


@compiled
def transpose(down, at, up, states, padded):
    """up[i, j] = down[j, i] for one matrix at `at`, with zero padding."""
    for i in range(states):
        for j in range(states):
            up[at + i * padded + j] = down[at + j * padded + i]
        for j in range(states, padded):
            up[at + i * padded + j] = 0.0
