"""How often each move is tried: learnt while moves adapt, from what it moves for what it costs.

The chains note, of every move, its proposals, their work, and how far they took the cold chain: in every
number's coordinate, in log tree length, in each tip's share of the tree length, in those of inner branches,
and which splits came or went (compiled/jumps.py). With ρ_mk the squared jumps of statistic k by move m for
its work, over the variance of k, and a move's share u_m of all work, r_k = Σ_m u_m ρ_mk is a rate of mixing.
The shares are those that make Σ_k α_k / r_k² least: the slowest statistics count most, and a single noisy one
does not count for all.
Expected squared jumps as a measure of a move: Pasarica and Gelman 2010, Statistica Sinica 20:343.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.inference.mcmc.learning import of_numbers
from phloem.inference.mcmc.records import (
    JUMP_UNIT,
    LOOKS,
    MEAN,
    OF_NUMBERS,
    OF_OTHERS,
    PROPOSALS,
    SQUARES,
    STATISTICS,
    WORK,
    ChainData,
    ChainState,
)
from phloem.inference.mcmc.split_memory import keys_below

EVERY = 100  # generations between two looks at the cold chain
LEAST_LOOKS = 20  # of a stretch, for shares to be learnt from it
LEAST_SHARE, LEAST_OF_TOPOLOGY = 0.1, 0.5  # of a move's usual work, that is left to it
RARE = 0.02  # splits of a frequency below it, or above 1 less it, tell nothing
POOLED = 5.0  # changes of a split that weigh as much as what moves do to all splits
STEPS = 500


class Seen(NamedTuple):
    """Fields of ChainState, see there."""

    jumps: np.ndarray
    watched: np.ndarray
    seen: np.ndarray


def nothing_seen(n_moves: int, n_tips: int, d: int) -> Seen:
    """Room for d coordinates, the shares of the tips, and splits, two for each node."""
    n, splits = d + n_tips + 1, max(64, 2 * n_tips)
    return Seen(
        np.zeros((n_moves, STATISTICS + n + splits)), np.zeros(splits, np.uint64), np.zeros((3, n + splits))
    )


def cumulative_shares(weights: np.ndarray) -> np.ndarray:
    """(M,) sums of shares, the last one 1."""
    found = np.cumsum(weights) / np.sum(weights)
    found[-1] = 1.0
    return found


# A look at the cold chain.


def looked_at_cold(data: ChainData, state: ChainState) -> np.ndarray:
    """(H, K + 2n) of every chain in the state its statistics and the halves of the keys of its n splits; 0 of
    chains that are not cold."""
    n_tips = data.n_tips
    rows = np.zeros((len(state.rank), state.seen.shape[1] - len(state.watched) + 2 * (n_tips - 2)))
    for h in np.flatnonzero(state.rank == 0):
        slot = state.slot[h]
        lengths = state.lengths[h, slot]
        inner = keys_below(state, int(h))[n_tips:-1]
        halves = [inner >> np.uint64(32), inner & np.uint64(2**32 - 1)]
        numbers = [*of_numbers(data, state.values[h, slot]), np.log(lengths.sum())]
        tips = lengths[:, :n_tips].sum(0) / lengths.sum()
        rows[h] = np.concatenate([numbers, tips, [1.0 - tips.sum()], *halves])
    return rows


def watch(state: ChainState, rows: np.ndarray) -> None:
    """One look: rows, of all chains, as looked_at_cold gives them. state.watched and seen change in place."""
    row, n = rows.sum(0), state.seen.shape[1] - len(state.watched)
    first, second = np.split(row[n:].astype(np.uint64), 2)
    keys = (first << np.uint64(32)) | second
    free = np.flatnonzero(state.watched == 0)
    new = keys[~np.isin(keys, state.watched)][: len(free)]
    state.watched[free[: len(new)]] = new
    there = np.isin(state.watched, keys) & (state.watched != 0)
    state.seen[LOOKS] += 1
    away = np.concatenate([row[:n], there]) - state.seen[MEAN]
    state.seen[MEAN] += away / state.seen[LOOKS]
    state.seen[SQUARES] += away * (away - away / state.seen[LOOKS])


# What follows from them.


def not_starved(data: ChainData) -> np.ndarray:
    """(M,) bool: moves of which jumps do not tell enough to leave them less than their usual work. Those of a
    block whose dimension changes, in which no jump is measured; and those that know splits, which take chains
    between modes of several splits: too seldom to be seen while moves adapt, whereas what changes single
    splits to and fro is seen to jump much."""
    changes = np.append(data.joint.support == OF_OTHERS, False)
    changes = changes[np.where(data.moves.on == OF_NUMBERS, data.moves.block, -1)]
    return changes | (data.moves.splits != 0)


def learn_weights(
    state: ChainState,
    usual: np.ndarray | None,
    of_topology: np.ndarray,
    jumps: np.ndarray,
    kept: np.ndarray | bool = False,
) -> None:
    """Shares from what was seen since the last time, and begin anew; too little of it changes none. usual:
    (M,) the moves' weights, None: forget only; of_topology: (M,) bool; jumps: state.jumps, over all
    processes; kept: (M,) bool, moves that keep at least the share of work that they usually have."""
    tried = jumps[:, PROPOSALS]
    if usual is not None and state.seen[LOOKS, 0] >= LEAST_LOOKS and tried.any():
        usually = np.sum(jumps[:, WORK]) / np.sum(tried)  # of a move that was not tried once
        work = np.where(tried > 0, jumps[:, WORK] / np.maximum(tried, 1.0), usually)
        rates, weights = mixing_rates(state, jumps, of_topology)
        least = np.where(of_topology, LEAST_OF_TOPOLOGY, LEAST_SHARE)
        least = np.where(kept, 1.0, least) * usual * work / np.sum(usual * work)
        if rates.shape[1]:  # chains that stood still have taught nothing
            state.cumulative[:] = cumulative_shares(best_shares(rates, weights, usual * work, least) / work)
    state.jumps[:], state.watched[:], state.seen[:] = 0, 0, 0


def mixing_rates(
    state: ChainState, jumps: np.ndarray, of_topology: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(M, k) of every move and statistic that varies, squared jumps over the variance, for a unit of work;
    and (k,) weights of the statistics: numbers with the tree length, lengths of tips' branches, those of
    inner ones, and splits weigh the same.

    Of the tips' shares the mean is taken, as one statistic. Inner branches come and go with the topology; the
    variance of their shares, all added up, is taken to be to that of the tips' as their mean is. Of a split's
    changes, few at first, what each move has made is drawn towards what it has made of those of all splits.
    """
    looks, n = state.seen[LOOKS, 0], state.seen.shape[1] - len(state.watched)
    work = np.maximum(jumps[:, WORK], 1.0)[:, None]
    variance = state.seen[SQUARES] / (looks - 1)
    d, inner = n - 1 - (state.parent.shape[2] + 1) // 2, state.seen[MEAN, n - 1]
    variance[n - 1] = variance[d : n - 1].sum() * inner / (1.0 - inner)
    varies = variance[:n] > 1e-12 * (1.0 + state.seen[MEAN, :n] ** 2)
    squared = jumps[:, STATISTICS : STATISTICS + n] * JUMP_UNIT / np.where(varies, variance[:n], np.inf)
    found = [squared[:, :d][:, varies[:d]]]
    if varies[d : n - 1].any():
        found.append(squared[:, d : n - 1][:, varies[d : n - 1]].mean(1, keepdims=True))
    if varies[n - 1]:
        found.append(squared[:, n - 1 :])
    share = state.seen[MEAN, n:]
    told = (share > RARE) & (share < 1 - RARE)
    if of_topology.any() and told.any():
        changes = jumps[:, STATISTICS + n :][:, told]
        pooled = np.where(of_topology, jumps[:, PROPOSALS], 0.0)
        pooled = pooled / pooled.sum() + changes.sum(1)
        total = changes.sum(0)
        drawn = (changes + POOLED * (pooled / pooled.sum())[:, None]) / (total + POOLED)
        found.append(drawn * np.maximum(total, 0.5) / (share * (1 - share))[told])
    moved = [group[:, group.max(0) > 0] / work for group in found]
    weights = [np.full(group.shape[1], 1.0 / max(group.shape[1], 1)) for group in moved]
    return np.concatenate(moved, axis=1), np.concatenate(weights)


def best_shares(rates: np.ndarray, weights: np.ndarray, start: np.ndarray, least: np.ndarray) -> np.ndarray:
    """(M,) shares of work u with the least Σ_k α_k / (Σ_m u_m ρ_mk)²: rates ρ (M, k), weights α (k,), from
    start; none falls below least. The function is convex in u; each step multiplies u by (-slope)^⅓, whose
    fixed point is the optimum."""
    u = start / start.sum()
    for _ in range(STEPS):
        mixing = np.sum(u[:, None] * rates, axis=0)
        u = u * np.cbrt(np.sum(weights * rates / mixing**3, axis=1))
        u = _with_least(u / u.sum(), least)
    return u


def _with_least(u: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Shares of sum 1 with none below least; the others are scaled down."""
    low = u < least
    while True:
        rest = (1.0 - least[low].sum()) / max(u[~low].sum(), 1e-300)
        found = np.where(low, least, u * rest)
        if (found >= least).all():
            return found
        low |= found < least
