"""What 50 parts of 200 columns cost beside the same 10,000 columns in one piece, on one thread or a GPU.

    python benchmarks/partitions.py [--engine gpu]

DNA: 50 parts beside one alignment. Mixed: 25 parts of DNA and 25 of protein beside one of each. The parts
have their own copies of the model, so that both are the same number; nothing is timed where they are not.
A step changes every branch length and every shape, as an optimiser does, and takes the whole gradient.
Smallest process times (one thread), which other programs on the machine disturb least; on a GPU smallest
times of whole calls.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from phloem.data.alphabet import alphabet
from phloem.density.parts import Linkage
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.simulation import simulate_alignment
from phloem.tree.random import uniform_unrooted

MODELS = {"dna": "GTR{1,3,1,1,3}+F{0.3,0.2,0.2,0.3}+G4{0.5}", "protein": "LG+G4{0.5}"}
PARTS, COLUMNS, REPEATS = 50, 200, 15


def likelihoods(
    n_taxa: int, kinds: tuple[str, ...], engine: str
) -> tuple[PartitionedLikelihood, PartitionedLikelihood]:
    """Every kind in one piece, and in blocks of columns, 50 in all."""
    tree, whole, parts = uniform_unrooted(n_taxa, np.random.default_rng(1)), {}, {}
    for kind in kinds:
        letters, n_parts = alphabet(kind), PARTS // len(kinds)
        model = model_for_alphabet(MODELS[kind], letters)
        data = simulate_alignment(tree, model, n_parts * COLUMNS, 1, letters)
        whole[kind] = (data, MODELS[kind])
        for i, codes in enumerate(np.split(data.codes, n_parts, axis=1)):
            parts[f"{kind}{i}"] = (replace(data, codes=np.ascontiguousarray(codes)), MODELS[kind])
    linkage = Linkage("proportional") if len(kinds) > 1 else Linkage()
    return tuple(  # type: ignore[return-value]
        PartitionedLikelihood(given, tree, linkage, engine, threads=1) for given in (whole, parts)
    )


def step(likelihood: PartitionedLikelihood) -> Callable[[], object]:
    """A gradient at new lengths and shapes each time."""
    lengths, counter = likelihood.branch_lengths, [0]

    def one() -> object:
        counter[0] += 1
        factor = 1 + 1e-3 * counter[0]
        values = {name: {"alpha": 0.5 * factor} for name in likelihood.part_names}
        likelihood.set(branch_lengths=lengths * factor, parameters=values)
        return likelihood.gradient()

    return one


def milliseconds(function: Callable[[], object], clock: Callable[[], float]) -> float:
    for _ in range(3):  # what is compiled, captured or grown at first
        function()
    times = []
    for _ in range(REPEATS):
        start = clock()
        function()
        times.append(clock() - start)
    return 1e3 * min(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=("cpu", "gpu"), default="cpu")
    engine = parser.parse_args().engine
    clock = time.process_time if engine == "cpu" else time.perf_counter
    print("data   taxa  what                   whole ms  parts ms  ratio")
    for kinds in (("dna",), ("dna", "protein")):
        for n_taxa in (12, 60, 250) if len(kinds) == 1 else (12, 60):
            whole, parts = likelihoods(n_taxa, kinds, engine)
            if abs(parts.log_likelihood() / whole.log_likelihood() - 1) > 1e-11:
                print("the parts do not sum to the whole: nothing is timed", file=sys.stderr)
                return 1
            for what, work in (
                ("value", lambda l: l.log_likelihood),
                ("gradient by branches", lambda l: lambda: l.gradient(False)),
                ("whole gradient", lambda l: l.gradient),
                ("step", step),
            ):
                a, b = (milliseconds(work(l), clock) for l in (whole, parts))
                name = "dna" if len(kinds) == 1 else "mixed"
                print(f"{name:5}  {n_taxa:4}  {what:20}  {a:9.2f} {b:9.2f} {b / a:6.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
