"""How processes share the chains of `phloem mcmc` and `phloem time`: runs, chains of a run, columns of a
chain, as far as each saves more than messages take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import (
    DEAR_SUMS,
    DEAR_SWAPS,
    HARDLY,
    SWAP_SECONDS,
    Share,
    columns_seconds,
    group_speeds,
    shares,
    shares_text,
    useful_columns,
    useful_ranks,
)
from phloem.inference.time.settings import TimeSettings
from phloem.pruning.gpu.cost import ChainPlan, advise_chains
from phloem.pruning.interface import Problem


@dataclass(frozen=True)
class Division:
    """size: processes there are. shares: of every group of ranks_a_chain neighbours among them; chains of a
    run lie in ranks_a_run groups at most. seconds: forecast of a generation of all chains. uneven:
    processes are not equally fast, and have what they are ready with at about the same time."""

    size: int
    ranks_a_run: int
    ranks_a_chain: int
    shares: tuple[Share, ...]
    seconds: float
    why_idle: str
    uneven: bool = False

    @property
    def busy(self) -> int:
        return self.ranks_a_chain * sum(bool(share.chains) for share in self.shares)

    def text(self, how: str) -> str:
        """Who has what, for people. how: processes were started, and talk."""
        text = shares_text(self.shares, how, self.why_idle, self.size, self.ranks_a_chain)
        return f"{text}; by measured speeds, which differ" if self.uneven else text


@dataclass(frozen=True)
class Processes:
    """What a division depends on beside data and chains. size: how many there are; threads: of each; message:
    seconds in which all tell each other some numbers; gpu: chains are evaluated there, and the cells of each
    by one thread. whole: why the columns of a chain stay together at any size, as a clause. speeds: of each,
    beside this one's, nothing where they are alike."""

    size: int
    threads: int
    message: float
    gpu: bool = False
    whole: str | None = None
    speeds: tuple[float, ...] = ()


def divide(problems: Sequence[Problem], chains: ChainSettings, there: Processes) -> Division:
    """problems: of every part of the data."""
    n_runs, n_chains, size = chains.n_runs, chains.n_chains, there.size
    swap = SWAP_SECONDS["gpu" if there.gpu else "cpu"]

    @cache
    def seconds(n: int) -> float:
        """Of a generation of n chains."""
        return _generation(problems, chains.expected_generations, there.gpu, n, there.threads)

    useful = useful_ranks(n_chains, -(-size // n_runs), seconds, swap)
    beside, why, most = 1, DEAR_SWAPS, size // (n_runs * n_chains)
    n_cells, at_once = _all_cells(problems, there.gpu), 1 if there.gpu else there.threads
    if useful == n_chains:
        why = there.whole or (DEAR_SUMS if n_cells > 1 else "there is too little to divide")
        if there.whole is None and most > 1:
            beside = useful_columns(n_cells, most, at_once, seconds(1), there.message)
    speeds = group_speeds(there.speeds, beside)
    given = shares(n_runs, n_chains, size // beside, useful, speeds)
    if beside > 1:
        slowest = columns_seconds(n_cells, beside, at_once, seconds(1), there.message)
        why = why if beside < most else FEW_LEFT
    else:
        busy = [(share, speed) for share, speed in zip(given, speeds or [1.0] * size) if share.chains]
        slowest = max(len(share.runs) * seconds(len(share.chains)) / speed for share, speed in busy)
    shared = any(share.chains and len(share.chains) < n_chains for share in given)
    return Division(size, useful, beside, given, slowest + swap * shared, why, bool(there.speeds))


def _generation(
    problems: Sequence[Problem], generations: int, on_gpu: bool, n: int = 1, threads: int = 1
) -> float:
    """Seconds that one of n chains is forecast to take."""
    plan = ChainPlan(1, n, generations)
    advice = advise_chains(problems, plan, min(threads, n), [None] * len(problems))
    return advice.gpu_seconds if on_gpu else advice.cpu_seconds


FEW_LEFT = "too few for another part of every chain"
RUNS_FIRST = "too few for another part of every run"


def divide_dated(problems: Sequence[Problem], chains: TimeSettings, there: Processes) -> Division:
    """Of `phloem time`, where a run's chains stay together, in threads; where its columns are divided, one
    chain is asked of after the other. problems: of every part of the data."""
    n_runs, n_chains, most = chains.n_runs, chains.n_chains, there.size // chains.n_runs
    each = _generation(problems, chains.expected_generations, there.gpu)
    in_threads = -(-n_chains // min(there.threads, n_chains)) * each
    n_cells = _all_cells(problems, there.gpu)
    beside, why = 1, there.whole or (DEAR_SUMS if n_cells > 1 else "there is too little to divide")
    if there.whole is None and most > 1:
        beside = useful_columns(n_cells, most, 1, each, there.message)
    divided = n_chains * columns_seconds(n_cells, beside, 1, each, there.message)
    if beside > 1 and divided * HARDLY < in_threads:
        why = why if beside < most else RUNS_FIRST
    else:
        beside, divided = 1, in_threads
    speeds = group_speeds(there.speeds, beside)
    given = shares(n_runs, 1, there.size // beside, 1, speeds)
    slowest = divided * max(len(s.runs) / speed for s, speed in zip(given, speeds or [1.0] * there.size))
    return Division(there.size, 1, beside, given, slowest, why, bool(there.speeds))


# A run of so few chains, with no more steps of a tree each, is slower on two GPUs (docs/gpu.md).
FEW_CHAINS, FEW_STEPS = 8, 1_000


def gpus_of_use(problems: Sequence[Problem], chains: ChainSettings) -> tuple[int, str]:
    """How many of the GPUs of this process its chains are the faster for, and, where it is not all, why.

    Runs have GPUs of their own at no cost; of a run's chains those of small data leave one GPU mostly idle,
    and only wait for another's. GPUs beyond the number of chains have some columns of each."""
    from phloem.pruning.gpu.step_schedule import tree_steps

    sizes = [(p.tip_codes, p.state_sets.shape[1], p.n_categories) for p in problems]
    steps = sum(tree_steps(*own, chains.precision) for own in sizes)
    if chains.n_chains <= FEW_CHAINS and steps <= FEW_STEPS and chains.gpus > chains.n_runs:
        return chains.n_runs, "the few chains of a run take longer on several where data are small"
    together = chains.n_runs * chains.n_chains
    if chains.gpus <= together:
        return chains.gpus, ""
    most, each = chains.gpus // together, _generation(problems, chains.expected_generations, on_gpu=True)
    a_chain = useful_columns(_all_cells(problems, on_device=True), most, 1, each, 0.0)
    why = "there are no more chains, and columns of each are too few for another"
    if 1 < a_chain == most:
        why = FEW_LEFT
    return together * a_chain, "" if together * a_chain == chains.gpus else why


def busiest_bytes(division: Division, each: int) -> int:
    """Of the chains of the process that has most. each: chain_bytes of all parts."""
    most = max(len(share.runs) * len(share.chains) for share in division.shares)
    return -(-most * each // division.ranks_a_chain)


def chain_bytes(problem: Problem) -> int:
    """Of a chain on a CPU at most: messages, classes and matrices of what it accepted and of what it
    proposes."""
    from phloem.pruning.cpu.cell_memory import Part, cell_bytes, column_ranges

    p, one = problem, np.zeros(problem.n_categories, np.int64)
    whole = Part(p.tip_codes, p.state_sets, p.pattern_weights, p.ascertained, one, one)
    return sum(map(cell_bytes, column_ranges(whole, 0)))


def _all_cells(problems: Sequence[Problem], on_device: bool) -> int:
    return sum(cells_of_chain(problem, on_device) for problem in problems)


def cells_of_chain(problem: Problem, on_device: bool) -> int:
    """How many cells a part of a chain's data is."""
    # Numba: only where an answer depends on it
    from phloem.pruning.cpu.cell_memory import n_device_ranges, n_ranges

    if problem.ascertained.any():
        return 1
    (n_tips, n_patterns), n_states = problem.tip_codes.shape, problem.state_sets.shape[1]
    sizes = n_patterns, n_states, problem.n_categories
    return n_device_ranges(n_tips, *sizes) if on_device else max(1, n_ranges(*sizes))
