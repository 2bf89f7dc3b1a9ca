"""Likelihood and gradient of the GPU engine: time on the device and of the whole call, and how cost grows.

    python benchmarks/gpu_likelihood.py [--problems DIRECTORY] [--only PART …] [--commit ID] [--csv FILE]

Every problem is checked against the NumPy reference engine (simulated ones against the CPU engine) before
it is timed; on a red check nothing is reported and the exit status is 1. Device times are those of a
captured graph between two events, calls those of the evaluator with its copies to and from the device.
DIRECTORY holds the table's problems as NAME.npz where ../shared is not at hand. Parts large and branches
(gpu_memory_proofs.py) run only when named. Writes results/gpu_likelihood.csv beside this file.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
import triton
from gpu_memory_proofs import branches, large
from gpu_times import call_times, device_times
from problems import Case, _model, _problem, named, reference_gradient, simulated

from phloem.pruning.cpu.evaluator import CpuEvaluator
from phloem.pruning.gpu.blocks import forecast_device_bytes
from phloem.pruning.gpu.evaluator import GpuEvaluator
from phloem.pruning.gpu.forest import GpuForest

RESULTS = Path(__file__).parent / "results" / "gpu_likelihood.csv"
# BEAGLE 4.1, tensor cores, float64, on an H100 80GB: ms of the likelihood, and of it with branch derivatives.
BEAGLE = {
    "carnivores_nuc": (0.416, 1.25),
    "carnivores_codon": (0.611, 2.75),
    "wnv_codon": (1.29, 5.47),
    "syn_S20_N62_C4096_R4": (0.531, 2.83),
    "syn_S4_N200_C6869_R4": (1.28, 4.29),
    "syn_S61_N200_C3343_R1": (1.40, 8.21),
}
BOUND = {"float64": (1e-9, 1e-8), "float32": (1e-5, 1e-4)}
GROWTH = [
    *[(100, patterns, 4, 4) for patterns in (1, 8, 64, 512, 4096, 32_768)],
    *[(100, patterns, 61, 1) for patterns in (1, 8, 64, 512, 4096)],
    *[(taxa, 1000, 4, 4) for taxa in (10, 1000, 10_000)],
    *[(50, 500, states, 1) for states in (4, 8, 20, 61, 122, 256)],
]
CHAINS = (1, 4, 16, 64, 256)


def checked(gpu, case: Case, wanted) -> tuple[float, float]:
    """Relative errors of value and branch derivatives; exits on a red check or on a result that changes."""
    found = gpu.gradient(case.lengths, case.model)
    again = gpu.gradient(case.lengths, case.model)
    value = abs(found.log_likelihood / wanted.log_likelihood - 1)
    largest = np.abs(wanted.branch_lengths).max()
    slope = float(np.abs(found.branch_lengths - wanted.branch_lengths).max() / largest)
    bounds = BOUND[case.problem.precision]
    same = found.log_likelihood == again.log_likelihood and np.array_equal(
        found.branch_lengths, again.branch_lengths
    )
    if not (value < bounds[0] and slope < bounds[1] and same):
        sys.exit(
            f"RED {case.name} {case.problem.precision}: value {value:.1e}, gradient {slope:.1e}, same {same}"
        )
    return value, slope


def measure(case: Case, wanted, rows: list[dict], cpu_ms: float | None = None) -> None:
    gpu = GpuEvaluator(case.problem)
    errors = checked(gpu, case, wanted)
    batch = gpu._batch
    layout, problem = batch.layouts[0], case.problem
    n_columns, n_pre = int(layout.classes.offset[-1]), int(layout.pre_offset[-1])
    s, c = problem.state_sets.shape[1], problem.n_categories
    gflop = 2e-9 * s * s * c * (n_columns + 2 * n_pre)
    repeats = 100 if n_columns < 1_000_000 else 20
    lik = device_times(lambda: batch.launch.run("likelihood", True), repeats)
    grad = device_times(lambda: batch.launch.run("gradient", True), repeats)
    call = call_times(lambda: gpu.gradient(case.lengths, case.model), repeats)
    lik_call = call_times(lambda: gpu.log_likelihood(case.lengths, case.model), repeats)
    beagle = BEAGLE.get(case.name, (None, None)) if problem.precision == "float64" else (None, None)
    row = {
        "problem": case.name,
        "precision": problem.precision,
        "columns": n_columns,
        "pre_order_columns": n_pre,
        "value_error": f"{errors[0]:.1e}",
        "gradient_error": f"{errors[1]:.1e}",
        **{f"likelihood_ms_p{p}": f"{t:.4f}" for p, t in zip((20, 50, 80), lik)},
        **{f"gradient_ms_p{p}": f"{t:.4f}" for p, t in zip((20, 50, 80), grad)},
        "likelihood_call_ms": f"{lik_call[1]:.4f}",
        "gradient_call_ms": f"{call[1]:.4f}",
        "cpu_gradient_ms": "" if cpu_ms is None else f"{cpu_ms:.3f}",
        "beagle_gradient_ms": beagle[1] or "",
        "gflops": f"{gflop / (grad[1] * 1e-3):.0f}",
        "forecast_mib": f"{forecast_device_bytes(problem) / 2**20:.1f}",
    }
    rows.append(row)
    print(" ".join(f"{key}={value}" for key, value in row.items() if value != ""), flush=True)
    if s == 4:
        rate = n_columns * c * 16 / (lik[1] * 1e-3) / problem.tip_codes.size * problem.tip_codes.shape[1]
        full = problem.tip_codes.shape[1] * c * 16 / (lik[1] * 1e-3) * (len(problem.tip_codes) - 1)
        print(
            f"    conditional likelihoods a second: {full:.3e} of all patterns, {rate:.3e} a taxon computed"
        )


def table(arguments, rows: list[dict]) -> None:
    found = {n: _from_file(arguments.problems, n) if arguments.problems else named(n) for n in BEAGLE}
    cases = [case for case in found.values() if case is not None]
    if len(cases) < len(found):
        print(f"{', '.join(n for n, case in found.items() if case is None)}: ../shared is not here, skipped")
    with ProcessPoolExecutor(len(cases), get_context("spawn")) as pool:
        references = list(pool.map(reference_gradient, cases))
    for case, wanted in zip(cases, references):
        for precision in ("float64", "float32"):
            measure(replace(case, problem=replace(case.problem, precision=precision)), wanted, rows)


def _from_file(directory: str, name: str) -> Case:
    d = np.load(Path(directory) / f"{name}.npz")
    children = d["left"].astype(np.int32), d["right"].astype(np.int32)
    problem = _problem(d["pat"], d["w"], int(d["S"]), children, len(d["rates"]), "float64")
    return Case(name, problem, d["len"].copy(), _model(d["Q"], d["pi"], d["rates"], d["probs"]))


def growth(arguments, rows: list[dict]) -> None:
    for size in GROWTH:
        case = simulated(*size)
        cpu = CpuEvaluator(case.problem, arguments.threads)
        wanted = cpu.gradient(case.lengths, case.model)
        cpu_ms = call_times(partial(cpu.gradient, case.lengths, case.model), 5)[1]
        measure(case, wanted, rows, cpu_ms)


def chains(arguments, rows: list[dict]) -> None:
    """H chains, each with its own topology; ms of all, from scratch, and evaluations a second."""
    for taxa, patterns, states, categories in ((12, 413, 4, 4), (62, 1000, 4, 4), (62, 500, 61, 1)):
        cases = [simulated(taxa, patterns, states, categories, seed=1)]
        others = [simulated(taxa, 1, 4, 1, seed=h) for h in range(max(CHAINS))]
        for n in CHAINS:
            left, right = (
                np.stack([getattr(o.problem, side) for o in others[:n]]) for side in ("left", "right")
            )
            lengths, models = np.stack([o.lengths for o in others[:n]]), [cases[0].model] * n
            forest = GpuForest(cases[0].problem, left, right)
            found = forest.start(lengths, models)[-1], forest.gradient()[-1, 0]
            alone = GpuEvaluator(replace(cases[0].problem, left=left[-1], right=right[-1]))
            one = alone.gradient(lengths[-1], models[-1])
            error = np.abs(one.branch_lengths - found[1]).max() / np.abs(found[1]).max()
            if not max(abs(one.log_likelihood / found[0] - 1), error) < 1e-9:
                sys.exit(f"RED chains {n}: {one.log_likelihood!r} {found[0]!r} {error:.1e}")
            call = call_times(partial(forest.start, lengths, models), 50)
            gradient = call_times(forest.gradient, 50)
            name = f"chains H={n} T={taxa} P={patterns} S={states} C={categories}"
            rows.append(
                {
                    "problem": name,
                    "precision": "float64",
                    "likelihood_call_ms": f"{call[1]:.4f}",
                    "gradient_call_ms": f"{gradient[1]:.4f}",
                }
            )
            print(
                f"{name}: from scratch {call[1]:.4f} ms, {n / call[1] * 1e3:,.0f}/s; gradients of all "
                f"{gradient[1]:.4f} ms",
                flush=True,
            )


FIRST = """
import time; start = time.perf_counter()
import sys; sys.path.insert(0, "benchmarks"); sys.path.insert(0, "src")
from problems import simulated
case = simulated(62, 1000, {states}, 4)
from phloem.pruning.gpu.evaluator import make_evaluator
make_evaluator(case.problem).gradient(case.lengths, case.model)
print(round(time.perf_counter() - start, 2))
"""


def first(arguments, rows: list[dict]) -> None:
    """Seconds to a first gradient in a fresh process, imports included; the first of a pair may compile."""
    for states in (4, 20, 61):
        runs = [
            subprocess.run(
                [sys.executable, "-c", FIRST.format(states=states)],
                capture_output=True,
                text=True,
                check=True,
            )
            for _ in range(2)
        ]
        print(f"first result S={states}: " + ", ".join(r.stdout.strip() for r in runs) + " s", flush=True)


PARTS = {"table": table, "growth": growth, "chains": chains, "first": first}
ASKED_FOR = {"large": large, "branches": branches}  # tens of GB, and minutes on the host


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems")
    parser.add_argument("--only", nargs="*", choices=[*PARTS, *ASKED_FOR], default=list(PARTS))
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--commit", default="")
    parser.add_argument("--csv", default=str(RESULTS))
    arguments = parser.parse_args()
    device, rows = torch.cuda.get_device_name(), []
    print(f"{device}, torch {torch.__version__}, triton {triton.__version__}, commit {arguments.commit}")
    for part in arguments.only:
        start = time.perf_counter()
        (PARTS | ASKED_FOR)[part](arguments, rows)
        print(f"{part}: {time.perf_counter() - start:.1f} s", flush=True)
    common = {
        "device": device,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "commit": arguments.commit,
    }
    names = list(dict.fromkeys(key for row in rows for key in row)) + list(common)
    with open(arguments.csv, "w", newline="") as out:
        writer = csv.DictWriter(out, names, restval="")
        writer.writeheader()
        writer.writerows({**row, **common} for row in rows)


if __name__ == "__main__":
    main()
