"""Runs and chains of an analysis on several processes: who has which, swaps between them, gathering.

Chains need each other only to swap temperatures. Whom they may swap with is drawn beforehand, of every rank
alike, so a chain's rank knows its partner, and the two exchange what decides: log-likelihood and prior, the
place in the heat ladder, and what belongs to that place (how moves are tuned there, and counted). A chain's
random numbers are its own, so what comes out does not depend on the number of ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc.records import ChainState
from phloem.inference.mcmc.samples import Samples, extended

# Fields of ChainState by what their first axis is. Those of a heat travel with it from chain to chain;
# counts of swaps and of moves' jumps add up over ranks; the rest is the same on all.
OF_CHAINS = (
    "parent", "left", "right", "order", "lengths", "slot", "values", "log_likelihood", "log_prior", "rank",
    "rng",
)  # fmt: skip
OF_HEATS = ("tuning", "tried", "accepted", "batch_tried", "batch_accepted")
COUNTS = ("swaps_tried", "swaps_accepted")
SUMS = (*COUNTS, "jumps")
OF_ALL = (
    "swap_rng", "generation", "looks", "mean", "covariance", "factor", "split_keys", "split_sums",
    "split_looks", "cumulative", "watched", "seen",
)  # fmt: skip

# Of a generation in which chains may swap with those of another process (docs/clusters.md): they pause, and
# on a GPU what was under way comes to its end.
SWAP_SECONDS = {"cpu": 2e-4, "gpu": 5e-4}


@dataclass(frozen=True)
class Share:
    """What one rank has: `chains` (global numbers) of each of some runs."""

    runs: tuple[int, ...]
    chains: range


def shares(n_runs: int, n_chains: int, size: int, ranks_a_run: int) -> tuple[Share, ...]:
    """Of every rank. Whole runs where there are as many as ranks; else each run has ranks of its own, among
    at most ranks_a_run of which its chains are divided. Ranks that are left over have none."""
    if size <= n_runs:
        bounds = [k * n_runs // size for k in range(size + 1)]
        return tuple(Share(tuple(range(a, b)), range(n_chains)) for a, b in pairwise(bounds))
    found = []
    for run in range(n_runs):
        here = (run + 1) * size // n_runs - run * size // n_runs
        used = min(here, n_chains, ranks_a_run)
        for k in range(here):
            own = range(k * n_chains // used, (k + 1) * n_chains // used) if k < used else range(0)
            found.append(Share((run,) if own else (), own))
    return tuple(found)


def useful_ranks(n_chains: int, most: int, seconds: Callable[[int], float], swap_seconds: float) -> int:
    """Among how many ranks a run's chains are best divided. seconds: of a generation of so many chains on one
    rank; where there are several, each generation is as long as the largest share, and a swap."""
    times = {
        k: seconds(-(-n_chains // k)) + (k > 1) * swap_seconds for k in range(1, min(most, n_chains) + 1)
    }
    return min(times, key=lambda k: (times[k], k))


DEAR_SWAPS = "swaps between more would take longer than they save"


def shares_text(given: Sequence[Share], how: str, why_idle: str = DEAR_SWAPS) -> str:
    """Who has what, for people."""
    idle, most = sum(not share.chains for share in given), max(len(share.chains) for share in given)
    runs = [run for share in given for run in share.runs]
    each = "whole runs" if len(set(runs)) == len(runs) else f"up to {most} chain{'s' * (most > 1)} of a run"
    text = f"{len(given)} processes, {how}; each has {each}"
    return f"{text}, {idle} idle: {why_idle}" if idle else text


@dataclass(frozen=True)
class Spread:
    """The ranks of an analysis, and what each has."""

    ranks: Ranks
    shares: tuple[Share, ...]

    @property
    def alone(self) -> bool:
        return self.ranks.size == 1

    @property
    def own(self) -> Share:
        return self.shares[self.ranks.number]

    def among(self, run: int) -> tuple[range, ...]:
        """The chains of a run on every rank."""
        return tuple(share.chains if run in share.runs else range(0) for share in self.shares)


def own_state(whole: ChainState, chains: range) -> ChainState:
    """The part of a run's state that a rank works on. Rows of heats that its chains do not have mean nothing;
    swaps are counted where the first chain is."""
    own = {name: getattr(whole, name)[chains.start : chains.stop].copy() for name in OF_CHAINS}
    own |= {name: getattr(whole, name).copy() for name in (*OF_HEATS, *SUMS, *OF_ALL)}
    if chains.start > 0:
        own |= {name: np.zeros_like(own[name]) for name in SUMS}
    return ChainState(**own)


def whole_state(parts: Sequence[ChainState]) -> ChainState:
    """A run's state from the parts that its ranks have, in the order of chains."""
    if len(parts) == 1:
        return parts[0]
    whole = {name: np.concatenate([getattr(part, name) for part in parts]) for name in OF_CHAINS}
    for name in OF_HEATS:
        whole[name] = getattr(parts[0], name).copy()
        for part in parts:
            whole[name][part.rank] = getattr(part, name)[part.rank]
    whole |= {name: sum(getattr(part, name) for part in parts) for name in SUMS}
    return ChainState(**whole, **{name: getattr(parts[0], name) for name in OF_ALL})


def merged_samples(parts: Sequence[Samples]) -> Samples:
    """What several ranks drew of one run, each while it had the cold chain, in the order of generations."""
    if len(parts) == 1:
        return parts[0]
    joined = extended(parts[0], list(parts[1:]))
    order = np.argsort(joined.generation, kind="stable")
    return Samples(*(getattr(joined, field.name)[order] for field in fields(joined)))


@dataclass(frozen=True, eq=False)
class Swaps:
    """What a run needs for swaps with chains of other ranks. among: its chains on every rank; own: those
    here."""

    ranks: Ranks
    among: tuple[range, ...]
    own: range

    def local(self, pair: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of (n, 2) pairs of chains: those with both here, by their numbers here, -1 elsewhere; and the rows
        of pairs with one here."""
        here = np.isin(pair, self.own)
        local = np.where(np.all(here, axis=1, keepdims=True), pair - self.own.start, -1)
        return local, np.flatnonzero(here[:, 0] != here[:, 1])

    def shared(self, rows: np.ndarray) -> np.ndarray:
        """What each rank says of its chains, (chains there, m), together, in the order of chains."""
        most = max(map(len, self.among))
        message = np.zeros((most, rows.shape[1]))
        message[: len(rows)] = rows
        found = []
        for rank, chains in enumerate(self.among):  # pairs of ranks meet in the same order everywhere
            if chains == self.own:
                found.append(rows)
            elif chains:
                told = self.ranks.exchanged(message.ravel(), rank).reshape(message.shape)
                found.append(told[: len(chains)])
        return np.concatenate(found)

    def swap(self, state: ChainState, heat: np.ndarray, pair: np.ndarray, log_uniform: float) -> None:
        """Exchange temperatures of a chain here and one elsewhere, or not, as in one process."""
        from phloem.inference.mcmc.compiled.run import swap_chains

        mine = 0 if pair[0] in self.own else 1
        h, other = int(pair[mine]) - self.own.start, int(pair[1 - mine])
        partner = next(rank for rank, chains in enumerate(self.among) if other in chains)
        rows = [getattr(state, name)[state.rank[h]] for name in OF_HEATS]
        numbers = (state.log_likelihood[h], state.log_prior[h], state.rank[h])
        message = np.concatenate([numbers, *rows]).astype(np.float64)
        found = self.ranks.exchanged(message, partner)
        two = np.stack([message, found] if mine == 0 else [found, message])
        rank = two[:, 2].astype(np.int64)
        counts = [getattr(state, name) if mine == 0 else np.zeros_like(state.swaps_tried) for name in COUNTS]
        swap_chains(heat, two[:, 0].copy(), two[:, 1].copy(), rank, *counts, 0, 1, log_uniform)
        if rank[mine] != state.rank[h]:
            state.rank[h] = rank[mine]
            of_heat = found[3:].reshape(len(OF_HEATS), -1)
            for name, row in zip(OF_HEATS, of_heat):
                getattr(state, name)[state.rank[h]] = row
