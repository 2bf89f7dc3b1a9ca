"""Chain-generations a second of `phloem mcmc`'s chains, one run, on a CPU's threads or a GPU.

    python benchmarks/mcmc_devices.py [--device gpu] [--threads N] [--chains 4] [--seconds 6] [PROBLEM ...]

Every move, prior, swap and sample (one in 50 generations) included; chains start near the BIONJ tree.
At the end each last sample is compared with the NumPy reference; where it differs nothing is printed and
the exit status is 1.
On a machine with AVX-512 the kernels of processors with AVX2 alone are measured by NUMBA_CPU_NAME=x86-64-v3
NUMBA_CPU_FEATURES=+avx2,+fma,+bmi,+bmi2,+popcnt,+sse4.2 (and a cache folder of their own, NUMBA_CACHE_DIR).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import phloem
from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import Alignment
from phloem.data.genetic_code import CODONS, genetic_code
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import structure_of_model
from phloem.likelihood.model_for_alignment import model_for_alignment

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
CARNIVORES = EXAMPLES / "carnivores.fasta.gz"
PROBLEMS = {
    "primates": "GTR+G4",
    "carnivores-nucleotides": "GTR+G4",
    "carnivores-amino-acids": "WAG+G4",
    "carnivores-codons": "GY94+F3X4",
}


def alignment_of(problem: str) -> Alignment:
    if problem == "primates":
        return phloem.read_alignment(EXAMPLES / "primates.nex")
    if problem == "carnivores-nucleotides":
        return phloem.read_alignment(CARNIVORES)
    codons = phloem.read_alignment(CARNIVORES, datatype="codon", genetic_code=2, stop_codons="mask")
    return translated(codons) if problem == "carnivores-amino-acids" else codons


def translated(codons: Alignment) -> Alignment:
    """The same genes as amino acids; what is no single codon is missing."""
    states = codons.alphabet.states
    acid = dict(zip(CODONS, genetic_code(2).amino_acids))
    letters = np.array([acid[c.replace("U", "T")] for c in states] + ["-"])
    with tempfile.NamedTemporaryFile("w", suffix=".fasta") as file:
        for name, codes in zip(codons.taxa, codons.codes):
            file.write(f">{name}\n{''.join(letters[np.minimum(codes, len(states))])}\n")
        file.flush()
        return phloem.read_alignment(file.name, datatype="protein")


def measure(problem: str, given) -> float:
    alignment = alignment_of(problem)
    structure = structure_of_model(model_for_alignment(PROBLEMS[problem], alignment), alignment.n_sites)
    settings = ChainSettings(n_runs=1, n_chains=given.chains, sample_every=50, tuning_generations=0)
    start = starting_tree(alignment, "bionj", 1e-6).tree
    run = new_run(
        0, observations(alignment), structure, settings, start_tree=start, threads=given.threads,
        device=given.device,
    )  # fmt: skip
    run, begun = advanced(run, 100), time.perf_counter()
    while time.perf_counter() - begun < given.seconds / 2:  # what is captured or grown at first
        run = advanced(run, 50)
    before, begun = run.generation, time.perf_counter()
    while time.perf_counter() - begun < given.seconds:
        run = advanced(run, 50)
    speed = (run.generation - before) * given.chains / (time.perf_counter() - begun)
    expected = plain_likelihood([alignment], structure)(
        *run.samples.tree_and_numbers(run.samples.n - 1, run.columns.names)
    )
    found = run.samples.numbers[-1, 0]
    if abs(found - expected) > 1e-9 * abs(expected):
        raise SystemExit(f"{problem}: {found!r}, by the reference {expected!r}")
    return speed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=6.0)
    given = parser.parse_args()
    for problem in given.problems:
        speed = measure(problem, given)
        where = f"{given.device}, {given.threads} thread(s)"
        print(
            f"{problem:24} {where:17} {given.chains:3} chains {speed:12,.0f} chain-generations/s", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
