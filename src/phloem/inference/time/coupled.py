"""Metropolis-coupled chains over dated trees: every chain is a run of its own (run.py), with its own
likelihood, and now and then two of them may exchange their temperatures.

The chain of rank r samples posterior**β_r, β_r = 1 / (1 + heating · r), as inference/mcmc has it: the power
of prior and likelihood, as a density by heights, deviations of branch rates and numbers (and sequences of
ancestors, where these are sampled). What belongs to a temperature goes with it from chain to chain: how moves
are tuned, lengths of Hamiltonian steps, their scales, and counts.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Event, Semaphore
from typing import Any, NamedTuple

import numpy as np

from phloem.density.space import Space
from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc.heating import ladder
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.run import Device
from phloem.inference.mcmc.samples import Samples, extended
from phloem.inference.mcmc.start import SWAPS, stream
from phloem.inference.time.draws import Columns
from phloem.inference.time.move_table import ChainMove
from phloem.inference.time.records import TimeState
from phloem.inference.time.run import Run, Stretch, begin_piece, drawn, end_piece, new_run, next_piece, work
from phloem.inference.time.seen import DatedSeen
from phloem.inference.time.settings import TimeSettings
from phloem.inference.time.start import Origin
from phloem.inference.time.structure import TimeModel

POWERED = "log_likelihood", "log_prior", "log_working"  # as TimeSettings.powers has their powers
OF_HEATS = (
    "tuning", "tried", "accepted", "batch_tried", "batch_accepted", "undefined", "steps", "clade", "seen",
    "mean", "square", "variance", "usual", "number_seen", "number_mean", "number_square", "number_variance",
    "diverged", "diverged_at",
)  # fmt: skip
"""Fields of TimeState that belong to a temperature; the others to a chain."""


class Coupling(NamedTuple):
    """rank: (H,) int64 of heat, of every chain, 0 the cold one. swap_rng: (4,). swaps_tried, swaps_accepted:
    (H, H) int64 by two ranks, the lower one first."""

    rank: np.ndarray
    swap_rng: np.ndarray
    swaps_tried: np.ndarray
    swaps_accepted: np.ndarray


CoupledState: Any = namedtuple("CoupledState", (*TimeState._fields, *Coupling._fields))  # type: ignore
"""All chains of a run, which is what a checkpoint stores: fields of TimeState with an axis in front, of
chains, or of ranks of heat where they are OF_HEATS; and those of Coupling."""


@dataclass(frozen=True, eq=False)
class CoupledRun:
    """As run.Run, of several chains. chains: by number; a swap puts others in their places, their own samples
    mean nothing. threads: that chains share; what happens does not depend on them."""

    chains: list[Run]
    coupling: Coupling
    samples: Samples
    threads: int = 1

    @property
    def number(self) -> int:
        return self.chains[0].number

    @property
    def settings(self) -> TimeSettings:
        return self.chains[0].settings

    @property
    def model(self) -> TimeModel:
        return self.chains[0].model

    @property
    def moves(self) -> tuple[ChainMove, ...]:
        return self.chains[0].moves

    @property
    def columns(self) -> Columns:
        return self.chains[0].columns

    @property
    def space(self) -> Space:
        return self.model.space

    @property
    def generation(self) -> int:
        return self.chains[0].generation

    def holding(self, number: int, state: Any, samples: Samples) -> CoupledRun:
        """The same of another run, to be looked at, not advanced. state: CoupledState."""
        coupling = _coupling_of(state)
        states = [_state_of(state, coupling, h) for h in range(len(self.chains))]
        chains = [run.holding(number, own, run.samples) for run, own in zip(self.chains, states)]
        return replace(self, chains=chains, coupling=coupling, samples=samples)

    @property
    def by_rank(self) -> list[Run]:
        """The chains, the cold one first."""
        return [self.chains[h] for h in np.argsort(self.coupling.rank)]

    @property
    def cold(self) -> Run:
        return self.by_rank[0]

    @property
    def state(self) -> Any:
        """A copy of everything, CoupledState."""
        by_rank = self.by_rank
        stacked = {
            name: np.stack(
                [getattr(run.state, name) for run in (by_rank if name in OF_HEATS else self.chains)]
            )
            for name in TimeState._fields
        }
        return CoupledState(**stacked, **{k: v.copy() for k, v in self.coupling._asdict().items()})


def new_coupled_run(
    number: int,
    observed: Observations | Sequence[Observations] | DatedSeen,
    model: TimeModel,
    settings: TimeSettings,
    stored: tuple[Any, Samples] | None = None,
    origin: Origin | None = None,
    device: Device = "cpu",
    threads: int = 1,
    beside: Ranks | None = None,
) -> CoupledRun:
    """settings.n_chains chains at their starts, or where they were stored (CoupledState and samples);
    arguments and errors as of run.new_run. Ranks that share columns ask each other of a chain at a time."""
    n = settings.n_chains
    if stored is None:
        swaps = [np.zeros((n, n), np.int64) for _ in range(2)]
        seed = settings.seed if settings.swap_seed is None else settings.swap_seed
        coupling = Coupling(np.arange(n), stream(seed, number, SWAPS), *swaps)
    else:
        coupling = _coupling_of(stored[0])
    chains = []
    for h in range(n):
        begin = None if stored is None else (_state_of(stored[0], coupling, h), stored[1])
        chains.append(new_run(number, observed, model, settings, begin, origin, device, h, beside))
    return CoupledRun(chains, coupling, chains[0].samples, threads)


def _coupling_of(whole: Any) -> Coupling:
    return Coupling(*(np.array(getattr(whole, name)) for name in Coupling._fields))


def _state_of(whole: Any, coupling: Coupling, h: int) -> TimeState:
    """That of chain h."""
    rows = {name: coupling.rank[h] if name in OF_HEATS else h for name in TimeState._fields}
    return TimeState(**{name: np.array(getattr(whole, name)[row]) for name, row in rows.items()})


def heats(settings: TimeSettings) -> np.ndarray:
    """(H,) by rank, the powers of the posterior."""
    return ladder(settings.heating, settings.n_chains)


def coupled_advanced(
    run: CoupledRun, n_generations: int, stopped: Callable[[], bool] = lambda: False
) -> CoupledRun:
    """The run after n_generations more of every chain, its cold chain sampled on the way. stopped: asked at
    every sample; True gives up."""
    every, end, draws = run.settings.sample_every, run.generation + n_generations, []
    while run.generation < end and not stopped():
        here, until = next_piece(run.cold, end)
        for chain in run.chains:
            begin_piece(chain, here)
        _work_all(run, until - run.generation, here)
        for chain in run.chains:
            end_piece(chain, here)
        if run.generation % every == 0:
            draws.append(drawn(run.cold))
    return replace(run, samples=extended(run.samples, draws))


class Meeting(NamedTuple):
    """Two chains that may swap after so many generations of a piece, and the logarithm that decides."""

    after: int
    first: int
    second: int
    log_uniform: float


def _work_all(run: CoupledRun, n: int, here: Stretch) -> None:
    """All chains by n generations. A chain waits for another one only where they are to swap."""
    meetings, powers = _drawn_meetings(run, n), heats(run.settings)
    if run.threads > 1:
        _work_in_threads(run, n, here, meetings)
        return
    done = [0] * len(run.chains)

    def go(h: int, to: int) -> None:
        if to > done[h]:
            work(run.chains[h], to - done[h], here, powers[run.coupling.rank[h]])
            done[h] = to

    for meeting in meetings:
        go(meeting.first, meeting.after)
        go(meeting.second, meeting.after)
        _swap(run, meeting, here)
    for h in range(len(run.chains)):
        go(h, n)


def _work_in_threads(run: CoupledRun, n: int, here: Stretch, meetings: Sequence[Meeting]) -> None:
    """The same, every chain in a thread of its own, of which run.threads work at a time."""
    working, powers, failed = Semaphore(run.threads), heats(run.settings), Event()
    there, over = ([Event() for _ in meetings] for _ in range(2))

    def go(h: int) -> None:
        done = 0
        for k, meeting in enumerate(meetings):
            if h not in (meeting.first, meeting.second) or failed.is_set():
                continue
            step(h, meeting.after - done)
            done = meeting.after
            if h == meeting.first:
                there[k].wait()
                if not failed.is_set():
                    _swap(run, meeting, here)
                over[k].set()
            else:
                there[k].set()
                over[k].wait()
        if not failed.is_set():
            step(h, n - done)

    def step(h: int, more: int) -> None:
        if more > 0:
            with working:
                work(run.chains[h], more, here, powers[run.coupling.rank[h]])

    def guarded(h: int) -> None:
        try:
            go(h)
        except BaseException:
            failed.set()  # others would wait for this chain
            for event in (*there, *over):
                event.set()
            raise

    with ThreadPoolExecutor(len(run.chains)) as pool:
        futures = [pool.submit(guarded, h) for h in range(len(run.chains))]
    for future in futures:
        future.result()


def _drawn_meetings(run: CoupledRun, n: int) -> list[Meeting]:
    """Of the next n generations. Numbers are drawn for every one, whether chains may swap then or not."""
    from phloem.inference.mcmc.compiled.run import draw_swaps

    first, every = run.generation, run.settings.swap_every
    pair, log_uniform = np.full((n, 2), -1), np.zeros(n)
    draw_swaps(run.coupling.swap_rng, len(run.chains), pair, log_uniform)
    after = [g + 1 for g in range(n) if (first + g + 1) % every == 0]
    return [Meeting(g, int(pair[g - 1, 0]), int(pair[g - 1, 1]), float(log_uniform[g - 1])) for g in after]


def _swap(run: CoupledRun, meeting: Meeting, here: Stretch) -> None:
    """Exchange the temperatures of two chains, or not."""
    from phloem.inference.mcmc.compiled.run import swap_chains

    i, j, coupling = meeting.first, meeting.second, run.coupling
    a, b = run.chains[i].state, run.chains[j].state
    powers = [run.settings.powers(here.power, heat) for heat in heats(run.settings)]
    rank = coupling.rank[[i, j]]
    swap_chains(
        np.array(powers), tuple(np.append(getattr(a, name), getattr(b, name)) for name in POWERED), rank,
        coupling.swaps_tried, coupling.swaps_accepted, 0, 1, meeting.log_uniform,
    )  # fmt: skip
    if rank[0] != coupling.rank[i]:
        coupling.rank[[i, j]] = rank
        of_a, of_b = ({name: getattr(state, name) for name in OF_HEATS} for state in (a, b))
        run.chains[i] = replace(run.chains[i], state=a._replace(**of_b))
        run.chains[j] = replace(run.chains[j], state=b._replace(**of_a))
