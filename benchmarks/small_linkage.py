"""Linkage of few taxa next to fastcluster, in turns in one process: what a call costs besides its arithmetic.

    python benchmarks/small_linkage.py [--taxa 10,50,…] [--methods upgma,…] [--csv FILE]

fastcluster is none of phloem's dependencies: install it beside (pip install fastcluster). Both get the same
condensed float64 vector; a method counts only after both made the same merges at the same heights where no
distances tie. Printed and written: least and median milliseconds of each, and their ratio (below 1: phloem is
faster).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from distance_speed import tied_matrix, tree_matrix
from scipy.spatial.distance import squareform

NAMES = {"upgma": "average", "wpgma": "weighted", "complete": "complete", "single": "single"}
TAXA = (10, 50, 100, 200, 500, 1000, 2000, 5000)
SECONDS = 0.5  # about, of each in every row


def uniform(n: int) -> np.ndarray:
    return np.random.default_rng(2).random(n * (n - 1) // 2)


def condensed(make):
    """The vector of a square that distance_speed makes."""
    return lambda n: squareform(make(n, np.random.default_rng(2)).astype(np.float64), checks=False)


MATRICES = {"uniform": uniform, "tree-like": condensed(tree_matrix), "ties": condensed(tied_matrix)}


def race(distances: np.ndarray, method: str) -> tuple[list[float], list[float]]:
    """Seconds of phloem's calls and of fastcluster's, one after the other."""
    import fastcluster

    from phloem.clustering.linkage import linkage

    ours, theirs = linkage(distances, method), fastcluster.linkage(distances, NAMES[method])
    ties = len(np.unique(distances)) < len(distances)
    if not ties and not np.allclose(ours.linkage_matrix(), theirs, rtol=1e-12):
        raise SystemExit(f"{method} of {ours.n_leaves}: not the same tree, not measured")
    begin, times = time.perf_counter(), ([], [])
    while len(times[0]) < 5 or time.perf_counter() - begin < 2 * SECONDS:
        for out, run, name in ((times[0], linkage, method), (times[1], fastcluster.linkage, NAMES[method])):
            start = time.perf_counter()
            run(distances, name)
            out.append(time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--taxa", default=",".join(map(str, TAXA)))
    parser.add_argument("--methods", default=",".join(NAMES))
    parser.add_argument("--csv")
    options = parser.parse_args()
    rows = ["taxa,distances,method,phloem_least_ms,phloem_median_ms,fastcluster_least_ms,"
            "fastcluster_median_ms,ratio_least,ratio_median"]  # fmt: skip
    for n in map(int, options.taxa.split(",")):
        for kind, make in MATRICES.items():
            distances = make(n)
            for method in options.methods.split(","):
                ours, theirs = race(distances, method)
                least, median = (min(ours), min(theirs)), (np.median(ours), np.median(theirs))
                numbers = [1e3 * x for x in (least[0], median[0], least[1], median[1])]
                numbers += [least[0] / least[1], median[0] / median[1]]
                rows.append(",".join([str(n), kind, method, *(f"{x:.4g}" for x in numbers)]))
                print(rows[-1], flush=True)
    if options.csv:
        Path(options.csv).write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
