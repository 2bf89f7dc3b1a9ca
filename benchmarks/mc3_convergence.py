"""How fast chains on a device converge: effective draws a second, and generations by precision and sums.

    python benchmarks/mc3_convergence.py effective [PROBLEM ...] [--device gpu] [--chains 4 16 64]
        [--precision float64 float32] [--seconds 40]
    python benchmarks/mc3_convergence.py mrbayes [PROBLEM ...] [--seconds 200] [--jobs 8] [--mb 'mb']
    python benchmarks/mc3_convergence.py sums [--sites 100000] [--generations 40000]

effective: of the carnivores (mcmc_devices.py), runs of four chains side by side, from BIONJ trees; moves
adapt for a fifth of the time, which is left out. Least effective size of a number, and of a split of
frequency 0.1 to 0.9, over all runs, a second of the clock and a million generations of a run. mrbayes: the
same a million generations, of --jobs runs of four chains at the same time, the first half left out. sums: 14
taxa of amino acids, two runs of two chains from random trees until ASDSF < 0.01, with messages of float64
and float32, whose logarithms are summed in float64 with compensation, as phloem does, and, planted here
only, in float32 without.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from mc3_papers import Set
from mcmc_devices import PROBLEMS, alignment_of, require_right
from mcmc_ess import nexus

from phloem.analysis.trace_view import read_traces
from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import Alignment
from phloem.inference.mcmc.convergence import split_presence
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.sampler import Where, sample
from phloem.inference.mcmc.settings import ChainSettings, Convergence
from phloem.inference.mcmc.structure import structure_of_model
from phloem.io.newick_text import write_newick
from phloem.io.trees import read_tree_sample
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.summary.splits import SplitTable, split_table
from phloem.summary.trace import mixing

BLOCK = {
    "carnivores-nucleotides": "lset nst=6 rates=gamma;",
    "carnivores-amino-acids": "prset aamodelpr=fixed(wag); lset rates=gamma;",
}


def worst(numbers: np.ndarray, table: SplitTable) -> tuple[int, float, float, int]:
    """(which number has) the least effective size, that, and the least of splits, of how many. numbers:
    (runs, draws, n)."""
    presence, _ = split_presence(table, *numbers.shape[:2], 0.1)
    of_splits = float(np.nanmin(mixing(presence)[0])) if presence.shape[2] else np.nan
    of_numbers = mixing(numbers)[0]
    if np.isnan(of_numbers).all():
        raise SystemExit("too few draws: give more --seconds")
    k = int(np.nanargmin(of_numbers))
    return k, float(of_numbers[k]), of_splits, presence.shape[2]


def effective(problem: str, n_chains: int, precision: str, given: argparse.Namespace) -> str:
    """A row of the table; SystemExit where the last sample is not the reference's."""
    data = alignment_of(problem)
    structure = structure_of_model(model_for_alignment(PROBLEMS[problem], data), data.n_sites)
    start, n_runs = starting_tree(data, "bionj", 1e-6).tree, n_chains // 4
    settings = ChainSettings(
        n_runs=n_runs, n_chains=4, sample_every=100, tuning_generations=1, precision=precision
    )
    threads = max(1, given.threads // n_runs)

    def made(r: int, own: ChainSettings) -> Run:
        return new_run(r, observations(data), structure, own, start, threads=threads, device=given.device)

    def several(pool: ThreadPoolExecutor, runs: list[Run], n: int) -> list[Run]:
        return list(pool.map(lambda run: advanced(run, n), runs))

    with ThreadPoolExecutor(n_runs) as pool:
        trial = several(pool, [made(r, settings) for r in range(n_runs)], 400)
        begun, trial = time.perf_counter(), several(pool, trial, 500)
        generations = int(500 * given.seconds / (time.perf_counter() - begun) / 100) * 100
        tuning = generations // 5 // 100 * 100
        settings = replace(settings, tuning_generations=tuning)
        runs = several(pool, [made(r, settings) for r in range(n_runs)], tuning)
        begun, first = time.perf_counter(), runs[0].samples.n
        runs = several(pool, runs, generations - tuning)
        seconds = time.perf_counter() - begun
    table = split_table([run.samples.tree_sample(data.taxa, first) for run in runs])
    numbers = np.stack([run.samples.numbers[first:] for run in runs])
    require_right(runs[-1], [data], structure)
    k, size, of_splits, n_splits = worst(numbers, table)
    name, spent = ("LnL", "LnPr", *runs[0].columns.names)[k], (generations - tuning) * n_runs / 1e6
    each = [f"{x:,.0f}, {x / seconds:.2f}/s, {x / spent:,.0f} a million" for x in (size, of_splits)]
    return (
        f"{problem:23} {given.device} {precision} {n_chains:3} chains {spent * 4e6 / seconds:9,.0f} "
        f"chain-gen/s; worst number {name} {each[0]}; of {n_splits} splits {each[1]}"
    )


# MrBayes


def by_mrbayes(problem: str, given: argparse.Namespace) -> str:
    """A row of the table: several runs at the same time, from the BIONJ tree."""
    data = alignment_of(problem)
    letters = np.array([*data.alphabet.states, *"-" * (len(data.state_sets) - data.alphabet.n_states)])
    rows = {name: list(letters[codes]) for name, codes in zip(data.taxa, data.codes)}
    head = nexus(rows, data.alphabet.kind)
    head += f"begin trees; tree start = {write_newick(starting_tree(data, 'bionj', 1e-6).tree)} end;\n"

    def run(folder: Path, seed: int, generations: int) -> float:
        text = f"begin mrbayes; set autoclose=yes nowarn=yes seed={seed} swapseed={seed}; {BLOCK[problem]}\n"
        text += "startvals tau=start V=start;\n"
        text += f"mcmc nruns=1 nchains=4 temp=0.1 ngen={generations} samplefreq=100 printfreq=1000000"
        text += " diagnfreq=1000000 filename=mb; end;\n"
        (folder / "data.nex").write_text(head + text)
        begun = time.perf_counter()
        subprocess.run([*given.mb.split(), "data.nex"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begun

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        folders = [Path(folder, str(seed)) for seed in range(1, given.jobs + 1)]
        for own in folders:
            own.mkdir()
        trial = max(pool.map(lambda own: run(own, 1, 300), folders))
        generations = int(300 * given.seconds / trial / 100) * 100
        seconds = max(pool.map(lambda own: run(own, int(own.name), generations), folders))
        for own in folders:
            (own / "mb.p").rename(own / "mb.run1.p")  # as of several runs
        traces = [read_traces(str(own / "mb")) for own in folders]
        n = min(len(one.values[0]) for one in traces)
        numbers = np.stack([one.values[0][n // 2 : n] for one in traces])
        samples = [read_tree_sample(own / "mb.t").select(slice(n // 2, n)) for own in folders]
    k, size, of_splits, n_splits = worst(numbers, split_table(samples))
    spent = given.jobs * (n - n // 2) * 100 / 1e6
    return (
        f"{problem:23} MrBayes, {given.jobs} runs of 4 chains, {generations:,} generations in "
        f"{seconds:.0f} s: worst number {traces[0].names[k]} {size:,.0f}, {size / spent:,.0f} a million; of "
        f"{n_splits} splits {of_splits:,.0f}, {of_splits / spent:,.0f} a million"
    )


# Sums


def plant_plain_sums() -> None:
    """Logarithms are added in float32, and nothing of what rounding loses is kept."""
    import triton
    import triton.language as tl

    from phloem.pruning.gpu.kernels import root

    @triton.jit
    def plain(high_a, low_a, high_b, low_b):
        total = high_a.to(tl.float32) + high_b.to(tl.float32)
        return total.to(tl.float64), low_a * 0.0

    root.two_sum = plain


def sums(data: Alignment, precision: str, given: argparse.Namespace) -> str:
    structure = structure_of_model(model_for_alignment("WAG+G4", data), data.n_sites)
    settings = ChainSettings(
        n_runs=2,
        n_chains=2,
        sample_every=20,
        check_every=500,
        generations=given.generations,
        until_converged=True,
        convergence=Convergence(asdsf=0.01, ess=0.0, r_hat=1e6),
        tuning_generations=5_000,
        precision=precision,
    )
    begun = time.perf_counter()
    found = sample(observations(data), structure, settings, where=Where("gpu"))
    seconds, plain = time.perf_counter() - begun, plain_likelihood([data], structure)
    off = []
    for run in found.runs:
        for i in range(run.samples.n - 3, run.samples.n):
            drawn = run.samples.tree_and_numbers(i, run.columns.names)
            off.append(run.samples.numbers[i, 0] - plain(*drawn))
    told = "converged" if found.diagnosis.met else "not converged"
    return (
        f"{precision}, {'plain float32 sums' if given.plain else 'compensated sums'}: {told} at "
        f"{found.diagnosis.generation:,}, ASDSF {found.diagnosis.asdsf:.4f}, {seconds:.0f} s; LnL "
        f"{run.samples.numbers[-1, 0]:,.2f}, off the reference by {np.abs(off).max():.2g}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["effective", "mrbayes", "sums"])
    parser.add_argument("problems", nargs="*", default=[p for p in PROBLEMS if p != "primates"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", nargs="+", default=["float64"])
    parser.add_argument("--chains", type=int, nargs="+", default=[4, 16, 64])
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--mb", default="mb")
    parser.add_argument("--sites", type=int, default=100_000)
    parser.add_argument("--generations", type=int, default=40_000)
    parser.add_argument("--plain", action="store_true", help="of sums: plant sums of float32")
    given = parser.parse_intermixed_args()
    if given.what == "sums":
        if given.plain:
            plant_plain_sums()
        data = Set("genome", 14, given.sites).alignment()
        for precision in given.precision:
            print(sums(data, precision, given), flush=True)
        return 0
    for problem in given.problems:
        if given.what == "effective":
            for precision in given.precision:
                for n_chains in given.chains:
                    print(effective(problem, n_chains, precision, given), flush=True)
        elif problem in BLOCK:
            print(by_mrbayes(problem, given), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
