"""`phloem ml`'s search beside IQ-TREE and RAxML-NG on the data of ../shared: log-likelihoods and seconds.

    python benchmarks/tree_search.py [--seeds 3] [--patience 10] [DS1 DS3 …]
    python benchmarks/tree_search.py --device gpu --patience 0 --seeds 2 sim1000 10000x1500

GTR+F+G4; reading, compiling and a first short search are left out. On a CPU one thread and its CPU seconds,
on a GPU seconds of the clock. TAXAxSITES: simulated. The other programs' numbers are those of
../shared/golden/tree_search.json. A search counts only if the reference engine (of more than 2,000 taxa the
CPU's) gives its value back.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path

import numpy as np

from phloem.data.alignment import Alignment
from phloem.data.alphabet import alphabet
from phloem.inference.ml.place import Device, Place
from phloem.inference.ml.searched import OneAlignment
from phloem.inference.ml.tree_search import SearchResult, SearchSettings, search
from phloem.inference.ml.tree_starts import bionj_start
from phloem.io.alignment import read_alignment
from phloem.likelihood.model_for_alignment import model_for_alignment, model_for_alphabet
from phloem.likelihood.simulation import simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.model import Model
from phloem.tree.random import uniform_unrooted

SHARED = Path(__file__).resolve().parents[2] / "shared"
FILES = {f"DS{k}": f"ds/DS{k}.fasta" for k in (1, 3, 5, 7)} | {"wnv": "wnv.fasta", "carn": "carnivores.fasta"}
OTHERS = {"sim1000": "sim1000.fasta.gz"}
MODEL = "GTR{1.2,4,0.7,0.9,5}+F{0.3,0.2,0.2,0.3}+G4{0.5}"  # of what is simulated


def data_of(name: str) -> Alignment:
    """Of ../shared, or simulated on a random tree of mean length 0.03."""
    sizes = re.fullmatch(r"(\d+)x(\d+)", name)
    if sizes is None:
        return read_alignment(SHARED / "data" / (FILES | OTHERS)[name])
    tree = uniform_unrooted(int(sizes[1]), np.random.default_rng(1), 0.03)
    return simulate_alignment(tree, model_for_alphabet(MODEL, alphabet("dna")), int(sizes[2]), 1)


def others(name: str) -> str:
    """What the other programs reached, and when."""
    rows = json.loads((SHARED / "golden" / "tree_search.json").read_text())["tree_search"]
    found = [row for row in rows if row["id"] in (f"iq_{name}", f"iqf_{name}", f"ng_{name}") and "lnL" in row]
    return "; ".join(f"{row['id']} {row['lnL']:.3f} in {row['cpu_seconds']:.1f} s" for row in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(FILES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--patience", type=int, default=10)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    options = parser.parse_args()
    clock = time.process_time if options.device == "cpu" else time.perf_counter
    for name in options.names or FILES:
        data = data_of(name)
        model = model_for_alignment("GTR+F+G4", data)
        first = min(1, options.patience)
        searched(data, model, options.device, SearchSettings(patience=first, threads=1))
        print(f"{name}: {others(name)}", flush=True)
        for seed in range(1, options.seeds + 1):
            begin = clock()
            settings = SearchSettings(seed=seed, patience=options.patience, threads=1)
            found = searched(data, model, options.device, settings)
            seconds, optimum = clock() - begin, found.optimum
            engine = "reference" if data.n_taxa <= 2000 else "cpu"
            again = TreeLikelihood(data, optimum.tree, optimum.model_text, engine=engine).log_likelihood()
            assert abs(again - optimum.log_likelihood) < 1e-8 * abs(again)
            print(f"  seed {seed}: {again:.4f} in {seconds:.2f} s, {found.tries} tries", flush=True)


def searched(data: Alignment, model: Model, device: Device, settings: SearchSettings) -> SearchResult:
    return search(OneAlignment(data, model, Place(device)), bionj_start(data), settings)


if __name__ == "__main__":
    main()
