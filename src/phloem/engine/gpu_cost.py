"""When a GPU is worth it: seconds of a gradient on either engine, from sizes alone. Imports no framework."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.engine.cpu_memory import column_sizes
from phloem.engine.interface import Problem

# Measured on an H100 (benchmarks/results/gpu_likelihood.csv; docs/gpu.md compares): a call, a level of the
# tree in both passes, and the rate at which full machines work. Four states: seconds a column and category.
CALL_SECONDS = 40e-6
LEVEL_SECONDS = {True: 3.5e-6, False: 8e-6}
FOUR_STATE_COLUMN_SECONDS = 0.3e-9
GPU_FLOP_PER_SECOND = {"float64": 11e12, "float32": 13e12}
# One core of the CPU engine (benchmarks/results/cpu_likelihood.csv).
CPU_FLOP_PER_SECOND = {True: 8e9, False: 37e9}
# Loading PyTorch and the kernels takes seconds: a gradient that is faster than this is not worth them.
WORTH_SECONDS = 5e-3


@dataclass(frozen=True)
class Advice:
    """use_gpu and the sentence that says why; seconds of one gradient on either engine."""

    use_gpu: bool
    gpu_seconds: float
    cpu_seconds: float
    reason: str


def advise(problem: Problem, cores: int) -> Advice:
    """Compare the engines for this problem. cores: what the CPU engine may use."""
    columns = int(np.sum(column_sizes(problem)))
    n_states, n_categories = problem.state_sets.shape[1], problem.n_categories
    four = n_states <= 4
    flop = 6.0 * n_states * n_states * n_categories * columns
    gpu = CALL_SECONDS + LEVEL_SECONDS[four] * _levels(problem)
    if four:
        gpu += FOUR_STATE_COLUMN_SECONDS * columns * n_categories
    else:
        gpu += flop / GPU_FLOP_PER_SECOND[problem.precision]
    cpu = flop / (CPU_FLOP_PER_SECOND[four] * cores)
    use = cpu > WORTH_SECONDS and cpu > 2 * gpu
    forecast = f"a gradient takes about {gpu * 1e3:.2g} ms there, {cpu * 1e3:.2g} ms on {cores} core(s)"
    return Advice(
        use, gpu, cpu, forecast if use else f"{forecast}, too little to load the GPU's libraries for"
    )


def _levels(problem: Problem) -> int:
    n_tips = len(problem.tip_codes)
    level = np.zeros(2 * n_tips - 1, np.int64)
    for k, (a, b) in enumerate(zip(problem.left, problem.right)):
        level[n_tips + k] = 1 + max(level[a], level[b])
    return int(level[-1])
