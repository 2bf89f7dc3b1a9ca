"""Derivatives of the log-likelihood with sequences of ancestors, of many states.

By the model: dP(t)/dQ is, in the eigenbasis, F_kl(t) = (exp λ_k t - exp λ_l t) / (λ_k - λ_l) times what the
sites of a branch say of its P. A thousand branches and categories would each need three products of
matrices; F is smooth in t, so each gives what it says to a few dozen times in between, Chebyshev's, by the
weights of the polynomial through these (Berrut and Trefethen 2004, SIAM Review 46:501), exact to rounding.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import merged, uncounted
from phloem.inference.time.ancestors.branches import quotient
from phloem.inference.time.ancestors.chain import of_root
from phloem.inference.time.ancestors.larger.branches import by_category, chance, differing, entry
from phloem.pruning.cpu.cell_records import D_RATE_MATRIX
from phloem.pruning.cpu.storage import float64_at


@merged
def slopes(memory, model, slot, tree, sides, by_length, by_rate, parameters):
    """d log-likelihood / d length of every branch, / d rate of every category (C,), and with parameters of
    the model's matrix: its share in the eigenbasis, in memory.by_eigen. sides: (N,) of the tables."""
    root, n_times = tree.parent.shape[0] - 1, 0
    by_rate[:] = 0.0
    if parameters:
        n_times = begin_times(memory, model, tree)
    for x in range(root):
        above, side = tree.parent[x], sides[x]
        n = differing(memory, x, above, memory.near.sites)
        by_length[x] = 0.0
        for c in range(memory.shares.shape[1]):
            for k in range(memory.right.shape[1]):
                by_growth = memory.grown[side, x, c, k] + 1.0
                memory.more_rows[c, k] = model.values[0, k] * by_growth
        by_category(memory, slot, memory.more_rows)
        for c in range(memory.shares.shape[1]):
            share_out(memory, tree.lengths[x] * model.rates[c], n_times)
            by_t = slope_of_states(memory, (side, x, c), n_times)
            for k in range(n):
                s = memory.near.sites[k]
                if memory.category[s] == c:
                    by_t += slope_of_site(memory, slot, (side, x, c), (above, s), n_times)
            by_length[x] += by_t * model.rates[c]
            by_rate[c] += by_t * tree.lengths[x]
    by_length[root] = 0.0
    if parameters:
        memory.by_eigen[:] = 0.0
        for m in range(n_times):
            add_by_eigenbasis(memory, model, slot, m)


@uncounted
def begin_times(memory, model, tree):
    """Into memory.times those at which F is found; how many. The more, the more substitutions the longest
    branch has."""
    longest, least = 0.0, 0.0
    for x in range(tree.lengths.shape[0] - 1):
        longest = max(longest, tree.lengths[x])
    fastest = 0.0
    for c in range(model.rates.shape[0]):
        fastest = max(fastest, model.rates[c])
    for k in range(memory.right.shape[1]):
        least = min(least, model.values[0, k])
    longest *= fastest
    n = min(memory.times.shape[0], 12 + int(math.sqrt(-30.0 * least * longest)))
    for m in range(n):
        memory.times[m] = 0.5 * longest * (1.0 + math.cos((2 * m + 1) * math.pi / (2 * n)))
    memory.by_time[:n] = 0.0
    return n


@uncounted
def share_out(memory, t, n):
    """Into memory.part how what is said of P(t) is given to n times."""
    total, part = 0.0, memory.part
    for m in range(n):
        d = t - memory.times[m]
        if d == 0.0:
            part[:n] = 0.0
            part[m] = 1.0
            return
        part[m] = math.sin((2 * m + 1) * math.pi / (2 * n)) * (1.0 - 2.0 * (m % 2)) / d
        total += part[m]
    for m in range(n):
        part[m] /= total


@uncounted
def slope_of_states(memory, at, n_times):
    """d/dt of Σ n_i log P_ii of a branch and category, at: (side, branch, category), whose dP_ii/dt are in
    memory.rows. d/dP is given to the times."""
    side, x, c = at
    n_states, shares, by, total = memory.right.shape[1], memory.shares[x, c], memory.weights, 0.0
    for i in range(n_states):
        p = memory.stay[side, x, c, i]
        by[i] = shares[i] * math.exp(-p) if shares[i] != 0.0 else 0.0
        total += memory.rows[c, i] * by[i]
    for m in range(n_times):
        for i in range(n_states):
            memory.by_time[m, i, i] += memory.part[m] * by[i]
    return total


@uncounted
def slope_of_site(memory, slot, at, where, n_times):
    """The same of a site at which the branch's ends differ, in place of what slope_of_states has of it."""
    (side, x, c), (above, s) = at, where
    n_states, by = memory.right.shape[1], memory.more_rows[c]
    i, code = np.int64(memory.codes[above, s]), np.int64(memory.codes[x, s])
    total, share = 0.0, 1.0 / chance(memory, slot, memory.grown[side, x, c], i, code)
    for j in range(n_states):
        if j == code or (code >= n_states and memory.sets[code - n_states, j] != 0):
            total += share * entry(memory.right[slot, i], by, memory.left[slot, j])
            for m in range(n_times):
                memory.by_time[m, i, j] += memory.part[m] * share
    if code < n_states:  # which was counted as one that stays
        share = math.exp(-memory.stay[side, x, c, code])
        total -= share * memory.rows[c, code]
        for m in range(n_times):
            memory.by_time[m, code, code] -= memory.part[m] * share
    return total


@uncounted
def add_by_eigenbasis(memory, model, slot, m):
    """(Vᵀ G V⁻ᵀ) ∘ F to memory.by_eigen, of what is said of P at a time, G."""
    half, whole, by, t = memory.room[0], memory.room[1], memory.by_time[m], memory.times[m]
    values, grown, n_states = model.values[0], memory.vectors[0], memory.right.shape[1]
    half[:] = 0.0
    whole[:] = 0.0
    for i in range(n_states):
        for j in range(n_states):
            if by[i, j] != 0.0:
                for l in range(half.shape[1]):
                    half[i, l] += by[i, j] * memory.left[slot, j, l]
    for k in range(n_states):
        grown[k] = math.expm1(values[k] * t)
        for i in range(n_states):
            share = model.right[0, k, i]
            for l in range(half.shape[1]):
                whole[k, l] += share * half[i, l]
    for k in range(n_states):
        for l in range(n_states):
            memory.by_eigen[k, l] += whole[k, l] * quotient(values, grown, t, k, l)


@merged
def slopes_of_model(memory, n, model, down):
    """Derivatives by the model, where the likelihood's way down leaves its own: d/dQ_ij = Σ_kl V⁻¹_ki M_kl
    V_jl with M = memory.by_eigen, and by the root's frequencies and the weights of categories."""
    s, half = n.states, memory.room[0]
    by_q = float64_at(down[D_RATE_MATRIX], (s, n.padded))
    for k in range(s):
        for j in range(s):
            half[k, j] = 0.0
        for l in range(s):
            for j in range(s):
                half[k, j] += memory.by_eigen[k, l] * model.right[0, l, j]
    for i in range(s):
        for j in range(s):
            by_q[i, j] = 0.0
        for k in range(s):
            by = model.left[0, k, i]
            for j in range(s):
                by_q[i, j] += by * half[k, j]
    of_root(memory.shares[memory.shares.shape[0] - 1], n, model, down)
