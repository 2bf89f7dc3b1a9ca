"""`phloem ml`'s search beside IQ-TREE and RAxML-NG on the data of ../shared: log-likelihoods and CPU seconds.

    python benchmarks/tree_search.py [--seeds 3] [--patience 10] [DS1 DS3 …]

One thread, GTR+F+G4; reading, compiling and a first short search are left out. The other programs'
numbers are
those of ../shared/golden/tree_search.json. A search counts only if the reference engine gives its value back.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from phloem.inference.ml.tree_search import SearchSettings, search_tree
from phloem.io.alignment import read_alignment
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood

SHARED = Path(__file__).resolve().parents[2] / "shared"
FILES = {f"DS{k}": f"ds/DS{k}.fasta" for k in (1, 3, 5, 7)} | {"wnv": "wnv.fasta", "carn": "carnivores.fasta"}


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
    options = parser.parse_args()
    for name in options.names or FILES:
        data = read_alignment(SHARED / "data" / FILES[name])
        model = model_for_alignment("GTR+F+G4", data)
        search_tree(data, model, settings=SearchSettings(patience=1, threads=1))
        print(f"{name}: {others(name)}", flush=True)
        for seed in range(1, options.seeds + 1):
            begin = time.process_time()
            found = search_tree(
                data, model, settings=SearchSettings(seed=seed, patience=options.patience, threads=1)
            )
            seconds, optimum = time.process_time() - begin, found.optimum
            again = TreeLikelihood(
                data, optimum.tree, optimum.model_text, engine="reference"
            ).log_likelihood()
            assert abs(again - optimum.log_likelihood) < 1e-8 * abs(again)
            print(f"  seed {seed}: {again:.3f} in {seconds:.2f} s, {found.tries} tries", flush=True)


if __name__ == "__main__":
    main()
