"""Runs, chains and columns of an analysis on several processes: who has which, swaps, sums, gathering.

Chains need each other only to swap temperatures. Whom they may swap with is drawn beforehand, of every rank
alike, so a chain's rank knows its partner, and the two exchange what decides: log-likelihood and prior, the
place in the heat ladder, and what belongs to that place (how moves are tuned there, and counted). A chain's
random numbers are its own, so what comes out does not depend on the number of ranks.

Where ranks outnumber chains, neighbours in a group have the same chain, and each some cells of its columns.
All of them draw the same proposals; they tell each other what their cells come to, and each adds these up in
the order of cells, as one process does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, pairwise

import numpy as np

from phloem.errors import NumericalError
from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc.records import ChainState
from phloem.inference.mcmc.samples import Samples, extended
from phloem.pruning.grid import fastest

# Fields of ChainState by what their first axis is. Those of a heat travel with it from chain to chain;
# counts of swaps and of moves' jumps add up over ranks; the rest is the same on all.
OF_CHAINS = (
    "parent", "left", "right", "order", "lengths", "slot", "values", "log_likelihood", "log_prior",
    "log_working", "rank", "rng", "undefined_last",
)  # fmt: skip
OF_HEATS = ("tuning", "tried", "accepted", "batch_tried", "batch_accepted", "undefined")
COUNTS = ("swaps_tried", "swaps_accepted")
SUMS = (*COUNTS, "jumps")
OF_ALL = (
    "swap_rng", "generation", "looks", "mean", "covariance", "factor", "wander", "split_keys", "split_sums",
    "split_looks", "cumulative", "watched", "seen", "powers",
)  # fmt: skip

# Of a generation in which chains may swap with those of another process (docs/clusters.md): they pause, and
# on a GPU what was under way comes to its end.
SWAP_SECONDS = {"cpu": 2e-4, "gpu": 5e-4}


@dataclass(frozen=True)
class Share:
    """What one rank has: `chains` (global numbers) of each of some runs."""

    runs: tuple[int, ...]
    chains: range


def shares(
    n_runs: int, n_chains: int, size: int, ranks_a_run: int, speeds: Sequence[float] = ()
) -> tuple[Share, ...]:
    """Of every rank. Whole runs where there are as many as ranks; else each run has ranks of its own, among
    at most ranks_a_run of which its chains are divided. Ranks that are left over have none. speeds: of every
    rank, nothing where they are alike."""
    if size <= n_runs:
        return tuple(Share(tuple(runs), range(n_chains)) for runs in dealt(n_runs, size, speeds))
    found = []
    for run in range(n_runs):
        first, end = run * size // n_runs, (run + 1) * size // n_runs
        used = min(end - first, n_chains, ranks_a_run)
        own = dealt(n_chains, used, speeds[first : first + used])
        found += [Share((run,), chains) for chains in own]
        found += [Share((), range(0))] * (end - first - used)
    return tuple(found)


def group_speeds(speeds: Sequence[float], ranks_a_chain: int) -> tuple[float, ...]:
    """Of groups of neighbours that share a chain."""
    n, whole = ranks_a_chain, len(speeds) // ranks_a_chain
    return tuple(sum(speeds[k * n : (k + 1) * n]) for k in range(whole))


def dealt(n: int, size: int, speeds: Sequence[float] = ()) -> list[range]:
    """Neighbours among n runs or chains for each of so many ranks or GPUs, one at least, one more always to
    whoever is ready first with it. speeds: of each, nothing where they are alike."""
    if not speeds:
        return [range(k * n // size, (k + 1) * n // size) for k in range(size)]
    counts = [1] * size
    for _ in range(n - size):
        counts[min(range(size), key=lambda k: ((counts[k] + 1) / speeds[k], k))] += 1
    return [range(end - count, end) for count, end in zip(counts, accumulate(counts))]


def useful_ranks(n_chains: int, most: int, seconds: Callable[[int], float], swap_seconds: float) -> int:
    """Among how many ranks a run's chains are best divided. seconds: of a generation of so many chains on one
    rank; where there are several, each generation is as long as the largest share, and a swap."""
    times = {
        k: seconds(-(-n_chains // k)) + (k > 1) * swap_seconds for k in range(1, min(most, n_chains) + 1)
    }
    return min(times, key=lambda k: (times[k], k))


# Of a proposal whose cells several processes have, beside the message itself: the compiled loop is left, and
# taken up again (docs/clusters.md).
PAUSE_SECONDS = 5e-5
HARDLY = 1.05  # times as long as with more processes, which are better used elsewhere then


def useful_columns(n_cells: int, most: int, threads: int, seconds: float, message: float) -> int:
    """Among how many ranks the cells of a chain are best divided: the fewest that take hardly longer than
    any other number. threads: that evaluate cells at the same time, of each rank; one where a GPU does.
    seconds: of a generation of a chain on one thread; message: that asking each other takes
    a generation."""
    sizes = range(1, min(most, n_cells) + 1)
    times = [columns_seconds(n_cells, k, threads, seconds, message) for k in sizes]
    return next(k for k, taken in zip(sizes, times) if taken <= HARDLY * min(times))


def columns_seconds(n_cells: int, size: int, threads: int, seconds: float, message: float) -> float:
    """Of a generation of a chain whose cells so many ranks have; the others as in useful_columns."""
    rounds = math.ceil(math.ceil(n_cells / size) / threads)
    return rounds * seconds / n_cells + (size > 1) * (message + PAUSE_SECONDS)


def message_seconds(ranks: Ranks, times: int = 20) -> float:
    """Of all ranks at the same time: that it takes them to tell each other some numbers, the least of
    several times."""
    found = []
    for _ in range(times if ranks.size > 1 else 0):
        begin = time.perf_counter()
        ranks.shared(np.zeros(64))
        found.append(time.perf_counter() - begin)
    return min(found, default=0.0)


# Times as fast: what else a host does makes processes of one kind differ by as much for a moment.
ALIKE = 1.25


def measured_speeds(ranks: Ranks, device: str | None = None) -> tuple[float, ...]:
    """Of all ranks at the same time: how fast each is beside the first, by a piece of work that is the same
    for all; nothing where they are alike. device: where chains are evaluated, which the first one says."""
    if ranks.size == 1:
        return ()
    work = _products(ranks.broadcast(device) == "gpu")
    work()
    ranks.gather(0)  # all are warm, and are measured side by side
    return relative_speeds(ranks.broadcast(ranks.gather(fastest(work, 10))))


def relative_speeds(seconds: Sequence[float]) -> tuple[float, ...]:
    """Of what takes so long each, beside the first; nothing where they are alike."""
    if max(seconds) <= ALIKE * min(seconds):
        return ()
    return tuple(seconds[0] / taken for taken in seconds)


def _products(on_gpu: bool) -> Callable[[], object]:
    """Some milliseconds of products of float64 matrices, on the processor or the GPU of this process."""
    if on_gpu:
        from phloem.hardware.gpu_device import products

        return products(2_000)
    one = np.full((300, 300), 1.0 / 300)
    return lambda: one @ one @ one


def dealt_cells(work: Sequence[float], size: int, speeds: Sequence[float] = ()) -> tuple[range, ...]:
    """Neighbouring cells for each of so many ranks, one at least; about as much work each, or as much as
    their speeds ask for."""
    done, ends, fast = np.cumsum(work), [0], np.cumsum(speeds or np.ones(size))
    for k in range(1, size):
        end = int(np.searchsorted(done, done[-1] * fast[k - 1] / fast[-1] - 0.5 * work[ends[-1]])) + 1
        ends.append(min(max(end, ends[-1] + 1), len(work) - size + k))
    return tuple(range(a, b) for a, b in pairwise([*ends, len(work)]))


DEAR_SWAPS = "swaps between more would take longer than they save"
DEAR_SUMS = "asking each other for parts of a likelihood would take longer than dividing it saves"


def shares_text(
    given: Sequence[Share], how: str, why_idle: str = DEAR_SWAPS, size: int = 0, columns: int = 1
) -> str:
    """Who has what, for people. size: how many processes there are, if not one a share; columns: how many
    neighbours have the same share."""
    busy, most = [share for share in given if share.chains], max(len(share.chains) for share in given)
    runs = [run for share in given for run in share.runs]
    size, idle = size or len(given), (size or len(given)) - columns * len(busy)
    if columns > 1:
        each = f"some columns of a chain, which {columns} share"
    elif len(set(runs)) == len(runs):
        each = "whole runs"
    else:
        each = f"up to {most} chain{'s' * (most > 1)} of a run"
    text = f"{size} processes, {how}; each has {each}"
    return f"{text}, {idle} idle: {why_idle}" if idle else text


@dataclass(frozen=True)
class Spread:
    """The ranks of an analysis, and what each has: shares of every group of ranks_a_chain neighbours. beside:
    those of the group of this one; the first of them speaks for all. speeds: of every rank, nothing where
    they are alike."""

    ranks: Ranks
    shares: tuple[Share, ...]
    ranks_a_chain: int = 1
    beside: Ranks = field(default_factory=Ranks)
    speeds: tuple[float, ...] = ()

    @property
    def alone(self) -> bool:
        return self.ranks.size == 1

    @property
    def speaks(self) -> bool:
        return self.beside.number == 0

    @property
    def own(self) -> Share:
        group = self.ranks.number // self.ranks_a_chain
        return self.shares[group] if group < len(self.shares) else Share((), range(0))

    @property
    def own_speeds(self) -> tuple[float, ...]:
        """Of those that share the chains of this one."""
        first = self.ranks.number // self.ranks_a_chain * self.ranks_a_chain
        return self.speeds[first : first + self.ranks_a_chain]

    def among(self, run: int) -> tuple[range, ...]:
        """The chains of a run in every group."""
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
    """What a run needs of other ranks. among: its chains in every group of neighbours that have the same, of
    which the first swaps with the first of others, the second with the second, and so on; own: those here;
    beside: the ranks of the group of this one, which share the columns."""

    ranks: Ranks
    among: tuple[range, ...]
    own: range
    beside: Ranks = field(default_factory=Ranks)

    def exchanged(self, message: np.ndarray, group: int) -> np.ndarray:
        """What a rank of another group says meanwhile."""
        return self.ranks.exchanged(message, group * self.beside.size + self.beside.number)

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
                told = self.exchanged(message.ravel(), rank).reshape(message.shape)
                found.append(told[: len(chains)])
        return np.concatenate(found)

    def swap(self, state: ChainState, heat: np.ndarray, pair: np.ndarray, log_uniform: float) -> None:
        """Exchange temperatures of a chain here and one elsewhere, or not, as in one process."""
        from phloem.inference.mcmc.compiled.run import swap_chains

        mine = 0 if pair[0] in self.own else 1
        h, other = int(pair[mine]) - self.own.start, int(pair[1 - mine])
        partner = next(rank for rank, chains in enumerate(self.among) if other in chains)
        rows = [getattr(state, name)[state.rank[h]] for name in OF_HEATS]
        numbers = state.log_prior[h], state.log_likelihood[h], state.log_working[h], state.rank[h]
        message = np.concatenate([numbers, *rows]).astype(np.float64)
        found = self.exchanged(message, partner)
        two = np.stack([message, found] if mine == 0 else [found, message])
        logs, rank = tuple(two[:, k].copy() for k in range(3)), two[:, 3].astype(np.int64)
        counts = [getattr(state, name) if mine == 0 else np.zeros_like(state.swaps_tried) for name in COUNTS]
        swap_chains(heat, logs, rank, *counts, 0, 1, log_uniform)
        if rank[mine] != state.rank[h]:
            state.rank[h] = rank[mine]
            of_heat = found[4:].reshape(len(OF_HEATS), -1)
            for name, row in zip(OF_HEATS, of_heat):
                getattr(state, name)[state.rank[h]] = row


@dataclass(frozen=True, eq=False)
class Columns:
    """What a chain needs whose cells several ranks have: beside, these ranks alone; cells of each."""

    beside: Ranks
    cells: tuple[range, ...]

    @property
    def own(self) -> range:
        return self.cells[self.beside.number]

    def gather(self, values: np.ndarray, drawn: Sequence[float]) -> None:
        """Complete the values of all cells, numbers or rows of them, of which those here are there. drawn:
        what every rank must have drawn alike. NumericalError where one did not."""
        n, each = len(drawn), values[0].size
        message = np.zeros(n + each * max(map(len, self.cells)))
        message[:n] = drawn
        message[n : n + each * len(self.own)] = values[self.own.start : self.own.stop].ravel()
        found = self.beside.shared(message)
        if (found[:, :n].view(np.int64) != found[0, :n].view(np.int64)).any():
            raise NumericalError(
                "processes that share a chain's columns drew different proposals: their processors, or the "
                "libraries on their hosts, round differently; start no more processes than there are chains, "
                "or all on hosts of one kind"
            )
        for row, cells in zip(found, self.cells):
            told = row[n : n + each * len(cells)]
            values[cells.start : cells.stop] = told.reshape(-1, *values.shape[1:])

    def summed(self, counts: np.ndarray) -> np.ndarray:
        """The sum of whole numbers of all ranks."""
        return self.beside.shared(counts).sum(0)
