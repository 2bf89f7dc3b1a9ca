"""What a branch between known sequences says: its matrices, its counts, its log-likelihood and derivatives.

The log-likelihood of a branch is Σ n_xm log Σ_{y in m} P_xy(t), over states x above and masks m below, which are
of one state but at tips that leave several possible; of the root, Σ n_x log π_x.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.inference.time.ancestors.sequences import MISSING, SITES

_FOUR, _FIFTEEN = np.uint64(4), np.uint64(MISSING)


@uncounted
def state_of(mask):
    """The first state of a mask."""
    x = 0
    while (mask >> x) & 1 == 0:
        x += 1
    return x


@uncounted
def matrix(model, rate, length, out):
    """P(length · rate) (4, 4) of a reversible process, never below 0."""
    for i in range(4):
        for j in range(4):
            out[i, j] = 0.0
    for k in range(4):
        e = math.expm1(model.values[0, k] * length * rate)
        for i in range(4):
            by = model.right[0, i, k] * e
            for j in range(4):
                out[i, j] += by * model.left[0, k, j]
    for i in range(4):
        for j in range(4):
            out[i, j] = max(out[i, j], 0.0)
        stays = 1.0
        for j in range(4):
            if j != i:
                stays -= out[i, j]
        out[i, i] = max(stays, 0.0)


@uncounted
def sites_of(memory, x):
    """shares of an ancestor from its sequence."""
    shares, n_sites = memory.shares[x], memory.n_sites
    shares[:] = 0
    for w in range(memory.words.shape[1]):
        word = memory.words[x, w]
        for s in range(w * SITES, min((w + 1) * SITES, n_sites)):
            shares[memory.category[s], state_of(np.int64(word & _FIFTEEN))] += 1
            word >>= _FOUR


@uncounted
def sites_beside(memory, x, known):
    """sites_of, from an ancestor whose shares are known."""
    shares = memory.shares[x]
    for c in range(shares.shape[0]):
        for i in range(4):
            shares[c, i] = memory.shares[known, c, i]
    for w in range(memory.words.shape[1]):
        a, b, s = memory.words[known, w], memory.words[x, w], w * SITES
        differs = a ^ b
        while differs != 0:
            if differs & _FIFTEEN != 0:
                shares[memory.category[s], state_of(np.int64(a & _FIFTEEN))] -= 1
                shares[memory.category[s], state_of(np.int64(b & _FIFTEEN))] += 1
            differs >>= _FOUR
            a >>= _FOUR
            b >>= _FOUR
            s += 1


@uncounted
def count(memory, above, x):
    """counts of the branch between an ancestor and x, from their sequences and the ancestor's shares."""
    counts, one, other = memory.counts[x], memory.words[above], memory.words[x]
    counts[:] = 0
    for w in range(one.shape[0]):
        differs = one[w] ^ other[w]
        s = w * SITES
        a, b = one[w], other[w]
        while differs != 0:
            if differs & _FIFTEEN != 0:
                counts[memory.category[s], state_of(np.int64(a & _FIFTEEN)), np.int64(b & _FIFTEEN)] += 1
            differs >>= _FOUR
            a >>= _FOUR
            b >>= _FOUR
            s += 1
    for c in range(counts.shape[0]):
        for i in range(4):
            left = memory.shares[above, c, i]
            for m in range(16):
                left -= counts[c, i, m]
            counts[c, i, 1 << i] = left


@uncounted
def log_of_counts(counts, p):
    """Σ n log p of a branch's counts (4, 16) of one category, p: (4, 4)."""
    total = 0.0
    for i in range(4):
        for m in range(1, MISSING):
            n = counts[i, m]
            if n != 0:
                chance = 0.0
                for j in range(4):
                    chance += p[i, j] if (m >> j) & 1 else 0.0
                total += n * math.log(chance) if chance > 0.0 else -math.inf
    return total


@uncounted
def log_of_branch(memory, model, x, length):
    """Log-likelihood of the branch above x at a length."""
    total, p = 0.0, memory.p[0, x]
    for c in range(memory.shares.shape[1]):
        matrix(model, model.rates[c], length, p[c])
        total += log_of_counts(memory.counts[x, c], p[c])
    return total


@uncounted
def log_of_root(memory, model, root):
    """Σ n_x log π_x, and what categories of rates weigh."""
    total = 0.0
    for c in range(memory.shares.shape[1]):
        for i in range(4):
            n = memory.shares[root, c, i]
            if n != 0:
                total += n * math.log(model.root_frequencies[0, i] * model.weights[c])
    return total


@uncounted
def slope_of_branch(memory, model, x, length, by_matrix):
    """d/d length of log_of_branch, and d/dP into by_matrix (C, 4, 4)."""
    slope, p = 0.0, memory.p[0, x]
    for c in range(memory.shares.shape[1]):
        matrix(model, model.rates[c], length, p[c])
        counts, by = memory.counts[x, c], by_matrix[c]
        by[:] = 0.0
        for i in range(4):
            for m in range(1, MISSING):
                n = counts[i, m]
                if n != 0:
                    chance = 0.0
                    for j in range(4):
                        chance += p[c, i, j] if (m >> j) & 1 else 0.0
                    for j in range(4):
                        by[i, j] += n / chance if (m >> j) & 1 else 0.0
        for k in range(4):
            rate = model.values[0, k] * model.rates[c]
            total = 0.0
            for i in range(4):
                for j in range(4):
                    total += model.right[0, i, k] * by[i, j] * model.left[0, k, j]
            slope += total * rate * math.exp(rate * length)
    return slope


@uncounted
def add_by_eigenbasis(model, rate, length, by, out):
    """Add to out (4, 4) what d/dP (4, 4) of a branch says of Q in the eigenbasis: (Vᵀ G V⁻ᵀ) ∘ F, F_kl =
    (exp λ_k t - exp λ_l t) / (λ_k - λ_l)."""
    t = length * rate
    for k in range(4):
        for l in range(4):
            total = 0.0
            for i in range(4):
                for j in range(4):
                    total += model.right[0, i, k] * by[i, j] * model.left[0, l, j]
            a, b = model.values[0, k] * t, model.values[0, l] * t
            d = a - b
            share = t * math.exp(b)
            share *= math.expm1(d) / d if abs(d) > 1e-10 else 1.0 + 0.5 * d
            out[k, l] += total * share
