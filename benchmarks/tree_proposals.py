"""What a nearest-neighbour interchange costs on the CPU, proposed as another tree and rejected.

    python benchmarks/tree_proposals.py [--threads 1 2] [--proposals 20] [--repeats 9]

Carnivores of ../shared/data, as nucleotides and as codons. Every proposal's value is first compared, bit for
bit, with a fresh likelihood of that tree; on a red check the exit status is 1. Prints the median and the
largest over the proposals of each one's fastest call, in milliseconds, next to an evaluation from scratch.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import phloem
from phloem.tree.rearrange import nni_neighbours
from phloem.tree.reroot import unroot

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CODONS = {"datatype": "codon", "genetic_code": 2, "stop_codons": "mask"}
CASES = {"nucleotide": ("HKY{3.5}+F+G4{0.5}", {}), "codon": ("GY94{2.0,0.3}+F", CODONS)}


def fastest(action: Callable[[], object], repeats: int) -> float:
    """Milliseconds."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return 1e3 * min(taken)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--proposals", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    if not DATA.exists():
        print(f"{DATA} is not here: nothing measured", file=sys.stderr)
        return 0
    # A neighbour in its turn, so that it is rooted where its neighbours are.
    tree = nni_neighbours(unroot(phloem.read_tree(DATA / "carnivores.nwk")))[0]
    near = nni_neighbours(tree)
    chosen = [near[k] for k in np.random.default_rng(1).choice(len(near), options.proposals, replace=False)]
    for kind, (model, coding) in CASES.items():
        data = phloem.read_alignment(DATA / "carnivores.fasta", **coding)
        for threads in options.threads:

            def likelihood(tree, data=data, model=model, threads=threads):
                return phloem.TreeLikelihood(data, tree, model, engine="cpu", threads=threads)

            current, times = likelihood(tree), []
            for other in chosen:

                def propose(current=current, other=other) -> float:
                    value = current.propose(tree=other)
                    current.reject()
                    return value

                if propose() != likelihood(other).log_likelihood():
                    print(f"{kind}: a proposal is not a fresh evaluation; nothing reported", file=sys.stderr)
                    return 1
                times.append(fastest(propose, options.repeats))
            scratch = fastest(current.log_likelihood, options.repeats)
            print(
                f"{kind:10} {threads} threads: NNI median {np.median(times):.2f} ms, largest "
                f"{max(times):.2f} ms; from scratch {scratch:.2f} ms"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
