"""Chain-generations a second for data in the sizes of papers on MC³ for GPUs, simulated, beside MrBayes.

    python benchmarks/mc3_papers.py nucleotides|like-real|proteins|genome
        [--on gpu cpu mrbayes] [--precision float32] [--seconds 3] [--mb 'mb'] [--jobs 8]

nucleotides: 30 sets of 4 to 60 taxa by 1,000 to 15,000 sites, as many and as large as those simulated by
Huang et al. 2022 (their own are not at hand), GTR+G4, 4 chains. like-real: four sizes of larger trees, 26 to
234 taxa. proteins: 8 to 85 taxa by 9,377 to 13,087 sites, WAG+G4, 8 chains, and genome: 14 taxa by 407,604,
the sizes of ta(MC)³. One run; every move, prior, swap and sample included, from the BIONJ tree; the last
sample is compared with the NumPy reference. cpu, mrbayes: one core each, --jobs sets at the same time.
MrBayes (--mb: how it is called) has its own vector code, not BEAGLE; its chains start at random, and what it
takes to begin is subtracted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mcmc_devices import measure
from mcmc_ess import nexus

from phloem.data.alignment import Alignment
from phloem.data.alphabet import alphabet
from phloem.inference.mcmc.structure import structure_of_model
from phloem.likelihood.model_for_alignment import model_for_alignment, model_for_alphabet
from phloem.likelihood.simulation import simulate_alignment
from phloem.tree.random import uniform_unrooted

TAXA, SITES = (4, 12, 24, 36, 48, 60), (1_000, 2_500, 5_000, 10_000, 15_000)
SIZES = {
    "nucleotides": tuple((taxa, sites) for taxa in TAXA for sites in SITES),
    "like-real": ((26, 1_546), (37, 2_238), (111, 1_506), (234, 1_790)),
    "proteins": ((8, 9_377), (21, 10_000), (47, 11_000), (85, 13_087)),
    "genome": ((14, 407_604),),
}
NUCLEOTIDES = "GTR{1,3,1,1,3}+F{0.3,0.2,0.2,0.3}+G4{0.5}", "GTR+G4", "lset nst=6 rates=gamma;"
PROTEINS = "WAG+G4{0.7}", "WAG+G4", "prset aamodelpr=fixed(wag); lset rates=gamma;"


class Set(NamedTuple):
    """A data set to be simulated, and where it is to be measured."""

    kind: str
    taxa: int
    sites: int

    @property
    def datatype(self) -> str:
        return "protein" if self.kind in ("proteins", "genome") else "dna"

    @property
    def texts(self) -> tuple[str, str, str]:
        """The model to simulate by, that of the chains, and MrBayes' commands for it."""
        return PROTEINS if self.datatype == "protein" else NUCLEOTIDES

    @property
    def chains(self) -> int:
        return 8 if self.datatype == "protein" else 4

    @property
    def first(self) -> int:
        """Generations to begin with: few where one takes long."""
        return 100 if self.datatype == "dna" else 20 if self.kind == "proteins" else 4

    def alignment(self) -> Alignment:
        """Evolved along a random tree, whose branches are 0.05 long on the average."""
        states = alphabet(self.datatype)
        tree = uniform_unrooted(self.taxa, np.random.default_rng(self.taxa), 0.05)
        return simulate_alignment(tree, model_for_alphabet(self.texts[0], states), self.sites, 1, states)


def by_phloem(one: Set, given: argparse.Namespace, device: str) -> float:
    data = one.alignment()
    structure = structure_of_model(model_for_alignment(one.texts[1], data), data.n_sites)
    precision = given.precision if device == "gpu" else "float64"
    own = argparse.Namespace(
        chains=given.chains or one.chains,
        threads=given.threads if device == "gpu" else 1,
        device=device,
        precision=precision,
        seconds=given.seconds,
        first=one.first if device == "cpu" else 100,
    )
    return measure([data], structure, own)


def by_mrbayes(one: Set, given: argparse.Namespace) -> float:
    """Chain-generations a second of one run: of what more generations take longer than few do."""
    data, chains = one.alignment(), one.chains if one.kind != "genome" else 1
    letters = np.array([*data.alphabet.states, "-"])
    rows = {name: list(letters[codes]) for name, codes in zip(data.taxa, data.codes)}
    block = nexus(rows, one.datatype)
    took = dict[int, float]()
    with tempfile.TemporaryDirectory() as folder:
        generations = one.first
        while len(took) < 2:
            text = "begin mrbayes; set autoclose=yes nowarn=yes seed=1 swapseed=1;\n"
            text += f"{one.texts[2]} mcmc nruns=1 nchains={chains} ngen={generations} samplefreq=50"
            text += " printfreq=1000000 diagnfreq=1000000 filename=mb; end;\n"
            file = Path(folder, "data.nex")
            file.write_text(block + text)
            begun = time.perf_counter()
            subprocess.run([*given.mb.split(), file.name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            took[generations] = time.perf_counter() - begun
            generations += int(generations * max(1.0, 2 * given.seconds / took[generations]))
    (few, begin), (many, end) = took.items()
    return (many - few) * chains / (end - begin)


def speed(job: tuple[Set, argparse.Namespace, str]) -> float:
    one, given, where = job
    return by_mrbayes(one, given) if where == "mrbayes" else by_phloem(one, given, where)


def report(one: Set, found: dict[str, float]) -> None:
    gpu, text = found.get("gpu"), f"{one.kind:12} {one.taxa:4} x {one.sites:7,}"
    for where, value in found.items():
        ratio = f" ({gpu / value:7.1f})" if gpu is not None and where != "gpu" else ""
        text += f"  {where} {value:10,.1f}{ratio}"
    print(text, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="+", choices=list(SIZES))
    parser.add_argument("--on", nargs="+", default=["cpu"], choices=["gpu", "cpu", "mrbayes"])
    parser.add_argument("--precision", default="float64")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=4, help="of the host, for chains on a GPU")
    parser.add_argument("--chains", type=int, default=0, help="in place of 4 or 8")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--mb", default="mb")
    given = parser.parse_args()
    sets = [Set(kind, *size) for kind in given.kinds for size in SIZES[kind]]
    elsewhere = [(one, given, where) for one in sets for where in given.on if where != "gpu"]
    with ProcessPoolExecutor(given.jobs) as pool:
        there = [pool.submit(speed, job) for job in elsewhere]
        found: dict[Set, dict[str, float]] = {one: {} for one in sets}
        for one in sets if "gpu" in given.on else ():
            found[one]["gpu"] = by_phloem(one, given, "gpu")
        for (one, _, where), answer in zip(elsewhere, there):
            found[one][where] = answer.result()
    print("chain-generations/s; in brackets how many times that the GPU's are")
    for one in sets:
        report(one, found[one])
    return 0


if __name__ == "__main__":
    sys.exit(main())
