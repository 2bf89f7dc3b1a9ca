"""What a second GPU of a host brings: Metropolis-coupled chains, and the gradient of one large likelihood.

    python benchmarks/two_devices.py --gpus 2
    python -m torch.distributed.run --standalone --nproc-per-node 2 benchmarks/two_devices.py

The first command is one process with two GPUs, the second two processes with one each. Prints one table,
a row as soon as it is measured, of the first GPU alone and of both. The gradient: columns of 200 taxa in
cells, milliseconds. Chains: of one run (chains swap between GPUs) and of two (whole runs, which wait for
nobody); chain-generations a second with every move, prior, swap and sample. Numbers that are not the
reference's, or have other bits on two devices than on one, end the programme with status 1. Nothing new
is begun after --limit seconds. Without GPUs: --device cpu.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command has it: chains have threads of their own

from columns_devices import measured, same
from mcmc_devices import case
from problems import simulated

from phloem.clustering.starting_tree import starting_tree
from phloem.hardware.ranks import Ranks, ranks
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import Spread, Swaps, shares
from phloem.pruning.grid import OnRanks, cells_of, chosen

PROBLEMS = ("carnivores-amino-acids", "carnivores-codons", "carnivores-nucleotides")
BLOCK = 50  # generations between two samples


class Asked(NamedTuple):
    """Chains of each of so many runs, on as many of the processes, or of the GPUs of one."""

    problem: str
    device: str
    runs: int
    chains: int
    devices: int
    warm_up: float
    seconds: float


def chain_speed(here: Ranks, asked: Asked) -> float:
    """Chain-generations a second of all; all processes do this, those behind the last one asked for nothing
    but wait."""
    processes = min(here.size, asked.devices)
    spread = Spread(here, shares(asked.runs, asked.chains, processes, processes))
    own = spread.shares[here.number] if here.number < processes else None
    runs = [new_chains(spread, asked, number) for number in own.runs] if own else []
    runs, speed = warm(here, runs, asked.warm_up)
    generations = max(1, int(asked.seconds * speed / BLOCK)) * BLOCK
    here.gather(0)
    begin = time.perf_counter()
    runs = together(runs, generations)
    here.gather(0)
    took = time.perf_counter() - begin
    for run in runs:
        check(run, asked.problem)
    here.gather(0)
    return generations * asked.runs * asked.chains / took


def warm(here: Ranks, runs: list[Run], most: float) -> tuple[list[Run], float]:
    """The runs, and generations a second, when these have not risen for three windows of two seconds: every
    thread captures its launches first, which takes up to half a minute; or after `most` seconds."""
    begin, speeds, generations = time.perf_counter(), [], BLOCK
    while True:
        here.gather(0)
        last = time.perf_counter()
        runs = together(runs, generations)
        here.gather(0)
        now = time.perf_counter()
        speeds.append(here.broadcast(generations / (now - last)))
        steady = len(speeds) > 5 and max(speeds[-3:]) < 1.04 * min(speeds[-5:])
        if here.broadcast(steady or now - begin > most):
            return runs, speeds[-1]
        generations = max(1, int(2 * speeds[-1] / BLOCK)) * BLOCK


def new_chains(spread: Spread, asked: Asked, number: int) -> Run:
    alignments, structure = case(asked.problem)
    alignment = max(alignments, key=lambda a: a.n_sites)
    gpus = asked.devices if spread.ranks.size == 1 else 1
    usual = {"sample_every": BLOCK, "tuning_generations": 0, "gpus": gpus}
    settings = ChainSettings(n_runs=asked.runs, n_chains=asked.chains, **usual)
    among = tuple(share.chains if number in share.runs else range(0) for share in spread.shares)
    own = among[spread.ranks.number]
    swaps = None if len(own) == asked.chains else Swaps(spread.ranks, among, own)
    start = starting_tree(alignment, "bionj", 1e-6).tree
    threads = max(1, spread.ranks.cores // asked.runs)
    seen, how = [observations(a) for a in alignments], {"device": asked.device, "swaps": swaps}
    return new_run(number, seen, structure, settings, start, threads=threads, **how)


def together(runs: list[Run], generations: int) -> list[Run]:
    with ThreadPoolExecutor(max(1, len(runs))) as pool:
        return list(pool.map(lambda run: advanced(run, generations), runs))


def check(run: Run, problem: str) -> None:
    """SystemExit where the last sample's log-likelihood is not the reference's."""
    if not run.samples.n:  # another process had the cold chain
        return
    alignments, structure = case(problem)
    tree = run.samples.tree_and_numbers(run.samples.n - 1, run.columns.names)
    expected, found = plain_likelihood(alignments, structure)(*tree), run.samples.numbers[-1, 0]
    if abs(found - expected) > 1e-9 * abs(expected):
        raise SystemExit(f"{problem}: {found!r}, by the reference {expected!r}")


def gradient_rows(here: Ranks, options: argparse.Namespace) -> None:
    data, gpus = simulated(options.taxa, options.columns, options.states, 1), options.gpus
    selection, evaluator = chosen(options.device, data.problem, here.cores)
    alone, one = measured(evaluator, data, options.calls)
    del evaluator
    shared, evaluator = chosen(OnRanks(options.device, here, gpus), data.problem, here.cores)
    among, several = measured(evaluator, data, options.calls)
    if not same(one, several):
        raise SystemExit("the gradient has other bits on several devices")
    what = f"gradient, {options.taxa} taxa x {options.columns:,} columns, {options.states} states"
    cells = cells_of(data.problem, selection.engine)
    print(f"# {shared.reason}")
    row(f"{what}, {cells} cells", "ms", 1e3 * alone, 1e3 * among, alone / among)


def row(what: str, unit: str, one: float, two: float, ratio: float) -> None:
    print(f"{what}\t{unit}\t{one:,.2f}\t{two:,.2f}\t{ratio:.2f}", flush=True)


def chain_rows(here: Ranks, options: argparse.Namespace, until: float) -> None:
    seconds = options.warm_up, options.seconds
    for problem in options.problems:
        for n_runs in options.runs:
            if time.monotonic() > until:
                print(f"# not begun after {options.limit:.0f} s: {problem}, {n_runs} run(s)", flush=True)
                continue
            asked = Asked(problem, options.device, n_runs, options.chains // n_runs, 1, *seconds)
            one = here.together(chain_speed, asked)
            several = here.size if here.size > 1 else options.gpus
            two = here.together(chain_speed, asked._replace(devices=several))
            what = f"{problem}, {n_runs} run(s) of {asked.chains} chains"
            row(what, "chain-generations/s", one, two, two / one)


def main() -> int:
    begin = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--device", default="gpu", choices=("cpu", "gpu"))
    for name, usual in (("taxa", 200), ("columns", 100_000), ("states", 61), ("calls", 5)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--chains", type=int, default=64, help="of all runs together")
    parser.add_argument("--runs", type=int, nargs="+", default=(2, 1))
    parser.add_argument("--gpus", type=int, default=2, help="of one process")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a measurement of chains")
    parser.add_argument("--warm-up", type=float, default=60.0, help="seconds at most")
    parser.add_argument("--limit", type=float, default=400.0)
    options, here = parser.parse_args(), ranks()
    if here.number:
        here.assist()
        here.finish()
        return 0
    print("what\tunit\tone\tall\ttimes faster", flush=True)
    if options.calls:
        gradient_rows(here, options)
    chain_rows(here, options, begin + options.limit)
    print(f"# {here.size} processes, {here.how}; {time.monotonic() - begin:.0f} s in all", flush=True)
    here.dismiss()
    here.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
