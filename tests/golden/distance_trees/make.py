"""Runs other programs on the stored input and writes others.json beside it, with their versions.

    python make.py [path of quicktree]

Needs numpy, scipy, fastcluster, scikit-bio, dendropy, biopython and, as an external program, quicktree; not
phloem. The input: matrix.phy, path lengths on a random tree of 24 taxa without a clock, each up to 20% too
long, no two alike; alignment.fasta, 24 × 600 nucleotides of `phloem simulate` (TN93+G4), 4% gaps or N.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import dendropy
import fastcluster
import numpy as np
import skbio
from Bio.Phylo.TreeConstruction import DistanceMatrix as BioMatrix
from Bio.Phylo.TreeConstruction import DistanceTreeConstructor
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from skbio.sequence import distance

HERE = Path(__file__).parent
FREQUENCIES = (0.3, 0.2, 0.27, 0.23)
LINKAGES = {"upgma": "average", "wpgma": "weighted", "single": "single", "complete": "complete"}
CORRECTIONS = {
    "jc69": lambda a, b: distance.jc69(a, b),
    "jc69 gamma 0.7": lambda a, b: distance.jc69(a, b, gamma=0.7),
    "k80": lambda a, b: distance.k2p(a, b),
    "k80 gamma 0.7": lambda a, b: distance.k2p(a, b, gamma=0.7),
    "f84": lambda a, b: distance.f84(a, b, freqs=FREQUENCIES),
    "tn93": lambda a, b: distance.tn93(a, b, freqs=FREQUENCIES),
    "tn93 gamma 0.7": lambda a, b: distance.tn93(a, b, freqs=FREQUENCIES, gamma=0.7),
    "logdet": lambda a, b: distance.paralin(a, b),
}


def read_matrix() -> tuple[list[str], np.ndarray]:
    rows = [line.split() for line in (HERE / "matrix.phy").read_text().splitlines()[1:]]
    return [row[0] for row in rows], np.array([[float(x) for x in row[1:]] for row in rows])


def read_sequences() -> dict[str, skbio.DNA]:
    records = (HERE / "alignment.fasta").read_text().split(">")[1:]
    return {name: skbio.DNA("".join(text)) for name, *text in (record.split("\n") for record in records)}


def dendropy_tree(names: list[str], d: np.ndarray, method: str) -> str:
    table = "," + ",".join(names) + "\n"
    table += "".join(f"{name}," + ",".join(map(repr, row)) + "\n" for name, row in zip(names, d.tolist()))
    matrix = dendropy.PhylogeneticDistanceMatrix.from_csv(io.StringIO(table))
    return getattr(matrix, method)().as_string("newick", suppress_rooting=True).strip()


def biopython_tree(names: list[str], d: np.ndarray) -> str:
    lower = [row[: i + 1] for i, row in enumerate(d.tolist())]
    tree = DistanceTreeConstructor().nj(BioMatrix(names, lower))
    return tree.format("newick").strip()


def quicktree(program: str, *options: str) -> str:
    command = [program, "-in", "m", "-out", "t", *options, str(HERE / "matrix.phy")]
    return "".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def main() -> None:
    names, d = read_matrix()
    program = sys.argv[1] if len(sys.argv) > 1 else "quicktree"
    told = subprocess.run([program, "-v"], capture_output=True, text=True, check=False)
    sequences = read_sequences()
    pairs = [(a, b) for i, a in enumerate(sequences) for b in list(sequences)[:i]]
    libraries = ("scipy", "fastcluster", "scikit-bio", "dendropy", "biopython", "numpy")
    record = {
        "versions": {name: version(name) for name in libraries}
        | {"quicktree": (told.stdout + told.stderr).split()[-1]},
        "frequencies": FREQUENCIES,
        "linkage": {
            "scipy": {ours: linkage(squareform(d), name).tolist() for ours, name in LINKAGES.items()},
            "fastcluster": {
                ours: fastcluster.linkage(squareform(d), name).tolist() for ours, name in LINKAGES.items()
            },
        },
        "nj": {
            "scikit-bio": str(skbio.tree.nj(skbio.DistanceMatrix(d, names), neg_as_zero=False)).strip(),
            "dendropy": dendropy_tree(names, d, "nj_tree"),
            "biopython": biopython_tree(names, d),
            "quicktree": quicktree(program),
        },
        "upgma": {
            "scikit-bio": str(skbio.tree.upgma(skbio.DistanceMatrix(d, names))).strip(),
            "dendropy": dendropy_tree(names, d, "upgma_tree"),
            "quicktree": quicktree(program, "-upgma"),
        },
        "distances of scikit-bio": {
            name: [float(correct(sequences[a], sequences[b])) for a, b in pairs]
            for name, correct in CORRECTIONS.items()
        },
    }
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in record.items())
    (HERE / "others.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
