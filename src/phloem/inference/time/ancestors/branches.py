"""What a branch between known sequences says: its matrices, its counts, its log-likelihood and derivatives.

The log-likelihood of a branch is Σ n_xm log Σ_{y in m} P_xy(t), over states x above and masks m below,
which are of one state but at tips that leave several possible; of the root, Σ n_x log π_x. Most of the
numbers n are 0: entries of P are found where they are asked for, as δ_xy + Σ_k V_xk (exp(λ_k t) - 1) V⁻¹_ky.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.inference.time.ancestors.sequences import MISSING, SITES

_ONE, _TWO, _THREE, _FOUR, _FIFTEEN = (np.uint64(x) for x in (1, 2, 3, 4, MISSING))
_FIRST = np.uint64(0x1111111111111111)  # the first bit of every site
_EVEN, _TOP = np.uint64(0x0101010101010101), np.uint64(56)


@uncounted
def state_of(mask):
    """The first state of a mask."""
    x = 0
    while (mask >> x) & 1 == 0:
        x += 1
    return x


@uncounted
def mask_at(words, s):
    """Of a sequence (W,) at a site."""
    return np.int64((words[s // SITES] >> np.uint64(4 * (s % SITES))) & _FIFTEEN)


@uncounted
def matrix(right, left, values, t, out):
    """P(t) (4, 4), never below 0. right, left: (4, 4) V and its inverse, values: (4,) eigenvalues."""
    for i in range(4):
        for j in range(4):
            out[i, j] = 0.0
    for k in range(4):
        e = math.expm1(values[k] * t)
        for i in range(4):
            by = right[i, k] * e
            for j in range(4):
                out[i, j] += by * left[k, j]
    for i in range(4):
        stays = 1.0
        for j in range(4):
            if j != i:
                out[i, j] = max(out[i, j], 0.0)
                stays -= out[i, j]
        out[i, i] = max(stays, 0.0)


@uncounted
def sites_of(words, category, shares):
    """shares (C, 4) of an ancestor from its sequence (W,)."""
    shares[:] = 0
    n_sites = category.shape[0]
    for w in range(words.shape[0]):
        word = words[w]
        for s in range(w * SITES, min((w + 1) * SITES, n_sites)):
            shares[category[s], state_of(np.int64(word & _FIFTEEN))] += 1
            word >>= _FOUR


@uncounted
def missing_in(word):
    """The sites of a word of which nothing is known, all four bits of each."""
    return ((word & (word >> _ONE) & (word >> _TWO) & (word >> _THREE)) & _FIRST) * _FIFTEEN


@uncounted
def whole_sites(bits):
    """All four bits of the sites some of whose bits are set."""
    return ((bits | (bits >> _ONE) | (bits >> _TWO) | (bits >> _THREE)) & _FIRST) * _FIFTEEN


@uncounted
def note_sites(bits, w, sites, n):
    """Add the sites of word w, some of whose four bits are set, to sites from number n on; how many there are
    then."""
    s = w * SITES
    while bits != 0 and s < sites.shape[0]:
        if bits & _FIFTEEN != 0:
            sites[n] = s
            n += 1
        bits >>= _FOUR
        s += 1
    return n


@uncounted
def differing(one, other, sites):
    """Sites at which two sequences (W,) differ, where the other is known, into sites (S,); how many."""
    n = 0
    for w in range(one.shape[0]):
        if one[w] != other[w]:
            n = note_sites((one[w] ^ other[w]) & ~missing_in(other[w]), w, sites, n)
    return n


@uncounted
def count_at_sites(pair, category, sites, counts):
    """Differences between two sequences, above and below, that differ at some sites, where known, into counts
    (C, 4, 16); and how many sites are missing below."""
    counts[:] = 0
    for s in sites:
        a, b = mask_at(pair[0], s), mask_at(pair[1], s)
        if a != b and b != MISSING:
            counts[category[s], state_of(a), b] += 1
    above, below = pair
    for w in range(below.shape[0]):
        bits = missing_in(below[w])
        if bits != 0:
            add_states(above, category, w, bits, counts[:, :, MISSING])


@uncounted
def add_states(words, category, w, bits, counts):
    """Add to counts (C, 4) how often a sequence of one state a site has each in word w at bits."""
    word = words[w]
    if counts.shape[0] == 1:
        for i in range(4):
            counts[0, i] += n_sites_of(word & bits & _FIRST)
            word >>= _ONE
        return
    s = w * SITES
    while bits != 0:
        if bits & _FIFTEEN != 0:
            counts[category[s], state_of(np.int64(word & _FIFTEEN))] += 1
        bits >>= _FOUR
        word >>= _FOUR
        s += 1


@uncounted
def n_sites_of(firsts):
    """How many sites have their first bit set, of a word without others."""
    pairs = (firsts & _EVEN) + ((firsts >> _FOUR) & _EVEN)
    return np.int64((pairs * _EVEN) >> _TOP)


@uncounted
def count_rest(counts, shares):
    """Of counts of differences all of a branch's, given the shares (C, 4) above it; whether some masks have
    several states."""
    several = False
    for c in range(counts.shape[0]):
        for i in range(4):
            left = shares[c, i]
            for m in range(1, 16):
                n = counts[c, i, m]
                left -= n
                several = several or (n > 0 and m & (m - 1) != 0 and m != MISSING)
            counts[c, i, 1 << i] = left
    return several


@uncounted
def entry(right, left, e, i, j):
    """Σ_k V_ik e_k V⁻¹_kj."""
    return (
        right[i, 0] * e[0] * left[0, j]
        + right[i, 1] * e[1] * left[1, j]
        + right[i, 2] * e[2] * left[2, j]
        + right[i, 3] * e[3] * left[3, j]
    )


@uncounted
def log_of_branch(counts, several, right, left, values, rates, length, e):
    """Log-likelihood of a branch of a length from its counts (C, 4, 16). right, left: V and its inverse (4,
    4), values (4,); rates (C,); e: (4,) to work in."""
    total = 0.0
    for c in range(counts.shape[0]):
        t = length * rates[c]
        for k in range(4):
            e[k] = math.expm1(values[k] * t)
        for i in range(4):
            n = counts[c, i, 1 << i]
            if n != 0:
                total += n * math.log1p(max(entry(right, left, e, i, i), -1.0))
            for j in range(4):
                n = counts[c, i, 1 << j]
                if n != 0 and i != j:
                    total += n * math.log(max(entry(right, left, e, i, j), 0.0))
        if several:
            for i in range(4):
                for m in range(3, MISSING):
                    n = counts[c, i, m]
                    if n != 0 and m & (m - 1) != 0:
                        total += n * math.log(chance_of(right, left, e, i, m))
    return total


@uncounted
def chance_of(right, left, e, i, m):
    """Σ_{j in m} P_ij, never below 0."""
    chance = 0.0
    for j in range(4):
        if (m >> j) & 1:
            chance += max(entry(right, left, e, i, j) + (1.0 if i == j else 0.0), 0.0)
    return chance


@uncounted
def log_of_root(shares, frequencies, weights):
    """Σ n_x log π_x of the root's shares, (C, states or more), and what categories of rates weigh (C,)."""
    total = 0.0
    for c in range(shares.shape[0]):
        for i in range(frequencies.shape[0]):
            if shares[c, i] != 0:
                total += shares[c, i] * math.log(frequencies[i] * weights[c])
    return total


@uncounted
def slope_of_branch(counts, several, model, length, room, by_eigen, by_rate):
    """d/d length of log_of_branch. by_rate: (C,), to which d/d rate of every category is added. by_eigen:
    (4, 4), to which is added what the branch says of Q in the eigenbasis: (Vᵀ G V⁻ᵀ) ∘ F, G = d/dP, F_kl =
    (exp λ_k t - exp λ_l t) / (λ_k - λ_l); (0, 0): of nothing. room: (3, 4, 4)."""
    slope, right, left, values = 0.0, model.right[0], model.left[0], model.values[0]
    e, grown, by = room[0, 0], room[0, 1], room[1]
    for c in range(counts.shape[0]):
        rate = model.rates[c]
        t = length * rate
        for k in range(4):
            e[k] = math.expm1(values[k] * t)
            grown[k] = values[k] * (e[k] + 1.0)
        for i in range(4):
            for j in range(4):
                n, one = counts[c, i, 1 << j], 1.0 if i == j else 0.0
                by[i, j] = n / max(entry(right, left, e, i, j) + one, 0.0) if n != 0 else 0.0
        if several:
            add_several(counts[c], right, left, e, by)
        total = 0.0
        for i in range(4):
            for j in range(4):
                if by[i, j] != 0.0:
                    total += by[i, j] * entry(right, left, grown, i, j)
        slope += total * rate
        by_rate[c] += total * length
        if by_eigen.shape[0] > 0:
            add_by_eigenbasis(right, left, values, t, e, room, by_eigen)
    return slope


@uncounted
def add_several(counts, right, left, e, by):
    """Add to d/dP what masks of several states say."""
    for i in range(4):
        for m in range(3, MISSING):
            n = counts[i, m]
            if n != 0 and m & (m - 1) != 0:
                share = n / chance_of(right, left, e, i, m)
                for j in range(4):
                    by[i, j] += share if (m >> j) & 1 else 0.0


@uncounted
def add_by_eigenbasis(right, left, values, t, e, room, out):
    """As slope_of_branch has it; d/dP is in room[1]."""
    by, half = room[1], room[2]
    for i in range(4):
        for l in range(4):
            half[i, l] = 0.0
            for j in range(4):
                half[i, l] += by[i, j] * left[l, j]
    for k in range(4):
        for l in range(4):
            total = 0.0
            for i in range(4):
                total += right[i, k] * half[i, l]
            out[k, l] += total * quotient(values, e, t, k, l)


@uncounted
def quotient(values, e, t, k, l):
    """(exp λ_k t - exp λ_l t) / (λ_k - λ_l), of e = expm1(λ t); its limit where these are alike."""
    difference = values[k] - values[l]
    d = difference * t
    if abs(d) > 1e-7:
        return (e[k] - e[l]) / difference
    return t * (e[l] + 1.0) * (1.0 + 0.5 * d)
