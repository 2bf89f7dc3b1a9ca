"""What a branch between known sequences says, of many states: its tables, its log-likelihood.

Most sites stay as they are: of a branch log P_ii of every state is kept, and multiplied by how many sites
there are in it. Entries of P for sites that change are found one by one, as δ_ij + Σ_k V_ik (exp(λ_k t) - 1)
V⁻¹_kj, never below FLOOR: three changes of a codon on a very short branch are less than the sum's rounding.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.inference.time.ancestors.larger.memory import SITES, UNKNOWN
from phloem.pruning.cpu.matrix_product import product
from phloem.pruning.cpu.records import Operand

_BYTE = np.uint64(255)
FLOOR = 1e-18
LEAST = -1.0 + 2.0**-52  # of P_ii - 1
SMALL = 0.25  # up to where short polynomials are exact to rounding
MOST_DOUBLINGS = 60
FACTORIALS = tuple(1.0 / math.factorial(n) for n in range(13, 0, -1))
ODD = tuple(1.0 / n for n in range(19, 0, -2))


@uncounted
def set_basis(memory, model, slot):
    """The model's eigensystem by states, into one of two slots."""
    n_states = memory.right.shape[1]
    for i in range(n_states):
        for k in range(n_states):
            right, left = model.right[0, k, i], model.left[0, k, i]
            memory.right[slot, i, k] = right
            memory.left[slot, i, k] = left
            memory.diagonal[slot, k, i] = right * left


@uncounted(fastmath={"reassoc", "contract"})
def entry(right, grown, left):
    """Σ_k of the products of three (K,), in whatever order is fast."""
    total = 0.0
    for k in range(right.shape[0]):
        total += right[k] * grown[k] * left[k]
    return total


@uncounted
def weighted_sum(rows, by, out):
    """Σ_k by_k rows_k, (A, K) rows, into out (K,)."""
    width = min(out.shape[0], rows.shape[1])
    for i in range(out.shape[0]):
        out[i] = 0.0
    for k in range(rows.shape[0]):
        share = by[k]
        for i in range(width):
            out[i] += share * rows[k, i]


@uncounted
def set_tables(memory, model, slot, x, side, length):
    """grown and stay of the branch above x, of a length."""
    n_categories, width = memory.shares.shape[1], memory.shares.shape[2]
    for c in range(n_categories):
        set_growth(model.values[0], length * model.rates[c], memory.grown[side, x, c])
    by_category(memory, slot, memory.grown[side, x])
    for c in range(n_categories):
        stay = memory.stay[side, x, c]
        for i in range(width):
            stay[i] = memory.rows[c, i]
        to_logs(stay)


@uncounted
def by_category(memory, slot, by):
    """Σ_k by_ck V_ik V⁻¹_ki, into memory.rows (C, K). by: (C, K), rows behind which may be read."""
    n_categories, width = memory.shares.shape[1], memory.shares.shape[2]
    one, other = Operand(by, 0, width, 1), Operand(memory.diagonal[slot], 0, width, 1)
    product(one, other, Operand(memory.rows, 0, width, 1), n_categories, width, memory.right.shape[1], False)


@uncounted
def set_growth(values, t, out):
    """expm1(λ_k t), λ_k at most 0, into out (K,): a polynomial of what is small enough, doubled by expm1(2 y)
    = p (2 + p) as often as that takes, which keeps the relative error. A loop that vectors can do."""
    least, doublings, share = 0.0, 0, t
    for k in range(values.shape[0]):
        least = min(least, values[k] * t)
    while least < -SMALL and doublings < MOST_DOUBLINGS:
        least, share, doublings = 0.5 * least, 0.5 * share, doublings + 1
    for k in range(values.shape[0]):
        y = values[k] * share
        p = 0.0
        for factor in FACTORIALS:
            p = p * y + factor
        out[k] = p * y
    for _ in range(doublings):
        for k in range(values.shape[0]):
            out[k] = out[k] * (2.0 + out[k])


@uncounted
def to_logs(p):
    """log(1 + p) in the place of p, (K,), not above 0: by 2 artanh(p / (2 + p)) where all are small."""
    least = 0.0
    for i in range(p.shape[0]):
        least = min(least, p[i])
    if least < -SMALL:
        for i in range(p.shape[0]):
            p[i] = math.log1p(max(p[i], LEAST))
        return
    for i in range(p.shape[0]):
        s = p[i] / (2.0 + p[i])
        square, series = s * s, 0.0
        for odd in ODD:
            series = series * square + odd
        p[i] = 2.0 * s * series


@uncounted
def chance(memory, slot, grown, i, code):
    """P of a state above and a code below, not UNKNOWN."""
    n_states, right = memory.right.shape[1], memory.right[slot, i]
    if code < n_states:
        return max(entry(right, grown, memory.left[slot, code]) + (1.0 if i == code else 0.0), FLOOR)
    total = 0.0
    for j in range(n_states):
        if memory.sets[code - n_states, j] != 0:
            total += max(entry(right, grown, memory.left[slot, j]) + (1.0 if i == j else 0.0), FLOOR)
    return total


@uncounted
def log_of_site(memory, slot, side, x, c, i, code):
    """log P of the branch above x at a site of category c."""
    if code == UNKNOWN:
        return 0.0
    if code == i:
        return memory.stay[side, x, c, i]
    return math.log(chance(memory, slot, memory.grown[side, x, c], i, code))


@uncounted
def log_of_states(shares, stay):
    """Σ n_i log P_ii, (C, K) each."""
    total = 0.0
    for c in range(shares.shape[0]):
        a0 = a1 = a2 = a3 = 0.0
        for k in range(0, shares.shape[1], 4):
            a0 += shares[c, k] * stay[c, k]
            a1 += shares[c, k + 1] * stay[c, k + 1]
            a2 += shares[c, k + 2] * stay[c, k + 2]
            a3 += shares[c, k + 3] * stay[c, k + 3]
        total += (a0 + a1) + (a2 + a3)
    return total


@uncounted
def differing(memory, x, above, sites):
    """Sites at which x and its parent differ, where x is known, into sites (S,); how many."""
    one, other, n, n_tips = memory.words[x], memory.words[above], 0, memory.known.shape[0]
    for w in range(one.shape[0]):
        bits = one[w] ^ other[w]
        if bits == 0:
            continue
        if x < n_tips:
            bits &= memory.known[x, w]
        n = note_sites(bits, w, sites, n)
    return n


@uncounted
def note_sites(bits, w, sites, n):
    """Add the sites of word w, some of whose bits are set, to sites from number n on; how many there are
    then."""
    s = w * SITES
    while bits != 0:
        if bits & _BYTE != 0:
            sites[n] = s
            n += 1
        bits >>= np.uint64(8)
        s += 1
    return n


@uncounted
def log_of_branch(memory, slot, side, x, above, sites):
    """Log-likelihood of the branch above x, of tables on one side. sites: (S,) to work in."""
    n_states, codes = memory.right.shape[1], memory.codes
    total = log_of_states(memory.shares[x], memory.stay[side, x])
    for k in range(differing(memory, x, above, sites)):
        s = sites[k]
        c, code = np.int64(memory.category[s]), np.int64(codes[x, s])
        total += math.log(chance(memory, slot, memory.grown[side, x, c], np.int64(codes[above, s]), code))
        if code < n_states:
            total -= memory.stay[side, x, c, code]
    return total


@uncounted
def set_shares(memory, x):
    """How many sites of x have which state, by category."""
    shares, n_states = memory.shares[x], memory.right.shape[1]
    shares[:] = 0.0
    for s in range(memory.category.shape[0]):
        code = memory.codes[x, s]
        if code < n_states:
            shares[memory.category[s], code] += 1.0


@uncounted
def move_share(memory, x, s, code):
    """Give an ancestor's site another state."""
    c = memory.category[s]
    memory.shares[x, c, memory.codes[x, s]] -= 1.0
    memory.shares[x, c, code] += 1.0
    memory.codes[x, s] = np.uint8(code)
