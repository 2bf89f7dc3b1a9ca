"""Sequences of tips and ancestors, sixteen sites a word: four bits a site, for the states that are possible.

A site of an ancestor has one state. Where all ancestors are known, the likelihood of a tree is a product over
branches of transition probabilities, of which a branch needs no more than how often each state became which
(Tanner and Wong 1987, J. Am. Stat. Assoc. 82:528, for the idea of sampling what is easy to know in place of
summing it; with mutations on branches Varilly et al. 2025, Delphy). Sites are in the order of patterns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.inference.mcmc.recipes import Observations
from phloem.pruning.cpu.storage import address_of

SITES = 16  # of a word
MISSING = 15  # a mask of all states, which says nothing
MOST = 8  # ancestors drawn anew at once
LACKING = 5  # tips beside them, of which the sites that are missing are of kinds of their own
KINDS = 256  # of sites, whose messages are kept
VALUE, TAKE, SLOPES, ONE, SITE_RATES = range(5)  # what a chain asks (chain.py)
HEIGHT, EXCHANGE, SLIDE, LEAP, ACROSS = range(5)  # kinds of steps of a walk (walk.py)
GAINED, LENGTH, UNDEFINED_STEPS, LAST = range(4)  # of Walk.found
_PAD = 1  # the state of sites that are not there


class Near(NamedTuple):
    """Ancestors that are drawn anew, and their neighbours. N nodes, C categories.

    notes: (6,) redraw.CHANGED, …. redrawn: (2, MOST) ancestors, children first, in the accepted tree and in
    the proposal; kin: (2, MOST, 3) their children and parents there; at: (N,) which of them a node is, -1:
    none; beside: (2 · MOST + 1,) other neighbours. p: (2, N, C, 4, 4) matrices of the branches at them, in
    either tree; root: (C, 4) probabilities of states and categories; kinds: (KINDS,) uint64 masks of sites,
    0: none; up: (KINDS, 2, MOST, 4), logs: (KINDS, 2) their messages and log-likelihoods; mask: (N,) of one
    site; drawn: (MOST,) states. power: (3,), first that of the likelihood with ancestors (TimeScratch.power):
    matrices below ancestors and root are those powers of probabilities. lacking: (LACKING,) tips among the
    neighbours."""

    notes: np.ndarray
    redrawn: np.ndarray
    kin: np.ndarray
    at: np.ndarray
    beside: np.ndarray
    p: np.ndarray
    root: np.ndarray
    kinds: np.ndarray
    up: np.ndarray
    logs: np.ndarray
    mask: np.ndarray
    drawn: np.ndarray
    power: np.ndarray
    lacking: np.ndarray


class Memory(NamedTuple):
    """Of one chain. T tips, N nodes, S sites in W words, C categories of rates.

    words: (N, W) uint64 sequences; category: (S,) uint8; shares: (N, C, 4) how many sites of an ancestor have
    a state, by category; counts: (N, C, 4, 16) int32 of the branch above a node: sites of a state above, by
    the mask below; several: (N,) uint8, whether some of these masks have several states. value: (N,)
    log-likelihood of the branch above, of the root that of its states; new_value: of the proposal; changed:
    (N,) branches whose lengths it changed. fresh: (MOST, W) sequences drawn; sites: (S,) at which neighbours
    differ, agree: (C, 4, 2^LACKING) how many others there are, by the state and by which tips of near.lacking
    are missing there. room (3, 4, 4), chances (MOST,), by_eigen (4, 4), differs and missing (W,) uint64,
    below (N, C, 4), by_site (S, C), stays (C, 4): to work in."""

    words: np.ndarray
    category: np.ndarray
    shares: np.ndarray
    counts: np.ndarray
    several: np.ndarray
    value: np.ndarray
    new_value: np.ndarray
    changed: np.ndarray
    fresh: np.ndarray
    sites: np.ndarray
    agree: np.ndarray
    room: np.ndarray
    chances: np.ndarray
    by_eigen: np.ndarray
    differs: np.ndarray
    missing: np.ndarray
    below: np.ndarray
    by_site: np.ndarray
    stays: np.ndarray
    near: Near


class Lineages(NamedTuple):
    """A tree of N nodes: parent, left, right (-1 where there is none), order (children before parents),
    heights, and branch lengths in substitutions."""

    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    order: np.ndarray
    heights: np.ndarray
    lengths: np.ndarray


class Walk(NamedTuple):
    """The chain's state as a walk sees it: both slots are alike between steps.

    n_tips: T. rng: (4,). tuning: of the distances that slide and leap go. parent, left, right, order,
    heights, lengths, deviations: (N,) of the proposal's slot. before: those of the accepted one, was its
    deviations. edges, stack (N,) int64, spots (N,): of moves. rank, lineages (N,) int64, waited (N,): of
    every node its place in the order; of every place how many lineages there are after it; of every node how
    long a pair would have waited until then. joining: address of TreePrior.joining; x: (n,) its numbers;
    settings. rate, spread, shift: of the clock, log r = log(rate) + spread ε - shift; reference: 1 where the
    rate's prior reads the tree's length. touched, others: (8,) int64 nodes of the step under way, and its
    branches whose lengths change. found: (6,) log prior density gained, the tree's length, steps that
    nobody can judge, and of the last one the log Hastings ratio and the changes of prior and likelihood;
    pair: (2,) to work in. tried, taken: (8,) int64 by kind."""

    n_tips: int
    rng: np.ndarray
    tuning: float
    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    order: np.ndarray
    heights: np.ndarray
    lengths: np.ndarray
    deviations: np.ndarray
    before: Lineages
    was: np.ndarray
    edges: np.ndarray
    stack: np.ndarray
    spots: np.ndarray
    rank: np.ndarray
    lineages: np.ndarray
    waited: np.ndarray
    joining: int
    x: np.ndarray
    settings: np.ndarray
    rate: float
    spread: float
    shift: float
    reference: int
    touched: np.ndarray
    others: np.ndarray
    found: np.ndarray
    pair: np.ndarray
    tried: np.ndarray
    taken: np.ndarray


def masks_of(observed: Observations) -> np.ndarray:
    """(T, S) uint8 possible states of every site of the tips' nucleotides, a column for each site of a
    pattern."""
    masks = (np.asarray(observed.code_sets, bool) @ (1 << np.arange(4))).astype(np.uint8)
    return np.repeat(masks[observed.codes], np.asarray(observed.weights).astype(np.int64), axis=1)


def packed(masks: np.ndarray) -> np.ndarray:
    """(n, W) uint64 of masks (n, S)."""
    n, n_sites = masks.shape
    padded = np.full((n, -(-n_sites // SITES) * SITES), _PAD, np.uint8)
    padded[:, :n_sites] = masks
    return (padded[:, ::2] | (padded[:, 1::2] << 4)).view("<u8").astype(np.uint64, copy=False)


def unpacked(words: np.ndarray, n_sites: int) -> np.ndarray:
    """(n, S) uint8 masks of (n, W) words."""
    pairs = np.ascontiguousarray(words, "<u8").view(np.uint8)
    return np.stack([pairs & MISSING, pairs >> 4], axis=2).reshape(len(words), -1)[:, :n_sites]


def parsimonious(masks: np.ndarray, left: np.ndarray, right: np.ndarray, order: np.ndarray) -> np.ndarray:
    """(T-1, S) masks of one state each, of the fewest changes on a tree (Fitch 1971, Syst. Zool. 20:406); of
    equally good states the one above, else the first. masks: of the tips, unsigned; order: (N,) children
    before parents."""
    n_tips, one = len(masks), masks.dtype.type(1)
    sets = np.zeros((2 * n_tips - 1, masks.shape[1]), masks.dtype)
    sets[:n_tips] = masks
    for x in order:
        if left[x] >= 0:
            both = sets[left[x]] & sets[right[x]]
            sets[x] = np.where(both, both, sets[left[x]] | sets[right[x]])
    root = order[-1]
    sets[root] &= ~sets[root] + one
    for x in order[::-1]:
        if left[x] >= 0:
            for child in (left[x], right[x]):
                if child >= n_tips:
                    both = sets[child] & sets[x]
                    first = sets[child] & (~sets[child] + one)
                    sets[child] = np.where(both, both, first)
    return sets[n_tips:]


def memory_of(masks: np.ndarray, ancestors: np.ndarray, category: np.ndarray, n_categories: int) -> Memory:
    """For a chain. masks: (T, S) of the tips; ancestors: (T-1, W) words; category: (S,), which is not
    copied."""
    n_tips, n_sites = masks.shape
    n, c, words = 2 * n_tips - 1, n_categories, np.vstack([packed(masks), ancestors])
    near = Near(
        notes=np.zeros(6, np.int64),
        redrawn=np.zeros((2, MOST), np.int64),
        kin=np.zeros((2, MOST, 3), np.int64),
        at=np.full(n, -1, np.int64),
        beside=np.zeros(2 * MOST + 1, np.int64),
        p=np.zeros((2, n, c, 4, 4)),
        root=np.zeros((c, 4)),
        kinds=np.zeros(KINDS, np.uint64),
        up=np.zeros((KINDS, 2, MOST, 4)),
        logs=np.zeros((KINDS, 2)),
        mask=np.zeros(n, np.uint8),
        drawn=np.zeros(MOST, np.int64),
        power=np.array([1.0, 1.0, 0.0]),
        lacking=np.zeros(LACKING, np.int64),
    )
    return Memory(
        words=words,
        category=category,
        shares=np.zeros((n, c, 4), np.int64),
        counts=np.zeros((n, c, 4, 16), np.int32),
        several=np.zeros(n, np.uint8),
        value=np.zeros(n),
        new_value=np.zeros(n),
        changed=np.zeros(n, np.int64),
        fresh=np.zeros((MOST, words.shape[1]), np.uint64),
        sites=np.zeros(n_sites, np.int64),
        agree=np.zeros((c, 4, 1 << LACKING), np.int64),
        room=np.zeros((3, 4, 4)),
        chances=np.zeros(MOST),
        by_eigen=np.zeros((4, 4)),
        differs=np.zeros(words.shape[1], np.uint64),
        missing=np.zeros(words.shape[1], np.uint64),
        below=np.zeros((n, c, 4)),
        by_site=np.zeros((n_sites if c > 1 else 0, c)),
        stays=np.zeros((c, 4)),
        near=near,
    )


# of the table: sizes, and from FIRST on addresses of all arrays
N_TIPS, N_SITES, N_WORDS, N_CATEGORIES, FIRST = range(5)


def table_of(memory: Memory | None) -> np.ndarray:
    """Sizes and addresses as compiled code has them, which makes the record again (chain.memory_at); of None
    zeros. Whoever keeps the table keeps the memory."""
    n = FIRST + len(Memory._fields) - 1 + len(Near._fields)
    if memory is None:
        return np.zeros(n, np.int64)
    n_sites, n_words, c = len(memory.category), memory.words.shape[1], memory.shares.shape[1]
    sizes = [(len(memory.words) + 1) // 2, n_sites, n_words, c]
    return np.array(sizes + [address_of(array) for array in (*memory[:-1], *memory.near)], np.int64)
