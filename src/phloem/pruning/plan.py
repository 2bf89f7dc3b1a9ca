"""Before a run: how many operations, how much memory, how long. Counts are exact, times are from a sample."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phloem.model.record import SiteModel
from phloem.pruning.cpu.regions import column_sizes, forecast_bytes
from phloem.pruning.grid import cells_of, in_cells, useful_shares
from phloem.pruning.interface import Problem
from phloem.pruning.select import Selection

# A sample this large runs long enough to be timed and short enough not to be noticed (operations).
# A GPU that is not full is all latency, which does not scale with operations: its sample is a thousandfold.
SAMPLE_OPERATIONS = {"reference": 3e8, "cpu": 3e8, "gpu": 3e11}


@dataclass(frozen=True)
class Work:
    """columns: distinct columns over all nodes; inner: those of internal nodes but the root;
    share: columns / (nodes × patterns). likelihood_flop, gradient_flop: floating-point operations of one
    evaluation, transition matrices included (gradient: value and all branch derivatives)."""

    columns: int
    inner: int
    share: float
    likelihood_flop: float
    gradient_flop: float


@dataclass(frozen=True)
class Forecast:
    """What one evaluation will take. Seconds are after compilation; bytes are the engine's arrays.

    gradient: all branch derivatives; whole_gradient: those of the model's numbers too, as a fit needs them.
    """

    work: Work
    memory_bytes: int
    likelihood_seconds: float
    gradient_seconds: float
    whole_gradient_seconds: float
    sampled_patterns: int


MESSAGE_SECONDS, BYTES_A_SECOND = 5e-4, 1e9  # assumed here; a run measures its own


@dataclass(frozen=True)
class Divided:
    """One evaluation with its whole gradient on so many processes. shares: cells of each that has some.
    seconds: until the slowest is done, and of messages; memory_bytes: of the process with most."""

    size: int
    shares: tuple[int, ...]
    seconds: float
    memory_bytes: int


def forecast_divided(
    problem: Problem, selection: Selection, whole: Forecast, sizes: Sequence[int]
) -> list[Divided]:
    """On every number of processes, alike and with nothing else to do. A cell takes as long as its part of
    the operations, counted, in which matrices and columns that others compute too are."""
    counted = _counted(problem, selection)
    n_cells = len(counted)
    a_flop = whole.whole_gradient_seconds / whole.work.gradient_flop
    n_states = problem.state_sets.shape[1]
    numbers = 2 * len(problem.left) + n_states**2 + problem.n_categories * 2
    message = MESSAGE_SECONDS + 8 * numbers * n_cells / BYTES_A_SECOND
    mean = float(np.mean([work.gradient_flop for work, _ in counted])) * a_flop
    found = []
    for size in sizes:
        shares = useful_shares(n_cells, [mean] * min(size, n_cells), message)
        ends = np.cumsum(shares)
        own = [counted[end - n : end] for n, end in zip(shares, ends)]
        slowest = max(sum(work.gradient_flop for work, _ in part) for part in own) * a_flop
        seconds = slowest + (message if len(shares) > 1 else 0.0)
        found.append(Divided(size, tuple(shares), seconds, max(sum(b for _, b in part) for part in own)))
    return found


def remainder(found: Sequence[Divided]) -> float:
    """Amdahl's: the share of one process's time that more do not divide, from the largest number that has
    something to do. NaN where only one has."""
    return undivided([(len(one.shares), one.seconds) for one in found])


def undivided(found: Sequence[tuple[int, float]]) -> float:
    """remainder, of (processes that have something, seconds) each; the first is one process alone."""
    n, seconds = max(found)
    return float("nan") if n == 1 else max((seconds / found[0][1] - 1 / n) / (1 - 1 / n), 0.0)


def count_work(sizes: np.ndarray, n_patterns: int, n_states: int, n_categories: int) -> Work:
    """Operations from the number of distinct columns of every node (N,).

    A message costs 2 S² and a product of two S a column and category; the way down costs the same twice
    (q = Pᵀu and the derivative) and the sums over classes 4 S; a transition matrix costs 2 S³ from its
    eigensystem.
    """
    n_nodes = len(sizes)
    n_tips = (n_nodes + 1) // 2
    inner = int(sizes[n_tips : n_nodes - 1].sum())
    root = int(sizes[-1])
    product = 2.0 * n_states * n_states * n_categories
    meeting = 1.0 * n_states * n_categories * (inner + root)
    matrices = 2.0 * n_states**3 * n_categories * (n_nodes - 1)
    up = matrices + inner * product + meeting
    return Work(
        columns=int(sizes.sum()),
        inner=inner,
        share=float(sizes.sum()) / (n_nodes * n_patterns),
        likelihood_flop=up,
        gradient_flop=up + 2 * inner * product + 4 * meeting,
    )


def forecast(problem: Problem, selection: Selection, model: SiteModel, lengths: np.ndarray) -> Forecast:
    """Count the whole problem, cell by cell, run a sample of its patterns, and scale the time by the
    operations.

    lengths: (N,) effective branch lengths. The sample is the first patterns; its classes are counted too.
    """
    counted = _counted(problem, selection)
    whole = _together([work for work, _ in counted], problem)
    sample = _sample(problem, SAMPLE_OPERATIONS[selection.engine] / whole.gradient_flop)
    part = whole if sample is problem and len(counted) == 1 else _work(sample, column_sizes(sample))
    evaluator = selection.make(sample)
    evaluator.gradient(lengths, model, parameters=True)
    up = _fastest(lambda: evaluator.log_likelihood(lengths, model))
    both = _fastest(lambda: evaluator.gradient(lengths, model))
    whole_gradient = _fastest(lambda: evaluator.gradient(lengths, model, parameters=True))
    growth = whole.gradient_flop / part.gradient_flop
    return Forecast(
        work=whole,
        memory_bytes=sum(of_cell for _, of_cell in counted),
        likelihood_seconds=up * whole.likelihood_flop / part.likelihood_flop,
        gradient_seconds=both * growth,
        whole_gradient_seconds=whole_gradient * growth,
        sampled_patterns=sample.tip_codes.shape[1],
    )


def _counted(problem: Problem, selection: Selection) -> list[tuple[Work, int]]:
    """Work and memory of every cell that a problem is evaluated in."""
    n_cells = cells_of(problem, selection.engine)
    found = []
    for cell in [problem] if n_cells == 1 else in_cells(problem, n_cells)[1]:
        sizes = column_sizes(cell)
        found.append((_work(cell, sizes), _memory(cell, selection, sizes)))
    return found


def _together(works: Sequence[Work], problem: Problem) -> Work:
    """Of all cells."""
    columns = sum(work.columns for work in works)
    return Work(
        columns=columns,
        inner=sum(work.inner for work in works),
        share=columns / ((2 * len(problem.left) + 1) * problem.tip_codes.shape[1]),
        likelihood_flop=sum(work.likelihood_flop for work in works),
        gradient_flop=sum(work.gradient_flop for work in works),
    )


def _work(problem: Problem, sizes: np.ndarray) -> Work:
    states = problem.state_sets.shape[1]
    return count_work(sizes, problem.tip_codes.shape[1], states, problem.n_categories)


def _memory(problem: Problem, selection: Selection, sizes: np.ndarray) -> int:
    if selection.engine == "gpu":
        from phloem.pruning.gpu.evaluator import forecast_device_bytes

        return forecast_device_bytes(problem)
    return forecast_bytes(problem, sizes)


def _sample(problem: Problem, share: float) -> Problem:
    n_patterns = problem.tip_codes.shape[1]
    keep = int(n_patterns * share)
    if keep >= n_patterns:
        return problem
    keep = max(keep, min(64, n_patterns))
    return replace(
        problem,
        tip_codes=np.ascontiguousarray(problem.tip_codes[:, :keep]),
        pattern_weights=problem.pattern_weights[:keep],
        ascertained=problem.ascertained[:keep],
    )


def _fastest(call, repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
