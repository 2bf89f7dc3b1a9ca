"""Chain-generations a second of `phloem mcmc`'s chains, one run, on a CPU's threads or a GPU.

    python benchmarks/mcmc_devices.py [--device gpu] [--threads N] [--chains 4] [--seconds 6]
        [--precision float32] [PROBLEM ...]
    mpiexec -n 2 python benchmarks/mcmc_devices.py …                            # its chains on two processes
    python -m torch.distributed.run --standalone --nproc-per-node 2 benchmarks/mcmc_devices.py --device gpu …

Every move, prior, swap and sample (one in 50 generations) included; chains start near the BIONJ tree.
At the end each last sample is compared with the NumPy reference; where it differs nothing is printed and
the exit status is 1.
On a machine with AVX-512 the kernels of processors with AVX2 alone are measured by NUMBA_CPU_NAME=x86-64-v3
NUMBA_CPU_FEATURES=+avx2,+fma,+bmi,+bmi2,+popcnt,+sse4.2 (and a cache folder of their own, NUMBA_CACHE_DIR).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command has it: chains have threads of their own

import numpy as np

import phloem
from phloem.analysis.reading import DataOptions, parts_of
from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import Alignment
from phloem.data.alphabet import alphabet
from phloem.data.genetic_code import CODONS, genetic_code
from phloem.density.parts import PartModel
from phloem.hardware.ranks import ranks
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import Swaps, shares
from phloem.inference.mcmc.structure import ChainModel, structure_of_model, structure_of_parts
from phloem.likelihood.model_for_alignment import model_for_alignment, model_for_alphabet
from phloem.likelihood.simulation import simulate_alignment
from phloem.tree.random import uniform_unrooted

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
CARNIVORES = EXAMPLES / "carnivores.fasta.gz"
PROBLEMS = {
    "primates": "GTR+G4",
    "carnivores-nucleotides": "GTR+G4",
    "carnivores-amino-acids": "WAG+G4",
    "carnivores-codons": "GY94+F3X4",
}
# Parts with linked lengths: the example's four, and 50 simulated ones of 200 columns of 12 taxa.
PARTS = ("primates-partitions", "fifty-parts")


def alignment_of(problem: str) -> Alignment:
    if problem not in PROBLEMS:
        return phloem.read_alignment(problem)
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


def case(problem: str) -> tuple[list[Alignment], ChainModel]:
    if problem in PROBLEMS or Path(problem).is_file():
        alignment = alignment_of(problem)
        model = model_for_alignment(PROBLEMS.get(problem, "GTR+G4"), alignment)
        return [alignment], structure_of_model(model, alignment.n_sites)
    if problem == "fifty-parts":
        letters, text = alphabet("dna"), "GTR{1,3,1,1,3}+F{0.3,0.2,0.2,0.3}+G4{0.5}"
        tree = uniform_unrooted(12, np.random.default_rng(1))
        whole = simulate_alignment(tree, model_for_alphabet(text, letters), 10_000, 1, letters)
        columns = np.split(whole.codes, 50, axis=1)
        given = [(replace(whole, codes=np.ascontiguousarray(codes)), "GTR+G4") for codes in columns]
    else:
        files = str(EXAMPLES / "primates.nex"), str(EXAMPLES / "primates.partitions")
        parts = parts_of(DataOptions(files[0], partitions=files[1]))[1]
        given = [(part.alignment, str(part.model_text)) for part in parts]
    models = [
        PartModel(f"p{i}", model_for_alignment(text, data), data.n_sites, 1.0)
        for i, (data, text) in enumerate(given)
    ]
    return [data for data, _ in given], structure_of_parts(models)


def measure(alignments: list[Alignment], structure: ChainModel, given) -> float:
    """Chain-generations a second. given: chains, threads, device, precision, seconds, first (generations)."""
    alignment = max(alignments, key=lambda a: a.n_sites)
    settings = ChainSettings(
        n_runs=1, n_chains=given.chains, sample_every=given.first // 2, tuning_generations=0,
        precision=given.precision,
    )  # fmt: skip
    start = starting_tree(alignment, "bionj", 1e-6).tree
    here = ranks()
    among = tuple(share.chains for share in shares(1, given.chains, here.size, here.size))
    swaps = None if here.size == 1 else Swaps(here, among, among[here.number])
    run = new_run(
        0, [observations(a) for a in alignments], structure, settings, start, threads=given.threads,
        device=given.device, swaps=swaps,
    )  # fmt: skip
    run = advanced(run, given.first)
    here.gather(0)
    begun, run = time.perf_counter(), advanced(run, given.first)
    half = given.first // 2
    generations = here.broadcast(int(given.seconds / (time.perf_counter() - begun) * 2) * half + half)
    run = advanced(run, generations // given.first * half)  # what is captured or grown at first
    here.gather(0)
    begun, run = time.perf_counter(), advanced(run, generations)
    here.gather(0)
    speed = generations * given.chains / (time.perf_counter() - begun)
    if not run.samples.n:  # another process had the cold chain
        return speed
    require_right(run, alignments, structure)
    return speed


def require_right(run: Run, alignments: list[Alignment], structure: ChainModel) -> None:
    """SystemExit where the last sample is not the NumPy reference's."""
    samples = run.samples
    drawn = samples.tree_and_numbers(samples.n - 1, run.columns.names)
    found, expected = samples.numbers[-1, 0], plain_likelihood(alignments, structure)(*drawn)
    if abs(found - expected) > (1e-9 if run.settings.precision == "float64" else 1e-6) * abs(expected):
        raise SystemExit(f"{found!r}, by the reference {expected!r}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", default=[*PROBLEMS, *PARTS])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float64")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--first", type=int, default=100, help="generations to begin with")
    given = parser.parse_args()
    for problem in given.problems:
        speed = measure(*case(problem), given)
        where = f"{given.device}, {given.precision}, {given.threads} thread(s)"
        where += f", {ranks().size} processes" * (ranks().size > 1)
        what = f"{problem:24} {where:26} {given.chains:3} chains {speed:12,.0f} chain-generations/s"
        if ranks().number == 0:
            print(what, flush=True)
    ranks().finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
