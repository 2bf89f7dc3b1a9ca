"""All runs of an analysis: threads, checkpoints, trace files, progress, stopping."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from phloem.hardware.blas import one_blas_thread
from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc.checkpoint import Checkpoint
from phloem.inference.mcmc.convergence import Diagnosis, diagnose, kept, looks_at
from phloem.inference.mcmc.guard import Guard, Plain, plain_prior
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.run import Device, Run, advanced, as_parts, new_run
from phloem.inference.mcmc.samples import Samples, draw, extended, no_samples, trace_columns
from phloem.inference.mcmc.seen import seen_of, sent
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import (
    Share,
    Spread,
    Swaps,
    group_speeds,
    merged_samples,
    shares,
    whole_state,
)
from phloem.inference.mcmc.structure import ChainModel
from phloem.inference.mcmc.trace_files import TraceFiles
from phloem.inference.mcmc.undefined import check_undefined
from phloem.inference.mcmc.working import plain_working
from phloem.tree.tree import Tree

PROGRESS_SECONDS = 0.2


@dataclass(frozen=True)
class Progress:
    """generation: of the slowest run. total: where they end, or are expected to have converged; None while
    nobody knows. speed: chain-generations a second, all chains of all runs. seconds_left: to total.
    diagnosis: the last look at convergence, if any. moves: name → (times the cold chains tried it, share that
    was accepted), those tried. tuning: the generation up to which moves adapt, whose samples no summary
    uses."""

    generation: int
    total: int | None
    speed: float
    seconds_left: float
    diagnosis: Diagnosis | None
    moves: dict[str, tuple[int, float]] = field(default_factory=dict)
    tuning: int = 0


@dataclass(frozen=True, eq=False)
class Sampled:
    """What came out: runs with their samples; the last diagnosis; seconds and chain-generations of this
    call (less where it resumed); resumed_at: the generation it resumed at, or None."""

    runs: tuple[Run, ...]
    diagnosis: Diagnosis
    seconds: float
    chain_generations: int
    resumed_at: int | None


@dataclass(frozen=True)
class Where:
    """Where chains are: device of the likelihood; ranks, processes that all sample alike, among which runs
    and chains are divided, those of a run among ranks_a_run at most, and the columns of a chain, where there
    are as many times more ranks than chains, among ranks_a_chain. speeds: of every rank, nothing where they
    are alike."""

    device: Device = "cpu"
    ranks: Ranks = field(default_factory=Ranks)
    ranks_a_run: int = 1 << 30
    ranks_a_chain: int = 1
    speeds: tuple[float, ...] = ()

    def reads(self, n_runs: int, n_chains: int) -> bool:
        """Whether this process is to have the data: of those that have a chain the first, which sends the
        others their columns."""
        group, place = divmod(self.ranks.number, self.ranks_a_chain)
        given = self._given(n_runs, n_chains)
        return place == 0 and group < len(given) and bool(given[group].chains)

    def spread(self, n_runs: int, n_chains: int) -> Spread:
        """Of all ranks at the same time."""
        n = self.ranks_a_chain
        assert n == 1 or n * n_runs * n_chains <= self.ranks.size
        return Spread(self.ranks, self._given(n_runs, n_chains), n, self.ranks.groups_of(n), self.speeds)

    def _given(self, n_runs: int, n_chains: int) -> tuple[Share, ...]:
        """What each group of processes that share a chain has."""
        n = self.ranks_a_chain
        return shares(n_runs, n_chains, self.ranks.size // n, self.ranks_a_run, group_speeds(self.speeds, n))


@one_blas_thread()
def sample(
    observed: Observations | Sequence[Observations],
    structure: ChainModel,
    settings: ChainSettings,
    prefix: str | None = None,
    identity: dict | None = None,
    progress: Callable[[Progress], None] | None = None,
    start_tree: Tree | None = None,
    plain: Plain | None = None,
    where: Where | None = None,
) -> Sampled:
    """Run the chains to the end of settings.generations, or until they have converged.

    prefix: of the trace files and of the checkpoint; None: all stays in memory. observed: of every part of
    structure; nothing unless where.reads. identity: what must be equal to resume. Numbers depend neither on
    threads nor on ranks. start_tree: that chains start near, unless resumed. plain: what the guard compares
    with. Of several ranks the first writes. InputError: another's checkpoint; NumericalError: the guard."""
    where, parts, plain = where or Where(), as_parts(observed), plain if settings.use_data else None
    spread = where.spread(settings.n_runs, settings.n_chains)
    prefix = prefix if spread.ranks.number == 0 else None
    checkpoint = Checkpoint(prefix, (identity or {}) | {"n_runs": settings.n_runs}) if prefix else None
    stored = checkpoint.load() if checkpoint else None
    runs = _new_runs((parts, structure, settings, start_tree, where.device), spread, stored or [])
    guard = _guard(parts, structure, settings, plain if spread.speaks else None, prefix)
    names, taxa = ("LnL", "LnPr", *guard.names), parts[0].taxa if parts else ()
    for run in runs:
        guard.check_chains(run.number, _chains(run))
    start = at = spread.ranks.broadcast(max((int(s.generation[0]) for s, _ in stored or ()), default=0))
    runs = [advanced(run, at - run.generation) for run in runs]  # one may have been stopped before others
    whole, runs = gathered(spread, runs, [samples for _, samples in stored or ()])
    if checkpoint and not stored:
        checkpoint.save(whole)  # before any trace file, so that whoever finds one finds both
    diagnosis = spread.ranks.broadcast(_diagnosis(whole, names, taxa, settings) if whole else None)
    files = TraceFiles(prefix, taxa, whole, diagnosis.asdsf) if prefix else None
    begun, each, stops = time.monotonic(), settings.n_chains * settings.n_runs, settings.until_converged
    every, end = settings.check_every, settings.generations
    while at < end and not (stops and diagnosis.met and looks_at(at, every, end)):
        block, before = min(every - at % every, end - at), [run.samples for run in whole]
        goal = expected_end(settings, diagnosis)
        report = reporter(progress, runs, (each, goal), (begun, start), diagnosis)
        keep = checkpoint.save if checkpoint and spread.alone else None
        runs = advance_all(advanced, runs, block, settings.threads or len(runs), report, keep, spread.alone)
        at += block
        for run in runs if at >= end else ():
            guard.check_chains(run.number, _chains(run))
        whole, runs = gathered(spread, runs, before)
        for run, former in zip(whole, before):
            guard.check_samples(run.number, run.samples, former.n, run.state)
        check_undefined(whole, prefix)
        if checkpoint:
            checkpoint.save(whole)
        if (looked := looks_at(at, every, end)) and whole:
            diagnosis = _diagnosis(whole, names, taxa, settings)
        if files:
            files.add(whole, diagnosis.asdsf if looked else None)
        diagnosis = spread.ranks.broadcast(diagnosis)
    if files:
        files.close(whole)
    done = time.monotonic() - begun, (at - start) * each
    return Sampled(tuple(whole), diagnosis, *done, start if stored else None)


def _guard(
    parts: Sequence[Observations], structure: ChainModel, settings: ChainSettings, plain: Plain | None,
    prefix: str | None,
) -> Guard:  # fmt: skip
    working, prior = settings.working, plain_prior(structure, settings.priors)
    names = trace_columns(structure, settings.priors, working is not None).names
    begins = None if working is None else plain_working(structure, working)
    return Guard(parts, settings.n_chains, names, plain, prior, prefix, settings.precision, begins)


def _new_runs(made_from: tuple, spread: Spread, stored) -> list[Run]:
    """Every run of this rank at its start, or where it is stored. What cores they leave over, their chains
    share."""
    parts, structure, settings, start_tree, device = made_from
    own, runs = spread.own, []
    shared = spread.beside.size > 1 and bool(own.runs)
    size = spread.beside.size
    made = partial(seen_of, parts, structure, settings, size, device == "gpu")
    observed = sent(spread.beside, spread.own_speeds, made) if shared else parts
    states = spread.ranks.broadcast([state for state, _ in stored])
    threads = max(1, threads_of(settings, spread.ranks) // max(1, len(own.runs)))
    for r in own.runs:
        begin, swaps = states[r] if states else start_tree, None
        samples = stored[r][1] if stored and spread.alone else None  # else rank 0 adds them
        if len(own.chains) < settings.n_chains or shared:
            swaps = Swaps(spread.ranks, spread.among(r), own.chains, spread.beside)
        runs.append(new_run(r, observed, structure, settings, begin, samples, threads, device, swaps))
    return runs


def threads_of(settings: Any, ranks: Ranks) -> int:
    """Of this process, for settings of either sampler: as asked for, or the cores that it may use."""
    return settings.threads or ranks.cores


def gathered(spread: Spread, runs: list, before: list[Samples]) -> tuple[list, list]:
    """All runs, of either sampler, whole, with what was drawn of each `before` and since, on rank 0, none on
    others; and those of this rank, which go on. Where there is one rank they are the same."""
    if spread.alone:
        return runs, runs
    said = [(run.number, run.state, run.samples) for run in runs if spread.speaks]
    parts = spread.ranks.gather(said)
    going = [replace(run, samples=nothing_of(run.samples)) for run in runs]
    if parts is None:
        return [], going
    whole = []
    for r in range(runs[0].settings.n_runs):
        states, drawn = zip(*((state, new) for rank in parts for n, state, new in rank if n == r))
        samples = extended(before[r], [merged_samples(drawn)]) if before else merged_samples(drawn)
        whole.append(runs[0].holding(r, whole_state(states), samples))
    return whole, going


def nothing_of(samples: Samples) -> Samples:
    """None, in rows as long."""
    return no_samples(samples.numbers.shape[1] - 2, samples.parent.shape[1], samples.sets.shape[1])


def advance_all(
    advance: Callable,
    runs: list,
    block: int,
    threads: int,
    report: Callable[[], None],
    keep: Callable[[list], None] | None = None,
    alone: bool = True,
) -> list:
    """Every run by `block` generations, in threads. An interrupt, SIGTERM or SIGHUP stop each at its next
    sample, not all at the same generation; keep is told the runs then. advance: (run, generations, whether to
    stop) → the run then. alone: False where a thread may wait for another process, which nobody waits for
    after an error."""
    if not runs:
        return []
    stop, pool = threading.Event(), ThreadPoolExecutor(min(len(runs), threads))
    futures = [pool.submit(advance, run, block, stop.is_set) for run in runs]
    try:
        with _asked_to_end():
            while wait(futures, timeout=PROGRESS_SECONDS).not_done:
                report()
        return [future.result() for future in futures]
    except KeyboardInterrupt:
        stop.set()
        if keep is not None:
            keep([future.result() for future in futures])
        raise
    finally:
        stop.set()
        pool.shutdown(wait=alone)


@contextmanager
def _asked_to_end() -> Iterator[None]:
    """Meanwhile a request to end, as batch systems send it and terminals that go away, is an interrupt. Where
    one is ignored (nohup) or dealt with already, it stays so."""
    asked = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        asked = []  # only that one may say what a signal does
    usual = [one for one in asked if signal.getsignal(one) is signal.SIG_DFL]
    for one in usual:
        signal.signal(one, signal.default_int_handler)
    try:
        yield
    finally:
        for one in usual:
            signal.signal(one, signal.SIG_DFL)


def _chains(run: Run) -> dict[int, Samples]:
    """The present state of every chain here, by its rank of heat."""
    return {rank: draw(run.state, run.columns, rank) for rank in sorted(run.state.rank.tolist())}


def reporter(
    progress: Callable[[Progress], None] | None, runs: list, chains: tuple[int, int | None],
    since: tuple[float, int], diagnosis: Diagnosis,
) -> Callable[[], None]:  # fmt: skip
    """What tells how far the runs are. chains: of all runs, and Progress.total; since: when, and at which
    generation, sampling began."""
    (each, total), (begun, start) = chains, since

    def report() -> None:
        if progress is None:
            return
        slowest = min((run.generation for run in runs), default=start)
        speed = max(slowest - start, 0) * each / max(time.monotonic() - begun, 1e-9)
        left = (total - slowest) * each / speed if speed > 0 and total is not None else float("nan")
        tuning = runs[0].settings.tuning if runs else 0
        progress(Progress(slowest, total, speed, left, diagnosis, accepted_shares(runs), tuning))

    return report


def accepted_shares(runs: Sequence) -> dict[str, tuple[int, float]]:
    """Of the cold chains that are here, as Progress.moves has them."""
    if not runs:
        return {}
    tried, accepted = (
        np.sum([np.atleast_2d(getattr(run.state, name))[0] for run in runs], axis=0)
        for name in ("tried", "accepted")
    )
    of_moves = zip(runs[0].moves, tried, accepted)
    return {move.name: (int(n), float(a / n)) for move, n, a in of_moves if n}


def expected_end(settings: Any, diagnosis: Diagnosis) -> int | None:
    """The last generation, or the checkpoint before at which runs should have converged; None while nobody
    knows. settings: of either sampler."""
    if not settings.until_converged:
        return settings.generations
    if not np.isfinite(diagnosis.forecast):
        return None
    return min(settings.generations, -int(-diagnosis.forecast // settings.check_every) * settings.check_every)


def _diagnosis(runs: list[Run], names, taxa, settings: ChainSettings) -> Diagnosis:
    first = kept(runs[0].samples, settings.burn_in, settings.tuning)
    return diagnose([run.samples for run in runs], names, taxa, first, settings.convergence)
