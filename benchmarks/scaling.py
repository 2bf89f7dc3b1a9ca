"""How `phloem mcmc` would scale to 64 processes, where that can be said.

    python -m torch.distributed.run --standalone --nproc-per-node 16 benchmarks/scaling.py
    mpiexec -n 16 python benchmarks/scaling.py --out measured.json
    python benchmarks/scaling.py --read measured.json       (what was measured elsewhere, replayed again)

A core a process, one thread each. Measured on 1, 2, 4, 8 and all processes: seconds a generation of 64 chains
of one run (chains among processes), and of one chain (its columns among them), and what of these is spent on
messages. The model is fitted on at most 8 processes: a chain's steps, drawn from those of one chain; how much
slower a core gets when others work; messages, a + b log2(processes). It replays generation by generation who
waits for whom. A forecast is printed only where it is within 10 % of what all processes were measured at,
twice as many as it was fitted on or more. It takes hosts to be as this one, and messages between them as
within it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import NamedTuple

import numpy as np
from mcmc_devices import case
from scipy.optimize import nnls

from phloem.hardware.ranks import Ranks, ranks
from phloem.inference.mcmc.compiled.run import SAMPLE
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import Run, _work_all, advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import Spread, Swaps, dealt_cells, shares
from phloem.inference.mcmc.structure import structure_of_model
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.grammar import parse_model
from phloem.tree.random import uniform_unrooted

FITTED = 8  # processes at most
TIMES = 3  # that everything is measured
WITHIN = 0.1
FORECAST = (16, 32, 64)


class Work(NamedTuple):
    """columns: of one chain's amino acids, 0: chains of nucleotides of carnivores."""

    chains: int
    columns: int
    generations: int

    @property
    def name(self) -> str:
        if self.columns:
            return f"one chain, 31 taxa x {self.columns:,} amino acids, LG+G4"
        return f"{self.chains} chains of one run, carnivores nucleotides, GTR+G4"


class Measured(NamedTuple):
    """Of so many processes, seconds a generation: in all, and of that with messages not counted, the mean of
    the processes, the least of several times. cells: of a chain. most: how much longer than the mean the
    slowest of them is busy."""

    size: int
    seconds: float
    busy: float
    cells: int
    most: float = 1.0


class Messages:
    """Counts the seconds that this process spends on them, in place of Ranks' own functions."""

    def __init__(self) -> None:
        self.seconds = 0.0
        for name in ("exchanged", "shared"):
            setattr(Ranks, name, self._timed(getattr(Ranks, name)))

    def _timed(self, right):
        def timed(*arguments):
            begin = time.perf_counter()
            found = right(*arguments)
            self.seconds += time.perf_counter() - begin
            return found

        return timed


def data_of(work: Work):
    if not work.columns:
        alignments, structure = case("carnivores-nucleotides")
        return alignments[0], structure
    tree = uniform_unrooted(31, np.random.default_rng(1), 0.05)
    data = simulate_alignment(tree, parse_model("LG+G4{0.7}", datatype="protein"), work.columns, seed=1)
    return data, structure_of_model(model_for_alignment("LG+G4", data), data.n_sites)


def run_of(here: Ranks, work: Work, size: int) -> Run | None:
    """What this process has of the work of so many; None of those that have nothing."""
    together = size if work.columns else 1
    beside = here.groups_of(together)
    if here.number >= size:
        return None
    spread = Spread(here, shares(1, work.chains, size // together, size), together, beside)
    alignment, structure = data_of(work)
    swaps = Swaps(here, spread.among(0), spread.own.chains, beside) if size > 1 else None
    settings = ChainSettings(n_runs=1, n_chains=work.chains, sample_every=10, tuning_generations=0)
    return new_run(0, observations(alignment), structure, settings, threads=1, swaps=swaps)


def measured(here: Ranks, work: Work, size: int) -> Measured:
    """On so many of the processes, at the same time; the others wait."""
    run = run_of(here, work, size)
    run = None if run is None else advanced(run, 10)
    return min((once(here, run, work, size) for _ in range(TIMES)), key=lambda one: one.seconds)


def once(here: Ranks, run: Run | None, work: Work, size: int) -> Measured:
    """The same generations of a run, from where it is."""
    here.gather(0)
    begin, before = time.perf_counter(), MESSAGES.seconds
    if run is not None:
        advanced(run, work.generations)
    took, waited = time.perf_counter() - begin, MESSAGES.seconds - before
    cells = 0 if run is None else run.shared.cell_values.shape[1]
    found = here.broadcast(here.gather((took, took - waited, cells)))[:size]
    busy = np.array([one for _, one, _ in found]) / work.generations
    seconds = max(one for one, *_ in found) / work.generations
    return Measured(size, seconds, float(busy.mean()), found[0][2], float(busy.max() / busy.mean()))


def steps_of_a_chain(here: Ranks, work: Work) -> np.ndarray:
    """(n,) how long generations of one chain take on one process, over their mean."""
    run = run_of(here, work._replace(chains=1), 1)
    found = []
    for _ in range(20 * work.generations if run is not None else 0):
        begin = time.perf_counter()
        _work_all(run, np.full((1, 2), -1), np.zeros(1), SAMPLE)
        found.append(time.perf_counter() - begin)
    steps = here.broadcast(np.array(found))
    return steps / steps.mean()


def message_seconds(here: Ranks, size: int) -> float:
    """That so many processes take to tell each other 128 numbers, the median of many times."""
    beside, found = here.groups_of(size), []
    for _ in range(300):
        begin = time.perf_counter()
        beside.shared(np.zeros(128))
        found.append(time.perf_counter() - begin)
    return float(np.median(here.broadcast(found)))


# The model.


class Model(NamedTuple):
    """unit: seconds of a generation of a chain, or of a cell, on one process; crowd: more for every other one
    at work on its host, which has so many cores; pause: of leaving and taking up the loop; message: a, b of
    a + b log2(processes)."""

    unit: float
    crowd: float
    message: tuple[float, float]
    pause: float
    host: int

    def of(self, size: int) -> tuple[float, float]:
        """Seconds of a unit, and of a message, among so many."""
        beside = min(size, self.host) - 1
        return self.unit * (1 + self.crowd * beside), self.message[0] + self.message[1] * np.log2(
            max(size, 2)
        )


def fitted(work: Work, found: list[Measured], messages: dict[int, float]) -> Model:
    """By least squares, relative, of what FITTED processes at most were measured at."""
    used = [one for one in found if one.size <= FITTED]
    sizes = np.array([one.size for one in used], float)
    # busy = (units of a process) · unit · (1 + crowd · (size - 1)) + pause · (pauses a generation)
    units = np.array([(one.cells if work.columns else work.chains) / one.size for one in used])
    pauses = np.array([pauses_of(work, one.size) for one in used])
    busy = np.array([one.busy for one in used])
    columns = np.stack([units, units * (sizes - 1), pauses], 1) / busy[:, None]
    # None of them less than nothing: one core that was slow would else be taken for a crowd that speeds up.
    (unit, more, pause), _ = nnls(columns, np.ones(len(used)))
    asked = {size: seconds for size, seconds in messages.items() if size <= FITTED}
    slope, begin = 0.0, next(iter(asked.values()), 0.0)  # one process asks nobody
    if len(asked) > 1:
        slope, begin = np.polyfit(np.log2(list(asked)), list(asked.values()), 1).tolist()
    return Model(unit, more / unit, (begin, slope), pause, found[-1].size)


def pauses_of(work: Work, size: int) -> float:
    """A generation and process: of columns one; of chains as often as a pair drawn has one here and one
    elsewhere."""
    if size == 1:
        return 0.0
    if work.columns:
        return 1.0
    here = work.chains / size
    return 2 * here * (work.chains - here) / (work.chains * (work.chains - 1))


def replayed(
    work: Work, model: Model, steps: np.ndarray, size: int, cells: int, generations: int = 400
) -> float:
    """Seconds a generation: every process does its units, steps drawn from the measured ones, and waits for
    whom it talks to."""
    rng, clock = np.random.default_rng(1), np.zeros(size)
    unit, message = model.of(size)
    if work.columns:
        most = max(map(len, dealt_cells(np.ones(cells), size)))
        return most * unit + (size > 1) * (message + model.pause)
    owner = np.arange(work.chains) * size // work.chains
    message = model.of(2)[1]
    for _ in range(generations):
        drawn = rng.choice(steps, work.chains)
        clock += unit * np.bincount(owner, weights=drawn, minlength=size)
        i, j = owner[rng.choice(work.chains, 2, replace=False)]
        if i != j:
            clock[[i, j]] = max(clock[i], clock[j]) + message + model.pause
    return float(clock.max()) / generations


def report(of: Found) -> None:
    work, found, steps, _ = of
    model = fitted(work, found, of.messages)
    print(f"\n{work.name}\nprocesses\tmeasured ms\treplayed ms\toff by\tfaster", flush=True)
    off = 0.0
    for one in found:
        again = replayed(work, model, steps, one.size, one.cells)
        off = again / one.seconds - 1
        faster, fit = found[0].seconds / one.seconds, "\t(not fitted)" if one.size > FITTED else ""
        print(f"{one.size}\t{1e3 * one.seconds:.3f}\t{1e3 * again:.3f}\t{off:+.1%}\t{faster:.2f}{fit}")
    last = found[-1]
    if last.size < 2 * FITTED or abs(off) > WITHIN:
        why = (
            f"{last.size} processes were predicted {off:+.1%} off"
            if last.size > FITTED
            else "too few processes to test it on"
        )
        print(f"no forecast: {why}")
        return
    one, each = replayed(work, model, steps, 1, last.cells), work._replace(chains=4)
    alone = replayed(each, model, steps, 1, last.cells)
    for size in (
        n for n in FORECAST if n > last.size and n <= max(work.chains, last.cells * bool(work.columns))
    ):
        seconds = replayed(work, model, steps, size, last.cells)
        weak = ""
        if not work.columns:
            grown = replayed(work._replace(chains=4 * size), model, steps, size, last.cells)
            weak = f"\t{alone / grown:.0%} of the speed of a process alone, with four chains each"
        print(f"{size}\tforecast\t{1e3 * seconds:.3f}\t\t{one / seconds:.2f}{weak}")


class Found(NamedTuple):
    """What was measured of some work: on every number of processes; steps of a chain over their mean; seconds
    of a message by the number of processes."""

    work: Work
    measured: list[Measured]
    steps: np.ndarray
    messages: dict[int, float]

    def text(self) -> str:
        return json.dumps([self.work, self.measured, self.steps.tolist(), list(self.messages.items())])


def found_in(text: str) -> Found:
    """What Found.text wrote."""
    work, rows, steps, messages = json.loads(text)
    return Found(Work(*work), [Measured(*row) for row in rows], np.array(steps), dict(messages))


def found_here(here: Ranks, work: Work) -> Found:
    """Of all processes at the same time."""
    sizes = sorted({*(n for n in (1, 2, 4, 8) if n < here.size), here.size})
    messages = {size: message_seconds(here, size) for size in sizes if size > 1}
    rows = [measured(here, work, size) for size in sizes if size <= max(work.chains, work.columns)]
    return Found(work, rows, np.ones(1) if work.columns else steps_of_a_chain(here, work), messages)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, default=64)
    parser.add_argument("--columns", type=int, default=60_000)
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--out", help="what was measured, a line a work")
    parser.add_argument("--read", help="replay this, measure nothing")
    options, here = parser.parse_args(), ranks()
    if options.read:
        with open(options.read) as file:
            for line in file:
                report(found_in(line))
        return 0
    for work in (Work(options.chains, 0, options.generations), Work(1, options.columns, options.generations)):
        found = found_here(here, work)
        if here.number == 0:
            report(found)
            if options.out:
                with open(options.out, "a") as file:
                    file.write(found.text() + "\n")
    here.finish()
    return 0


MESSAGES = Messages()

if __name__ == "__main__":
    sys.exit(main())
