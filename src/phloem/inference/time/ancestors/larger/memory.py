"""Sequences of tips and ancestors as codes, eight sites a word, of alphabets of up to 64 states.

A code below S is a state, UNKNOWN one that says nothing, any other one of the sets of states that some tips
leave possible. A site of an ancestor has a state. Branches keep no counts, as those of nucleotides do: what
differs on a branch is found by comparing words, all else is how many sites are in which state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.errors import InputError
from phloem.hardware.numba_compile import merged
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.time.ancestors.sequences import MOST, parsimonious
from phloem.pruning.cpu.matrix_product import ROWS
from phloem.pruning.cpu.storage import address_of, float64_at, int64_at, uint8_at, uint64_at

SITES = 8  # of a word
UNKNOWN = 255
MOST_STATES = 6  # of a site, over which ancestors whose neighbours changed are summed
AT_ONCE = 4  # states whose sites are drawn anew where all neighbours of an ancestor have them
TIMES = 96  # at which slopes by the model are found, at most
LANES = 8  # numbers of a state come in multiples of it, whole vectors
# of Region.notes behind those of redraw.py: how many branches there are in either tree, and sites
BRANCHES, BRANCHES_NOW, SITES_HERE, NOTES = 5, 6, 7, 8


class Region(NamedTuple):
    """Ancestors whose neighbours a proposal changed. N nodes, S sites.

    notes, redrawn, kin, at, beside: as sequences.Near has them. branches: (2, 3 · MOST) nodes below the
    branches at them, in either tree; sites: (S,) at which somebody differs, again: (S,) uint8, whether
    ancestors are drawn anew there. states: (MOST_STATES,) of a site; up: (MOST, MOST_STATES) messages;
    drawn: (MOST,). wanted: (256,) uint8 codes; kinds: (C · AT_ONCE · 4, K + 1) weights of an ancestor's
    states and their sum, 0: not known yet. power: (3,) TimeScratch.power."""

    notes: np.ndarray
    redrawn: np.ndarray
    kin: np.ndarray
    at: np.ndarray
    beside: np.ndarray
    branches: np.ndarray
    sites: np.ndarray
    again: np.ndarray
    states: np.ndarray
    up: np.ndarray
    drawn: np.ndarray
    wanted: np.ndarray
    kinds: np.ndarray
    power: np.ndarray


class CodedMemory(NamedTuple):
    """Of one chain. T tips, N nodes, S sites in W words, C categories of rates, A states, K of them with
    padding.

    words: (N, W) uint64; codes: (N, 8 W) uint8, the same memory; known: (T, W) uint64, all bits of codes that
    say something; category: (S,) uint8; sets: (n, A) uint8 of codes A, A + 1, …. shares: (N, C, K) how many
    sites of a node have a state.
    Of the model's slots, by state: right, left: (2, A, K) V and the transpose of its inverse; diagonal: (2,
    A, K) V_ik V⁻¹_ki, by k. Of branches, on two sides: grown: (2, N + 6, C, K) expm1(λ_k t r_c), with room
    behind the last (matrix_product.py); stay: (2, N, C, K) log P_ii. side, now_side: (N,) int64 of the
    accepted state and of the proposal. value, new_value: (N,) log-likelihood of the branch above, of the root
    that of its states; changed: (N,) branches whose lengths a proposal changed. times, part: (TIMES,),
    by_time: (TIMES, A, A): of slopes.py. below: (N, C, K), by_site: (S, C), weights, vectors: (K,), (4, K),
    by_eigen: (A, A), room: (2, A, K), rows, more_rows: (C in whole sixes, K), to work in."""

    words: np.ndarray
    codes: np.ndarray
    known: np.ndarray
    category: np.ndarray
    sets: np.ndarray
    shares: np.ndarray
    right: np.ndarray
    left: np.ndarray
    diagonal: np.ndarray
    grown: np.ndarray
    stay: np.ndarray
    side: np.ndarray
    now_side: np.ndarray
    value: np.ndarray
    new_value: np.ndarray
    changed: np.ndarray
    times: np.ndarray
    part: np.ndarray
    by_time: np.ndarray
    below: np.ndarray
    by_site: np.ndarray
    weights: np.ndarray
    vectors: np.ndarray
    by_eigen: np.ndarray
    room: np.ndarray
    rows: np.ndarray
    more_rows: np.ndarray
    near: Region


def codes_of(observed: Observations) -> tuple[np.ndarray, np.ndarray]:
    """(T, S) uint8 codes of the tips, a column for each site of a pattern, and (n, A) sets of states of codes
    from A on. InputError for more sets than codes."""
    sets = np.asarray(observed.code_sets, bool)
    n_states, sizes = sets.shape[1], sets.sum(axis=1)
    several = (sizes > 1) & (sizes < n_states)
    found, which = np.unique(sets[several], axis=0, return_inverse=True)
    if n_states + len(found) >= UNKNOWN:
        raise InputError(
            f"sequences of ancestors are not sampled of characters of {len(found)} kinds of ambiguity",
            hint="Read them as missing (--ambiguity missing), or choose --engine patterns.",
        )
    code = np.where(sizes == 1, sets.argmax(axis=1), UNKNOWN).astype(np.uint8)
    code[several] = (n_states + which).astype(np.uint8)
    every = np.repeat(code[observed.codes], np.asarray(observed.weights).astype(np.int64), axis=1)
    return every, found.astype(np.uint8)


def as_words(codes: np.ndarray) -> np.ndarray:
    """(n, W) uint64 of codes (n, S)."""
    n, n_sites = codes.shape
    padded = np.zeros((n, -(-n_sites // SITES) * SITES), np.uint8)
    padded[:, :n_sites] = codes
    return padded.view("<u8").astype(np.uint64, copy=False)


def as_codes(words: np.ndarray, n_sites: int) -> np.ndarray:
    """(n, S) uint8 of words (n, W)."""
    return np.ascontiguousarray(words, "<u8").view(np.uint8)[:, :n_sites]


def likely_codes(
    codes: np.ndarray, sets: np.ndarray, tree: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> np.ndarray:
    """(T-1, S) uint8 states of ancestors with the fewest changes on a tree (left, right, order)."""
    n_states = sets.shape[1]
    bits = np.full(256, (1 << n_states) - 1, np.uint64)
    bits[:n_states] = 1 << np.arange(n_states, dtype=np.uint64)
    bits[n_states : n_states + len(sets)] = sets.astype(np.uint64) @ bits[:n_states]
    masks = parsimonious(bits[codes], *tree)
    return np.bitwise_count(masks - np.uint64(1)).astype(np.uint8)


@merged
def whole(c):
    """As many rows as products write."""
    return (c + ROWS - 1) // ROWS * ROWS


def coded_memory(
    tips: tuple[np.ndarray, np.ndarray], ancestors: np.ndarray, category: np.ndarray, n_categories: int
) -> CodedMemory:
    """For a chain. tips: codes (T, S) and sets (n, A); ancestors: (T-1, W) words; category: (S,), which is
    not copied."""
    codes, sets = tips
    n_tips, n_sites = codes.shape
    n, c, a = 2 * n_tips - 1, n_categories, sets.shape[1]
    k, words = -(-a // LANES) * LANES, np.vstack([as_words(codes), ancestors])
    near = Region(
        notes=np.zeros(NOTES, np.int64),
        redrawn=np.zeros((2, MOST), np.int64),
        kin=np.zeros((2, MOST, 3), np.int64),
        at=np.full(n, -1, np.int64),
        beside=np.zeros(2 * MOST + 1, np.int64),
        branches=np.zeros((2, 3 * MOST), np.int64),
        sites=np.zeros(n_sites, np.int64),
        again=np.zeros(n_sites, np.uint8),
        states=np.zeros(MOST_STATES, np.int64),
        up=np.zeros((MOST, MOST_STATES)),
        drawn=np.zeros(MOST, np.int64),
        wanted=np.zeros(256, np.uint8),
        kinds=np.zeros((c * AT_ONCE * 4, k + 1)),
        power=np.array([1.0, 1.0, 0.0]),
    )
    return CodedMemory(
        words=words,
        codes=words.view(np.uint8),
        known=as_words(np.where(codes == UNKNOWN, 0, 255).astype(np.uint8)),
        category=category,
        sets=sets if len(sets) else np.zeros((1, a), np.uint8),
        shares=np.zeros((n, c, k)),
        right=np.zeros((2, a, k)),
        left=np.zeros((2, a, k)),
        diagonal=np.zeros((2, a, k)),
        grown=np.zeros((2, n + ROWS, c, k)),
        stay=np.zeros((2, n, c, k)),
        side=np.zeros(n, np.int64),
        now_side=np.zeros(n, np.int64),
        value=np.zeros(n),
        new_value=np.zeros(n),
        changed=np.zeros(n, np.int64),
        times=np.zeros(TIMES),
        part=np.zeros(TIMES),
        by_time=np.zeros((TIMES, a, a)),
        below=np.zeros((n, c, k)),
        by_site=np.zeros((n_sites if c > 1 else 0, c)),
        weights=np.zeros(k),
        vectors=np.zeros((4, k)),
        by_eigen=np.zeros((a, a)),
        room=np.zeros((2, a, k)),
        rows=np.zeros((whole(c), k)),
        more_rows=np.zeros((whole(c), k)),
        near=near,
    )


# of the table: sizes, and from FIRST on addresses of all arrays
N_TIPS, N_SITES, N_WORDS, N_CATEGORIES, N_STATES, N_SETS, FIRST = range(7)


def table_of(memory: CodedMemory) -> np.ndarray:
    """Sizes and addresses as compiled code has them, which makes the record again (memory_at). Whoever keeps
    the table keeps the memory."""
    n_words, (_, c, _) = memory.words.shape[1], memory.shares.shape
    sizes = [(len(memory.words) + 1) // 2, len(memory.category), n_words, c, *memory.sets.shape[::-1]]
    return np.array(sizes + [address_of(array) for array in (*memory[:-1], *memory.near)], np.int64)


@merged
def memory_at(t):
    """The record of a table."""
    n, n_sites, w, c, a = 2 * t[N_TIPS] - 1, t[N_SITES], t[N_WORDS], t[N_CATEGORIES], t[N_STATES]
    k, i = (a + LANES - 1) // LANES * LANES, FIRST + 27
    near = Region(
        int64_at(t[i], (NOTES,)), int64_at(t[i + 1], (2, MOST)), int64_at(t[i + 2], (2, MOST, 3)),
        int64_at(t[i + 3], (n,)), int64_at(t[i + 4], (2 * MOST + 1,)), int64_at(t[i + 5], (2, 3 * MOST)),
        int64_at(t[i + 6], (n_sites,)), uint8_at(t[i + 7], (n_sites,)), int64_at(t[i + 8], (MOST_STATES,)),
        float64_at(t[i + 9], (MOST, MOST_STATES)), int64_at(t[i + 10], (MOST,)),
        uint8_at(t[i + 11], (256,)), float64_at(t[i + 12], (c * AT_ONCE * 4, k + 1)),
        float64_at(t[i + 13], (2,)),
    )  # fmt: skip
    i = FIRST
    return CodedMemory(
        uint64_at(t[i], (n, w)), uint8_at(t[i + 1], (n, SITES * w)), uint64_at(t[i + 2], (t[N_TIPS], w)),
        uint8_at(t[i + 3], (n_sites,)), uint8_at(t[i + 4], (t[N_SETS], a)),
        float64_at(t[i + 5], (n, c, k)), float64_at(t[i + 6], (2, a, k)), float64_at(t[i + 7], (2, a, k)),
        float64_at(t[i + 8], (2, a, k)), float64_at(t[i + 9], (2, n + ROWS, c, k)),
        float64_at(t[i + 10], (2, n, c, k)), int64_at(t[i + 11], (n,)), int64_at(t[i + 12], (n,)),
        float64_at(t[i + 13], (n,)), float64_at(t[i + 14], (n,)), int64_at(t[i + 15], (n,)),
        float64_at(t[i + 16], (TIMES,)), float64_at(t[i + 17], (TIMES,)),
        float64_at(t[i + 18], (TIMES, a, a)), float64_at(t[i + 19], (n, c, k)),
        float64_at(t[i + 20], (n_sites if c > 1 else 0, c)), float64_at(t[i + 21], (k,)),
        float64_at(t[i + 22], (4, k)), float64_at(t[i + 23], (a, a)),
        float64_at(t[i + 24], (2, a, k)), float64_at(t[i + 25], (whole(c), k)),
        float64_at(t[i + 26], (whole(c), k)), near,
    )  # fmt: skip
