"""Chain-generations a second of the compiled sampler on the primates.

    python benchmarks/mcmc_speed.py [--generations 100000] [--repeats 5]

12 taxa, 413 patterns, GTR+G4, 2 runs × 4 chains, and variations. First checked: what the chains carry along
after thousands of partial updates is, bit for bit, what an evaluation of everything gives. On a red check
nothing is reported and the exit status is 1. Writes results/mcmc_speed.csv beside this file. For comparison,
MrBayes 3.2.7a with BEAGLE 3 (SSE, double) does about 29,000 on one core of the machine that
docs/performance.md describes.
"""

from __future__ import annotations

import argparse
import csv
import platform
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import phloem
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_model
from phloem.likelihood.model_for_alignment import model_for_alignment

HERE = Path(__file__).parent
CASES = (
    # threads, site repeats, model
    (1, True, "GTR+G4"),
    (2, True, "GTR+G4"),
    (2, False, "GTR+G4"),
    (2, True, "HKY"),
    (2, True, "GTR+I+G8"),
)


def started(text: str, repeats: bool, burn_in: int) -> list[Run]:
    """Both runs, past the worst of the burn-in."""
    alignment = phloem.read_alignment(HERE.parent / "examples/primates.nex")
    structure = structure_of_model(model_for_alignment(text, alignment))
    settings = ChainSettings(repeats=repeats, tuning_generations=burn_in)
    runs = [new_run(r, observations(alignment), structure, settings) for r in (0, 1)]
    return [advanced(run, burn_in) for run in runs]


def correct(run: Run) -> bool:
    """Carried log-likelihoods equal those from scratch."""
    from phloem.inference.mcmc.compiled.run import REFRESH, advance

    carried = run.state.log_likelihood.copy()
    run.shared.done[:], run.shared.swapped[:] = 0, 0
    advance(run.data, run.state, run.shared, run.scratches[0], 1, REFRESH, -1, 0)
    return np.array_equal(carried, run.state.log_likelihood)


def speed(runs: list[Run], threads: int, generations: int) -> tuple[float, float]:
    """Chain-generations a second of wall time, sampling and all, and a second of processor time."""
    begun, used = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda run: advanced(run, generations), runs))
    done = len(runs) * runs[0].settings.n_chains * generations
    return done / (time.perf_counter() - begun), done / (time.process_time() - used)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generations", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    rows = []
    for threads, repeats, text in CASES:
        runs = started(text, repeats, 20_000)
        speeds, per_core = zip(*(speed(runs, threads, given.generations) for _ in range(given.repeats)))
        if not all(correct(run) for run in runs):
            print("the chains' log-likelihoods are wrong: no figures", file=sys.stderr)
            return 1
        p20, p50, p80 = np.percentile(speeds, [20, 50, 80])
        rows.append([text, threads, repeats, round(p20), round(p50), round(p80), round(np.median(per_core))])
        print(
            f"{text:9} threads {threads}  site repeats {repeats!s:5}  {p50:10,.0f} chain-generations/s, "
            f"{np.median(per_core):10,.0f} a second of processor time"
        )
    (HERE / "results").mkdir(exist_ok=True)
    with open(HERE / "results/mcmc_speed.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(
            [
                "model",
                "threads",
                "site_repeats",
                "p20",
                "p50",
                "p80",
                "per_core_second",
                "processor",
                "phloem",
            ]
        )
        writer.writerows(
            [*row, platform.processor() or platform.machine(), phloem.__version__] for row in rows
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
