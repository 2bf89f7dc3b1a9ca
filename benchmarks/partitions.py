"""What 50 parts of 200 columns cost beside the same 10,000 columns as one alignment, on one thread.

The parts have their own copies of one model, so that both are the same number; nothing is timed where they
are not. Medians of process time (one thread), which other programs on the machine disturb least.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from phloem.data.alphabet import alphabet
from phloem.density.parameterisation import Linkage
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.likelihood.partitioned import PartitionedLikelihood
from phloem.likelihood.simulation import simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.random import uniform_unrooted

MODEL = "GTR{1,3,1,1,3}+F{0.3,0.2,0.2,0.3}+G4{0.5}"
PARTS, COLUMNS, REPEATS = 50, 200, 25


def likelihoods(n_taxa: int) -> tuple[TreeLikelihood, PartitionedLikelihood]:
    """The whole alignment, and its blocks of columns as parts."""
    letters = alphabet("dna")
    tree = uniform_unrooted(n_taxa, np.random.default_rng(1))
    data = simulate_alignment(tree, model_for_alphabet(MODEL, letters), PARTS * COLUMNS, 1, letters)
    blocks = np.split(data.codes, PARTS, axis=1)
    parts = {
        f"part{i}": (replace(data, codes=np.ascontiguousarray(codes)), MODEL)
        for i, codes in enumerate(blocks)
    }
    whole = TreeLikelihood(data, tree, MODEL, engine="cpu", threads=1)
    linkage = Linkage("proportional")
    return whole, PartitionedLikelihood(parts, tree, linkage, engine="cpu", threads=1)


def milliseconds(function: Callable[[], object]) -> float:
    function()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return 1e3 * statistics.median(times)


def main() -> int:
    print("taxa  what                   whole ms  parts ms  ratio")
    for n_taxa in (12, 60, 250):
        whole, parts = likelihoods(n_taxa)
        if abs(parts.log_likelihood() / whole.log_likelihood() - 1) > 1e-11:
            print("the parts do not sum to the whole: nothing is timed", file=sys.stderr)
            return 1
        for what, one, many in (
            ("value", whole.log_likelihood, parts.log_likelihood),
            ("gradient by branches", lambda w=whole: w.gradient(False), lambda p=parts: p.gradient(False)),
            ("whole gradient", whole.gradient, parts.gradient),
        ):
            a, b = milliseconds(one), milliseconds(many)
            print(f"{n_taxa:4}  {what:20}  {a:9.2f} {b:9.2f} {b / a:6.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
