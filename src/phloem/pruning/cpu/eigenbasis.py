"""From adjoints of transition matrices to that of Q, branch by branch, in the eigenbasis of Q.

With P = R exp(Λ t) L and A = d log L / d P of one branch and category, t its rate times its length,
    d log L / d Q = Lᵀ [Σ (Rᵀ A Lᵀ) ∘ D(t)] Rᵀ,   D_kl = (exp(λ_k t) - exp(λ_l t)) / (λ_k - λ_l)
(t exp(λ_k t) on ties), the sum over branches and categories (model/transition.py specifies it, with sources).
Its diagonal holds the branch derivative too: ⟨A, Q P⟩ = Σ_k (Rᵀ A Lᵀ)_kk λ_k exp(λ_k t).
With h the larger eigenvalue and l the smaller, D = exp(h t) expm1((l - h) t) / (l - h): nothing cancels and
nothing overflows. Every eigensystem must be real. Names of arrays: records.EigenScratch.

A = Σ p uᵀ over a node's columns wants p, which the way up leaves behind nowhere. But m = P p is there: with
M = Σ m uᵀ, (Rᵀ A Lᵀ)_kl = (Rᵀ M Lᵀ)_kl exp(-λ_l t). That loses as many digits as exp(|λ| t) has, so it is
done on branches that are short enough (needs_partials).
"""

from __future__ import annotations

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.lanes import load, multiply, multiply_add, store
from phloem.pruning.cpu.matrix_product import product
from phloem.pruning.cpu.records import Operand, by_layout
from phloem.pruning.cpu.transition import exponentials_less_one

# Q itself, in full and by columns (records.RateColumns): for branch derivatives without adjoints.


@uncounted
def rate_columns_four(model, shape, scratch, room):
    """Q = R Λ L of every process, four states, into room (DownScratch)."""
    for m in range(len(model.values)):
        values, right, left = model.values[m], model.right[m], model.left[m]
        for j in range(5):
            room.rate_first[m, j] = 16 * m + 4 * j
        for j in range(4):
            for i in range(4):
                total = 0.0
                for k in range(4):
                    total += right[i, k] * values[k] * left[k, j]
                room.rate_states[16 * m + 4 * j + i], room.rate_values[16 * m + 4 * j + i] = i, total


@uncounted
def rate_columns_padded(model, shape, scratch, room):
    """The same for any number of states."""
    states, padded = shape.states, shape.padded
    for m in range(len(model.values)):
        values, left, right = model.values[m], model.left[m], model.right[m].reshape(-1)
        rows, begin = left.shape[1], m * states * states
        for k in range(states):
            for j in range(rows):
                scratch.scaled[k * rows + j] = values[k] * left[k, j]
        a, b = Operand(scratch.scaled, 0, 1, rows), Operand(right, 0, padded, 1)
        product(a, b, Operand(scratch.matrix, 0, padded, 1), states, padded, states, False)
        for j in range(states + 1):
            room.rate_first[m, j] = begin + j * states
        for j in range(states):
            for i in range(states):
                e = begin + j * states + i
                room.rate_states[e], room.rate_values[e] = i, scratch.matrix[j * padded + i]


MOST_DECAY = 4.0
"""|λ| t up to which M serves for A: two of sixteen digits are lost at most."""


@uncounted
def needs_partials(x, block, lengths, model, shape):
    """Whether the adjoint of the branch above x wants p itself in some category of a block."""
    worst = 0.0
    for c in range(block * shape.exponents, min((block + 1) * shape.exponents, shape.categories)):
        t, values = model.rates[c] * lengths[model.length_class[c], x], model.values[model.process[c]]
        for k in range(shape.states):
            worst = max(worst, -values[k] * t)
    return worst > MOST_DECAY


# Four states, the categories of a block in lanes.


@uncounted
def enter_block_four(block, model, shape, room):
    """R and L of the processes of a block's categories into room.right and room.left (row, column, lane); the
    sum over branches, room.basis, starts at zero."""
    n = len(shape.lanes)
    for lane in range(n):
        c = block * n + lane
        m = model.process[c] if c < shape.categories else 0
        for i in range(4):
            for j in range(4):
                at = (4 * i + j) * n + lane
                room.right[at], room.left[at], room.basis[at] = model.right[m, i, j], model.left[m, i, j], 0.0


@uncounted
def project_four(x, block, lengths, model, shape, room, from_messages):
    """The adjoint (child, parent, lane) of the branch above x in room.adjoint, or, where from_messages, M in
    its place, becomes the branch's summand; its ⟨A, Q P⟩ of every lane goes into room.share."""
    lanes, n = shape.lanes, len(shape.lanes)
    a, right, left, half, pairs = room.adjoint, room.right, room.left, room.half, room.pairs
    for k in range(4):
        for j in range(4):
            total = multiply(load(right, k * n, lanes), load(a, 4 * j * n, lanes))
            for i in range(1, 4):
                total = multiply_add(
                    load(right, (4 * i + k) * n, lanes), load(a, (4 * j + i) * n, lanes), total
                )
            store(half, (4 * k + j) * n, total)
    for k in range(4):
        for l in range(4):
            total = multiply(load(half, 4 * k * n, lanes), load(left, 4 * l * n, lanes))
            for j in range(1, 4):
                total = multiply_add(
                    load(half, (4 * k + j) * n, lanes), load(left, (4 * l + j) * n, lanes), total
                )
            store(a, (4 * k + l) * n, total)
    for lane in range(n):
        c = block * n + lane
        m, t = 0, 0.0
        if c < shape.categories:
            m, t = model.process[c], model.rates[c] * lengths[model.length_class[c], x]
        entry = 4
        for k in range(4):
            pairs[k * n + lane] = model.values[m, k] * t
            for l in range(k):
                pairs[entry * n + lane] = -abs(model.values[m, k] - model.values[m, l]) * t
                entry += 1
    exponentials_less_one(pairs, 10 * n)
    for lane in range(n):
        c = block * n + lane
        if c >= shape.categories:
            continue
        values, entry, share = model.values[model.process[c]], 4, 0.0
        t = model.rates[c] * lengths[model.length_class[c], x]
        for l in range(4 if from_messages else 0):
            back = 1.0 / (1.0 + pairs[l * n + lane])
            for k in range(4):
                a[(4 * k + l) * n + lane] *= back
        for k in range(4):
            growth = 1.0 + pairs[k * n + lane]
            own = a[5 * k * n + lane] * growth
            a[5 * k * n + lane] = own * t
            share += own * values[k]
            for l in range(k):
                high = growth if values[k] > values[l] else 1.0 + pairs[l * n + lane]
                apart = abs(values[k] - values[l])
                slope = high * pairs[entry * n + lane] / -apart if apart > 0.0 else high * t
                a[(4 * k + l) * n + lane] *= slope
                a[(4 * l + k) * n + lane] *= slope
                entry += 1
        room.share[lane] = share


@uncounted
def leave_block_four(block, model, shape, room, total):
    """Add a block's room.basis to its processes' sums. total: (M, 16) (row, column)."""
    n = len(shape.lanes)
    for lane in range(n):
        c = block * n + lane
        if c < shape.categories:
            for entry in range(16):
                total[model.process[c], entry] += room.basis[entry * n + lane]


@uncounted
def leave_eigenbasis_four(model, shape, room, total):
    """Every process' sum becomes Lᵀ · sum · Rᵀ."""
    for m in range(len(model.values)):
        right, left, half = model.right[m], model.left[m], room.half
        for k in range(4):
            for j in range(4):
                half[4 * k + j] = 0.0
                for l in range(4):
                    half[4 * k + j] += total[m, 4 * k + l] * right[j, l]
        for i in range(4):
            for j in range(4):
                total[m, 4 * i + j] = 0.0
                for k in range(4):
                    total[m, 4 * i + j] += left[k, i] * half[4 * k + j]


# Any number of states, one category after the other. Sums are kept transposed, (l, k).


@uncounted
def enter_block_padded(c, model, shape, room):
    """R (rows i, padded) and L (rows l, padded) of a category's process into room.right and room.left; the
    sum over branches, room.basis, starts at zero.

    The spare rows that products read are zeros: denormal numbers there would cost forty times the product.
    """
    states, padded, m = shape.states, shape.padded, model.process[c]
    right, left = model.right[m], model.left[m]
    for i in range(states):
        for k in range(padded):
            inside = k < states
            room.right[i * padded + k] = right[k, i] if inside else 0.0
            room.left[i * padded + k] = left[i, k] if inside else 0.0
    for entry in range(states * padded, shape.matrix):
        room.left[entry] = 0.0
    for entry in range(shape.matrix):
        room.basis[entry] = 0.0


@uncounted
def project_padded(x, c, lengths, model, shape, room, from_messages):
    """The adjoint (child, padded parent) of the branch above x in room.adjoint, or, where from_messages, M in
    its place, becomes the branch's summand; its ⟨A, Q P⟩ goes into room.share."""
    m, t = model.process[c], model.rates[c] * lengths[model.length_class[c], x]
    states, padded, values = shape.states, shape.padded, model.values[m]
    g, growth, pairs, half = room.adjoint, room.growth, room.pairs, Operand(room.half, 0, padded, 1)
    left, adjoint = Operand(room.left, 0, padded, 1), Operand(room.adjoint, 0, padded, 1)
    product(left, adjoint, half, states, padded, states, False)
    product(half, Operand(room.right, 0, padded, 1), adjoint, states, padded, states, False)
    for k in range(states):
        growth[k] = values[k] * t
    exponentials_less_one(growth, states)
    for l in range(states if from_messages else 0):
        back = 1.0 / (1.0 + growth[l])
        for k in range(l * padded, l * padded + states):
            g[k] *= back
    share = 0.0
    for k in range(states):  # D is symmetric; whole rows are done all the same, in vectors
        row, diagonal = g[k * padded : k * padded + states], g[k * (padded + 1)]
        for l in range(states):
            pairs[l] = -abs(values[k] - values[l]) * t
        exponentials_less_one(pairs, states)
        for l in range(states):
            high, apart = 1.0 + max(growth[k], growth[l]), abs(values[k] - values[l])
            slope = high * pairs[l] / -apart if apart > 0.0 else high * t
            row[l] *= slope
        share += diagonal * (1.0 + growth[k]) * values[k]
    room.share[0] = share


@uncounted
def leave_block_padded(c, model, shape, room, total):
    """Add a category's room.basis to its process' sum. total: (M, matrix)."""
    own = total[model.process[c]]
    for i in range(len(own)):
        own[i] += room.basis[i]


@uncounted
def leave_eigenbasis_padded(model, shape, room, total):
    """Every process' sum, transposed, becomes Lᵀ · sum · Rᵀ: rows padded."""
    states, padded = shape.states, shape.padded
    for m in range(len(model.values)):
        right, left, own = model.right[m].reshape(-1), model.left[m].reshape(-1), total[m]
        rows, half = model.left.shape[2], Operand(room.half, 0, padded, 1)
        turned, across = Operand(own, 0, 1, padded), Operand(right, 0, padded, 1)
        product(turned, across, half, states, padded, states, False)
        product(Operand(left, 0, 1, rows), half, Operand(own, 0, padded, 1), states, padded, states, False)


# Whatever the number of states: a block is entered, the adjoints of its branches are projected and added, and
# it is left; then the sums leave the eigenbasis.

rate_columns_of = by_layout(rate_columns_four, rate_columns_padded)
enter_block = by_layout(enter_block_four, enter_block_padded)
project = by_layout(project_four, project_padded)
leave_block = by_layout(leave_block_four, leave_block_padded)
leave_eigenbasis = by_layout(leave_eigenbasis_four, leave_eigenbasis_padded)


@uncounted
def add_projected(part, at, shape, room):
    """room.basis += part[at:], what project has left of a branch."""
    for i in range(shape.matrix):
        room.basis[i] += part[at + i]


@uncounted
def project_node(tasks, task, adjoint, lengths, model, shape, room, from_messages):
    """A node's adjoint is projected, in place of what the first of its tasks in a block has left in adjoint
    (tasks · matrix); the others' are added to it in their order. task: any of them. Returns the first."""
    x, block, first, size = tasks[task, 0], tasks[task, 3], task, shape.matrix
    while first > 0 and tasks[first - 1, 0] == x and tasks[first - 1, 3] == block:
        first -= 1
    k = first
    while k < len(tasks) and tasks[k, 0] == x and tasks[k, 3] == block:
        own = adjoint[k * size : (k + 1) * size]
        for i in range(size):
            room.adjoint[i] = room.adjoint[i] + own[i] if k > first else own[i]
        k += 1
    project(x, block, lengths, model, shape, room, from_messages)
    own = adjoint[first * size : (first + 1) * size]
    for i in range(size):
        own[i] = room.adjoint[i]
    return first


@uncounted
def sum_projected(tasks, projected, root, model, shape, room, total):
    """d log L / d Q of every process into total (M, 16), or (M, matrix) with padded rows, zeros before.

    tasks: of the way down; projected: what project_node has left of all but the root, (tasks · matrix)."""
    last = -1
    for task in range(len(tasks)):
        x, block = tasks[task, 0], tasks[task, 3]
        if block != last:
            if last >= 0:
                leave_block(last, model, shape, room, total)
            enter_block(block, model, shape, room)
            last = block
        if x != root and tasks[task, 1] == 0:
            add_projected(projected, task * shape.matrix, shape, room)
    leave_block(last, model, shape, room, total)
    leave_eigenbasis(model, shape, room, total)
