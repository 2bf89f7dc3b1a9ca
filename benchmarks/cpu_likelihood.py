"""Likelihood and gradient of the CPU engine: time, GFLOP/s against dgemm, and how cost grows with T, P and S.

    python benchmarks/cpu_likelihood.py [--repeats 30] [--quick]

Every problem is checked first (against BEAGLE's printed values, or the NumPy reference engine where it is
small enough, and one thread against two, bit by bit); on a red check nothing is reported and the exit
status is 1. Writes results/cpu_likelihood.csv beside this file.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the dgemm peak is that of one core

import argparse
import csv
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
from problems import NAMED, Case, named, simulated
from rich.console import Console
from rich.table import Table

from phloem.pruning.cpu.column_classes import column_classes
from phloem.pruning.cpu.evaluator import CpuEvaluator
from phloem.pruning.reference.evaluator import ReferenceEvaluator

RESULTS = Path(__file__).parent / "results" / "cpu_likelihood.csv"
REFERENCE_LIMIT = 3e7  # entries of messages; above it only the recorded values are compared
GROWTH = [
    *[(taxa, 1000, 4, 4) for taxa in (10, 100, 1000, 10_000)],
    *[(100, patterns, 4, 4) for patterns in (100, 1000, 10_000, 100_000)],
    *[(50, 500, states, 1) for states in (2, 4, 8, 20, 61, 122, 244)],
]


def times(action: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    """(p20, median, p80) in milliseconds."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        taken.append((time.perf_counter() - start) * 1e3)
    return tuple(np.quantile(taken, (0.2, 0.5, 0.8)))


def dgemm_peak() -> float:
    """GFLOP/s of one core on a 2,000 × 2,000 product, the best of five."""
    a, b = np.random.default_rng(1).random((2, 2000, 2000))
    best = 0.0
    for _ in range(5):
        start = time.perf_counter()
        a @ b
        best = max(best, 16.0 / (time.perf_counter() - start))
    return best


def operations(case: Case) -> tuple[float, float]:
    """Floating-point operations of the likelihood and of the gradient: matrix products and matrices only."""
    problem, states = case.problem, case.problem.state_sets.shape[1]
    classes = column_classes(problem.left, problem.right, problem.tip_codes)
    columns = int(classes.offset[-2] - classes.offset[classes.n_tips])
    products = columns * problem.n_categories * 2.0 * states**2
    matrices = (classes.n_nodes - 1) * problem.n_categories * 2.0 * states**3
    return products + matrices, 3 * products + matrices


def wrong(case: Case) -> str | None:
    """What is wrong with the engine's answer, or None."""
    one = CpuEvaluator(case.problem, 1).gradient(case.lengths, case.model)
    two = CpuEvaluator(case.problem, 2).gradient(case.lengths, case.model)
    if one.log_likelihood != two.log_likelihood or (one.branch_lengths != two.branch_lengths).any():
        return "one and two threads differ"
    value, total = case.value, case.gradient_sum
    if value is not None and (
        abs(one.log_likelihood - value) > 1e-6 or abs(one.branch_lengths.sum() - total) > 1e-6
    ):
        return f"{one.log_likelihood:.6f}, {one.branch_lengths.sum():.6f} instead of {value}, {total}"
    entries = case.problem.tip_codes.size * case.problem.state_sets.shape[1] * case.problem.n_categories
    if value is None and entries < REFERENCE_LIMIT:
        expected = ReferenceEvaluator(case.problem).gradient(case.lengths, case.model)
        worst = np.abs(one.branch_lengths - expected.branch_lengths).max()
        if abs(one.log_likelihood / expected.log_likelihood - 1) > 1e-9:
            return f"log-likelihood {one.log_likelihood} instead of {expected.log_likelihood}"
        if worst > 1e-8 * np.abs(expected.branch_lengths).max():
            return f"gradient off by {worst:.2g}"
    return None


def measured(case: Case, threads: int, repeats: int) -> dict[str, object]:
    """One row of the report."""
    evaluator, (flops, gradient_flops) = CpuEvaluator(case.problem, threads), operations(case)
    arguments = case.lengths, case.model
    evaluator.gradient(*arguments)
    value = times(lambda: evaluator.log_likelihood(*arguments), repeats)
    gradient = times(lambda: evaluator.gradient(*arguments), repeats)
    p = case.problem
    classes = times(lambda: column_classes(p.left, p.right, p.tip_codes), max(3, repeats // 5))
    return {
        "problem": case.name, "threads": threads,
        "classes_ms": classes[1], "likelihood_p20_ms": value[0], "likelihood_ms": value[1],
        "likelihood_p80_ms": value[2], "gradient_p20_ms": gradient[0], "gradient_ms": gradient[1],
        "gradient_p80_ms": gradient[2], "likelihood_gflops": flops / value[1] / 1e6,
        "gradient_gflops": gradient_flops / gradient[1] / 1e6,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="the named problems only")
    options = parser.parse_args()
    cases = [case for case in map(named, NAMED) if case is not None]
    cases += [] if options.quick else [simulated(*size) for size in dict.fromkeys(GROWTH)]
    for case in cases:
        if problem := wrong(case):
            print(f"{case.name}: {problem}; nothing reported", file=sys.stderr)
            return 1
    peak = dgemm_peak()
    rows = [
        measured(case, threads, options.repeats if case.value else max(5, options.repeats // 3))
        for case in cases
        for threads in (1, 2)
    ]
    report(rows, peak)
    return 0


def report(rows: list[dict[str, object]], peak: float) -> None:
    """Print the table and write the CSV."""
    table = Table(
        title=f"median ms and GFLOP/s; dgemm {peak:.0f} GFLOP/s on one core; load {os.getloadavg()[0]:.1f}"
    )
    names = (
        "problem",
        "threads",
        "classes_ms",
        "likelihood_ms",
        "gradient_ms",
        "likelihood_gflops",
        "gradient_gflops",
    )
    for name in names:
        table.add_column(name.replace("_", " "), justify="left" if name == "problem" else "right")
    for row in rows:
        table.add_row(*(f"{row[n]:.2f}" if isinstance(row[n], float) else str(row[n]) for n in names))
    Console(width=130).print(table)
    device = {
        "machine": platform.processor() or platform.machine(), "python": platform.python_version(),
        "numpy": np.__version__, "numba": numba.__version__, "dgemm_gflops": round(peak, 1),
        "load": os.getloadavg()[0],
    }  # fmt: skip
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], *device])
        writer.writeheader()
        writer.writerows({**row, **device} for row in rows)


if __name__ == "__main__":
    sys.exit(main())
