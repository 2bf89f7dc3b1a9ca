"""Transition matrices P = I + R (exp(Λ r t) − 1) L of one branch, in the layouts of records.py.

The identity apart, as in the reference: on a short branch R exp(Λ r t) L would leave rounding errors where a
rare change has its probability, and a branch of length zero would allow every change.
"""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.elementary import exponentials_less_one
from phloem.pruning.cpu.matrix_product import product


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
    product(scaled, 0, 1, rows, right, 0, padded, p, 0, padded, states, padded, states, False)
    at = nodes.matrix_at[x] * shape.matrix
    own = down[at : at + states * padded]
    for state in range(states):
        p[state * (padded + 1)] += 1.0
    for entry in range(states * padded):
        own[entry] = max(p[entry], 0.0)
    if matrices.want_up and nodes.left[x] >= 0:
        transpose(down, matrices.up[c], at, states, padded)


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
