"""When a GPU is worth it: seconds of a gradient, or of chains, on either engine, from sizes alone. Imports no
framework."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phloem.pruning.interface import Problem
from phloem.pruning.tree_data import layout_key

# Loading PyTorch and the kernels takes seconds: a gradient that is faster than this is not worth them.
WORTH_SECONDS = 5e-3


@dataclass(frozen=True)
class Speeds:
    """call_seconds: of a gradient however small. level_seconds: of a level of the tree, both passes.
    gpu_flop, cpu_flop: operations a second of a full GPU, and of the cores that the CPU engine would use."""

    call_seconds: float
    level_seconds: float
    gpu_flop: float
    cpu_flop: float


# An H100 and one core of an AMD EPYC (docs/gpu.md, docs/performance.md), a first guess only.
# Keys: at most four states.
ASSUMED = {True: Speeds(40e-6, 3.5e-6, 3.2e11, 8e9), False: Speeds(40e-6, 8e-6, 11e12, 37e9)}


@dataclass(frozen=True)
class Advice:
    """use_gpu and the sentence that says why; seconds of one gradient on either engine."""

    use_gpu: bool
    gpu_seconds: float
    cpu_seconds: float
    reason: str

    def saves(self, times: int, seconds: float) -> bool:
        """Whether the GPU saves more than so many seconds in so many times."""
        return (self.cpu_seconds - self.gpu_seconds) * times > seconds


def advise(problems: Sequence[Problem], cores: int, speeds: Speeds | None = None) -> Advice:
    """Compare the engines for a problem, or for parts of an alignment that share launches on a GPU. cores:
    what the CPU engine may use. speeds: measured with as many cores, or None for ASSUMED ones."""
    known = speeds or ASSUMED[problems[0].state_sets.shape[1] <= 4]
    flop, levels = sum(map(gradient_flop, problems)), max(map(tree_levels, problems))
    gpu = known.call_seconds + known.level_seconds * levels + flop / known.gpu_flop
    cpu = flop / (known.cpu_flop * (cores if speeds is None else 1))
    use = cpu > WORTH_SECONDS and cpu > 2 * gpu
    source = "by assumed speeds" if speeds is None else "as measured here"
    reason = (
        f"a gradient takes about {gpu * 1e3:.2g} ms there, {cpu * 1e3:.2g} ms on {cores} core(s) {source}"
    )
    return Advice(use, gpu, cpu, reason if use else f"{reason}, too little to load the GPU's libraries for")


# Chains of Metropolis' rule (docs/gpu.md): of the operations of a gradient, those of a proposal; of a call,
# and of a level of both passes, those of the way up; seconds of a chain besides, and on a GPU those of the
# host for a part of a chain and for a column. Sampling moves to a GPU for more than LOADING_SECONDS in all.
OF_GRADIENT, OF_CALL, OF_LEVEL = 0.2, 0.6, 0.4
CHAIN_SECONDS, CELL_SECONDS, COLUMN_SECONDS = 5e-6, 1.65e-6, 0.3e-9
LOADING_SECONDS = 10.0

# One core of an AMD EPYC, where nothing is measured: seconds of an operation of a proposal, and of a chain
# besides. Between the primates (6.6 µs a chain-generation) and the carnivores' nucleotides (641), amino acids
# (1,350) and codons (5,600; docs/performance.md): forecast 8.2, 515, 1,090 and 7,000. Keys as of ASSUMED.
ASSUMED_CHAIN, ASSUMED_BESIDES = {True: 1.4e-11, False: 4.3e-12}, 0.5e-6


@dataclass(frozen=True)
class ChainPlan:
    """runs of n_chains chains, each of so many generations."""

    n_runs: int
    n_chains: int
    generations: int


def advise_chains(
    problems: Sequence[Problem], plan: ChainPlan, cores: int, speeds: Sequence[Speeds | None]
) -> Advice:
    """Compare the engines for chains over the parts of an alignment; seconds are of a generation of all
    chains. cores: what the CPU may use. speeds: for every part, measured with as many cores, or None."""
    chains, on_cpu, on_gpu = plan.n_runs * plan.n_chains, 0.0, 0.0
    latencies: dict[tuple, float] = {}  # parts of one layout share launches
    for problem, measured in zip(problems, speeds):
        known = measured or ASSUMED[problem.state_sets.shape[1] <= 4]
        n_states, flop = problem.state_sets.shape[1], OF_GRADIENT * gradient_flop(problem)
        columns = flop / OF_GRADIENT / (6.0 * n_states**2 * problem.n_categories)
        each = flop / known.gpu_flop + COLUMN_SECONDS * columns + CELL_SECONDS
        latencies[layout_key(problem)] = (
            OF_CALL * known.call_seconds + OF_LEVEL * known.level_seconds * tree_levels(problem)
        )
        on_gpu += chains * each
        if measured:
            on_cpu += chains * flop / measured.cpu_flop
        else:
            on_cpu += chains * ASSUMED_CHAIN[n_states <= 4] * flop / OF_GRADIENT / cores
    on_gpu += plan.n_runs * sum(latencies.values())
    besides = CHAIN_SECONDS if all(speeds) else ASSUMED_BESIDES
    on_cpu += chains * besides / min(cores, chains)
    use = on_cpu > 2 * on_gpu
    source = "as measured here" if all(speeds) else "by assumed speeds"
    reason = (
        f"a generation of {chains:,} chains takes about {on_gpu * 1e3:.2g} ms there, {on_cpu * 1e3:.2g} ms "
        f"on {cores} core(s) {source}"
    )
    if use and not Advice(use, on_gpu, on_cpu, "").saves(plan.generations, LOADING_SECONDS):
        reason += f", too little in {plan.generations:,} generations to load the GPU's libraries for"
        use = False
    return Advice(use, on_gpu, on_cpu, reason)


def gradient_flop(problem: Problem) -> float:
    """Operations of value and branch derivatives over the distinct columns of all nodes."""
    from phloem.pruning.cpu.regions import column_sizes  # Numba: only where an answer depends on it

    n_states = problem.state_sets.shape[1]
    return 6.0 * n_states * n_states * problem.n_categories * float(np.sum(column_sizes(problem)))


def tree_levels(problem: Problem) -> int:
    """Nodes on the longest way from a tip to the root, the tip not counted."""
    n_tips = len(problem.tip_codes)
    level = np.zeros(2 * n_tips - 1, np.int64)
    for k, (a, b) in enumerate(zip(problem.left, problem.right)):
        level[n_tips + k] = 1 + max(level[a], level[b])
    return int(level[-1])


# Searches over trees (docs/performance.md, "On a GPU"): seconds of one climb by taxa × patterns × categories
# × states², on one core of a Sapphire Rapids Xeon and, once its libraries are loaded, with an H100, host and
# device together; keys as of ASSUMED. IN_PARALLEL: the share that more cores speed up. A_TRY: the part of a
# climb that a try from elsewhere takes.
CLIMB_SECONDS, CLIMB_THERE, CLIMB_BASE = {True: 8e-8, False: 4e-8}, {True: 2e-8, False: 2e-9}, 0.2
IN_PARALLEL, A_TRY = 0.37, 0.5
MOST_STATES = 64  # of a search on a GPU: a program has all states in one block


def fits_on_cpu(problems: Sequence[Problem]) -> bool:
    """Whether gradients of these parts are for a CPU where trees come and go: each takes one core, by assumed
    speeds and without repeats, less than what is worth a GPU."""
    seconds = 0.0
    for problem in problems:
        states = problem.state_sets.shape[1]
        work = 12.0 * problem.tip_codes.size * problem.n_categories * states**2  # both passes, 2T nodes
        seconds += work / ASSUMED[states <= 4].cpu_flop
    return seconds < WORTH_SECONDS


def lacking_for_search(problem: Problem) -> str | None:
    """Why a search over trees of this problem is not on a GPU yet, as a clause; None where it is."""
    states = problem.state_sets.shape[1]
    if states > MOST_STATES:
        return f"a tree search under {states} states is not on a GPU yet, {MOST_STATES} are the most"
    return None


def advise_search(problems: Sequence[Problem], climbs: float, cores: int) -> Advice:
    """Compare the engines for a search over trees of so many climbs; seconds are those of all of it, and of
    all parts."""
    cpu, gpu = 0.0, CLIMB_BASE * climbs
    for problem in problems:
        states = problem.state_sets.shape[1]
        work = climbs * problem.tip_codes.size * problem.n_categories * states**2
        cpu += CLIMB_SECONDS[states <= 4] * work * (1.0 - IN_PARALLEL + IN_PARALLEL / cores)
        gpu += CLIMB_THERE[states <= 4] * work
    reason = f"the search takes about {gpu:.2g} s there, {cpu:.2g} s on {cores} core(s) by assumed speeds"
    use = cpu > 2 * gpu and cpu - gpu > LOADING_SECONDS
    return Advice(use, gpu, cpu, reason if use else f"{reason}, too little to load the GPU's libraries for")
