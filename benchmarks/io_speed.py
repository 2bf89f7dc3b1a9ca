"""Reading times of the alignment formats, compression to site patterns, and distance matrices.

    python benchmarks/io_speed.py [--taxa 1000 --sites 10000 --matrix 2000 --repeats 5]

Every file is checked against the simulated characters or distances before its time is printed. Matrices are
read in two threads.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from phloem.data.distance_matrix import DistanceMatrix
from phloem.data.patterns import site_patterns
from phloem.io.alignment import read_alignment
from phloem.io.distance_matrix import read_distance_triangle, write_distance_matrix

_LINE = 80


def _fasta(names: list[str], rows: list[str]) -> str:
    wrapped = ("\n".join(row[i : i + _LINE] for i in range(0, len(row), _LINE)) for row in rows)
    return "".join(f">{name}\n{text}\n" for name, text in zip(names, wrapped))


def _blocks(names: list[str], rows: list[str], repeat_names: bool) -> str:
    lines = []
    for start in range(0, len(rows[0]), _LINE):
        for name, row in zip(names, rows):
            label = f"{name}  " if repeat_names or start == 0 else ""
            lines.append(label + row[start : start + _LINE])
        lines.append("")
    return "\n".join(lines)


def _nexus(names: list[str], rows: list[str]) -> str:
    size = f"ntax={len(names)} nchar={len(rows[0])}"
    head = (
        f"#NEXUS\nbegin data;\ndimensions {size};\nformat datatype=dna interleave gap=- missing=?;\nmatrix\n"
    )
    return head + _blocks(names, rows, True) + ";\nend;\n"


def _phylip(names: list[str], rows: list[str]) -> str:
    return f"{len(names)} {len(rows[0])}\n" + _blocks(names, rows, False)


def _matrices(n: int, folder: str, repeats: int) -> None:
    """Times of reading a square PHYLIP matrix and a table."""
    upper = np.triu(np.random.default_rng(1).random((n, n)), 1)
    matrix = DistanceMatrix(tuple(f"taxon_{i}" for i in range(n)), upper + upper.T)
    for ending in ("phy", "tsv", "phy.gz"):
        path = Path(folder) / f"matrix.{ending}"
        write_distance_matrix(matrix, path, 17)
        found = read_distance_triangle(path).entries
        assert np.array_equal(found, matrix.values[np.tril_indices(n, -1)]), f"{ending} was not read right"
        times = _seconds(lambda path=path: read_distance_triangle(path), repeats)
        print(f"read matrix.{ending},{n},,{times[0]:.3f},{times[len(times) // 2]:.3f}")


def _seconds(action: Callable[[], object], repeats: int) -> list[float]:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return sorted(times)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--taxa", type=int, default=1000)
    options.add_argument("--sites", type=int, default=10000)
    options.add_argument("--matrix", type=int, default=2000, help="taxa of a distance matrix")
    options.add_argument("--repeats", type=int, default=5)
    chosen = options.parse_args()
    codes = np.random.default_rng(1).integers(0, 4, (chosen.taxa, chosen.sites)).astype(np.uint8)
    rows = [np.frombuffer(b"ACGT", np.uint8)[row].tobytes().decode() for row in codes]
    names = [f"taxon_{i}" for i in range(chosen.taxa)]
    print("what,taxa,sites,best_s,median_s")
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("fasta", _fasta), ("fasta.gz", _fasta), ("nexus", _nexus), ("phylip", _phylip)):
            path = Path(folder) / f"alignment.{name}"
            content = text(names, rows).encode()
            path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
            assert np.array_equal(read_alignment(path).codes, codes), f"{name} was not read right"
            times = _seconds(lambda path=path: read_alignment(path), chosen.repeats)
            print(f"read {name},{chosen.taxa},{chosen.sites},{times[0]:.3f},{times[len(times) // 2]:.3f}")
        alignment = read_alignment(path)
        times = _seconds(lambda: site_patterns(alignment), chosen.repeats)
        print(f"site patterns,{chosen.taxa},{chosen.sites},{times[0]:.3f},{times[len(times) // 2]:.3f}")
        _matrices(chosen.matrix, folder, chosen.repeats)


if __name__ == "__main__":
    main()
