"""Speed of distances, linkage, neighbour joining, matrix reading and pictures; each only after a check.

    python benchmarks/distance_speed.py [name …] [--repeats 3] [--csv FILE]

A problem first runs small against the reference (wrong code is not measured), then at size. Printed and
written: wall seconds (least and median), CPU seconds of the fastest run, peak memory of the process, and the
figures to reach. Each problem runs in a process of its own, so that peaks are its own; that of "file" is the
command's, from a square PHYLIP text of 3.2 GB to a Newick file.
"""

from __future__ import annotations

import argparse
import csv
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from outbreak import outbreak_distances

REACH: dict[str, float | None] = {
    "upgma-uniform-10000": 0.4,
    "upgma-tree-10000": 0.4,
    "upgma-uniform-20000": 2.5,
    "upgma-tree-20000": 1.8,
    "upgma-ties-16000": 3.0,
    "upgma-outbreak-16000": 3.0,
    "single-uniform-20000": None,
    "single-tree-20000": None,
    "file-upgma-20000": None,
    "nj-tree-10000": 1.5,
    "nj-tree-20000": 7.0,
    "jc69-1000x10000": 0.1,
    "k80-1000x10000": 0.1,
    "f84-1000x10000": 0.1,
    "tn93-1000x10000": 0.1,
    "logdet-1000x10000": 0.1,
    "jc69-5000x1500": 0.4,
    "k80-5000x1500": 0.4,
    "f84-5000x1500": 0.4,
    "tn93-5000x1500": 0.4,
    "logdet-5000x1500": 0.4,
    "lg-5000x400": 10.0,
    "jc69-16000x29903": 10.0,
    "read-phylip-10000": 2.0,
    "svg-rectangular-10000": 1.0,
    "svg-circular-10000": 1.0,
}
REACH_MB = {"file-upgma-20000": 1550}  # half of what fastcluster takes

FIELDS = (
    "problem", "least_s", "median_s", "cpu_s", "reach_s", "peak_before_MB", "peak_MB", "reach_MB",
    "processor", "numpy",
)  # fmt: skip


def symmetric(values: np.ndarray) -> np.ndarray:
    """The upper triangle mirrored, in place and by tiles."""
    n = len(values)
    for i in range(0, n, 512):
        values[i:, i : i + 512] = values[i : i + 512, i:].T
        block = values[i : i + 512, i : i + 512]
        block[:] = np.triu(block, 1) + np.triu(block, 1).T
    return values


def uniform_matrix(n: int, rng: np.random.Generator) -> np.ndarray:
    return symmetric(rng.random((n, n), dtype=np.float32))


def tree_matrix(n: int, rng: np.random.Generator) -> np.ndarray:
    """Path lengths of a clock-violating coalescent tree with the sampling error of 1,500 sites."""
    from phloem.tree.random import coalescent

    tree = coalescent(n, rng)
    lengths = tree.lengths * rng.gamma(2.0, 0.5, tree.n_nodes)
    depth = np.zeros(tree.n_nodes)
    for x in range(tree.n_nodes - 2, -1, -1):
        depth[x] = depth[tree.parent[x]] + lengths[x]
    d, members = np.zeros((n, n), np.float32), {tip: np.array([tip]) for tip in range(n)}
    for x in range(n, tree.n_nodes):
        a, b = (members.pop(child) for child in tree.children(x).tolist())
        block = (depth[a][:, None] + depth[b] - 2 * depth[x]).astype(np.float32)
        d[np.ix_(a, b)], d[np.ix_(b, a)] = block, block.T
        members[x] = np.concatenate([a, b])
    d /= d.max()
    for i in range(n):
        d[i, i:] = np.maximum(d[i, i:] + rng.normal(size=n - i) * np.sqrt(d[i, i:] / 1500), 0)
    return symmetric(d)


def tied_matrix(n: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of differences between genomes of an outbreak: small whole numbers, many equal, some zero."""
    sites = 8000
    genomes = np.zeros((n, sites), np.float32)
    for i in range(1, n):
        genomes[i] = genomes[rng.integers(0, i)]
        genomes[i, rng.integers(0, sites, rng.poisson(1.0))] = 1
    order = rng.permutation(n)
    total, d = genomes.sum(axis=1), np.empty((n, n), np.float32)
    for i in range(0, n, 1000):
        d[i : i + 1000] = total[i : i + 1000, None] + total - 2 * genomes[i : i + 1000] @ genomes.T
    return symmetric(np.ascontiguousarray(d[order][:, order]))


def sequences(n: int, sites: int, kind: str, changes: float, rng: np.random.Generator):
    """An alignment evolved on a random tree, 2% of it missing."""
    from phloem.data.alignment import Alignment
    from phloem.data.alphabet import alphabet

    states = 20 if kind == "protein" else 4
    codes = np.zeros((n, sites), np.uint8)
    codes[0] = rng.integers(0, states, sites)
    for i in range(1, n):
        codes[i] = codes[rng.integers(0, i)]
        where = rng.integers(0, sites, rng.poisson(changes * sites))
        codes[i, where] = rng.integers(0, states, len(where))
    for row in codes:
        row[rng.integers(0, sites, sites // 50)] = states
    sets = np.vstack([np.eye(states, dtype=bool), np.ones((1, states), bool)])
    return Alignment(tuple(f"t{k}" for k in range(n)), alphabet(kind), codes, sets)


def triangle(square: np.ndarray):
    """A square's distances, every pair once."""
    from phloem.data.distance_matrix import DistanceTriangle, new_entries

    n = len(square)
    entries = new_entries(n, square.dtype)
    for i in range(n):
        entries[i * (i - 1) // 2 : i * (i + 1) // 2] = square[i, :i]
    return DistanceTriangle(tuple(f"t{k}" for k in range(n)), entries)


def linkage_problem(method: str, make: Callable, n: int):
    from phloem.clustering.linkage import linkage
    from phloem.clustering.reference.linkage import linkage as reference

    def check() -> bool:
        d = make(600, np.random.default_rng(1)).astype(np.float64)
        lower, upper, _ = reference(d, method)
        merges = linkage(d, method)
        linkage(triangle(make(600, np.random.default_rng(1))), method)
        return np.array_equal(merges.lower, lower) and np.array_equal(merges.upper, upper)

    d = triangle(make(n, np.random.default_rng(2)))
    return check, lambda entries: linkage(replace(d, entries=entries), method, overwrite=True), d.entries


def joining_problem(n: int):
    from phloem.clustering.joining import neighbour_joining
    from phloem.clustering.reference.joining import neighbour_joining as reference

    def check() -> bool:
        d = tree_matrix(300, np.random.default_rng(1))
        return np.array_equal(neighbour_joining(d).pairs, reference(d)[0])

    return (
        check,
        lambda work: neighbour_joining(work, overwrite=True),
        tree_matrix(n, np.random.default_rng(2)),
    )


def distance_problem(method: str, n: int, sites: int):
    from phloem.clustering.distances import DistanceSettings, pairwise_distances
    from phloem.clustering.formula import observed_frequencies
    from phloem.clustering.reference.distances import nucleotide_distance

    settings = DistanceSettings(method, precision="float32")  # type: ignore[arg-type]

    def check() -> bool:
        a = sequences(40, 500, "dna", 0.02, np.random.default_rng(1))
        found, counts = pairwise_distances(a, settings).values, np.zeros((4, 4))
        both = (a.codes[3] < 4) & (a.codes[7] < 4)
        np.add.at(counts, (a.codes[3][both], a.codes[7][both]), 1)
        return np.isclose(
            found[7, 3], nucleotide_distance(counts, method, observed_frequencies(a)), rtol=1e-6
        )

    data = sequences(n, sites, "dna", 0.01 if n < 10_000 else 3e-5, np.random.default_rng(2))
    return check, lambda _: pairwise_distances(data, settings), None


def likelihood_problem(n: int, sites: int):
    from phloem.clustering.distances import DistanceSettings, pairwise_distances
    from phloem.clustering.reference.distances import likelihood_distance
    from phloem.model.grammar import parse_model

    model = parse_model("LG", datatype="protein").evaluate()
    settings = DistanceSettings("ml", model=model, precision="float32")

    def check() -> bool:
        a = sequences(10, 300, "protein", 0.05, np.random.default_rng(1))
        counts, both = np.zeros((20, 20)), (a.codes[2] < 20) & (a.codes[8] < 20)
        np.add.at(counts, (a.codes[2][both], a.codes[8][both]), 1)
        found = pairwise_distances(a, settings).values[8, 2]
        return np.isclose(found, likelihood_distance(counts, model, 5.0), rtol=1e-5)

    data = sequences(n, sites, "protein", 0.08, np.random.default_rng(2))
    return check, lambda _: pairwise_distances(data, settings), None


def write_phylip(path: Path, n: int) -> None:
    """A square matrix of n taxa, 8 bytes a number."""
    words, column = np.array([b"%.5f " % (k / 1e5) for k in range(99_991)], "S8"), np.arange(n)
    with path.open("wb") as out:
        out.write(b"%d\n" % n)
        for i in range(n):
            place = (i + column) * 7919 % 99_991
            place[i] = 0
            out.write(b"taxon%05d " % i + words[place].tobytes() + b"\n")


def file_problem(n: int):
    """The whole command, in a process of its own."""
    from phloem.clustering.linkage import linkage
    from phloem.io.distance_matrix import read_distance_matrix
    from phloem.io.trees import read_tree

    directory = tempfile.TemporaryDirectory()
    small, large, out = (Path(directory.name) / name for name in ("small.phy", "large.phy", "tree.nwk"))
    write_phylip(small, 300)
    write_phylip(large, n)

    def run(matrix: Path | None) -> None:
        assert directory  # keeps the files until the last run
        command = [sys.executable, "-m", "phloem", "upgma", str(matrix or large), "-o", str(out), "--redo"]
        subprocess.run(command, check=True, capture_output=True)

    def check() -> bool:
        run(small)
        matrix = read_distance_matrix(small)
        expected = linkage(matrix.values).tree(matrix.taxa)
        return np.isclose(read_tree(str(out)).lengths.sum(), expected.lengths.sum(), rtol=1e-6)

    return check, run, None


def reading_problem(n: int):
    from phloem.io.distance_matrix import read_distance_matrix

    directory = tempfile.TemporaryDirectory()
    path = Path(directory.name) / "matrix.phy"
    write_phylip(path, n)

    def run(_):
        assert directory  # keeps the file until the last run
        return read_distance_matrix(path)

    def check() -> bool:
        values = read_distance_matrix(path).values
        return bool(np.isclose(values[123, 456], (123 + 456) * 7919 % 99_991 / 1e5, rtol=1e-6))

    return check, run, None


def picture_problem(shape: str, n: int):
    from phloem.plot.drawing import DrawSettings
    from phloem.plot.pictures import tree_svg
    from phloem.tree.random import coalescent

    tree = coalescent(n, np.random.default_rng(2))
    settings = DrawSettings(shape=shape)  # type: ignore[arg-type]
    return lambda: tree_svg(tree, settings).endswith("</svg>\n"), lambda _: tree_svg(tree, settings), None


def problem(name: str):
    """(check, run, matrix or None) of a problem in REACH."""
    kind, *rest = name.split("-")
    if kind in ("upgma", "single"):
        make = {
            "uniform": uniform_matrix,
            "tree": tree_matrix,
            "ties": tied_matrix,
            "outbreak": lambda n, _: outbreak_distances(n),
        }[rest[0]]
        return linkage_problem(kind, make, int(rest[1]))
    if kind == "file":
        return file_problem(int(rest[1]))
    if kind == "nj":
        return joining_problem(int(rest[1]))
    if kind == "read":
        return reading_problem(int(rest[1]))
    if kind == "svg":
        return picture_problem(rest[0], int(rest[1]))
    n, sites = (int(x) for x in rest[0].split("x"))
    return likelihood_problem(n, sites) if kind == "lg" else distance_problem(kind, n, sites)


def measure(name: str, repeats: int) -> dict[str, object]:
    """Check, warm up, and time one problem in this process."""
    check, run, matrix = problem(name)  # the matrix is overwritten by a run, so each gets a copy
    if not check():
        raise SystemExit(f"{name}: wrong result, not measured")
    who = resource.RUSAGE_CHILDREN if name.startswith("file") else resource.RUSAGE_SELF
    peak = resource.getrusage(who).ru_maxrss
    times = []
    for _ in range(repeats):
        work = None if matrix is None else matrix.copy()
        wall, cpu = time.perf_counter(), time.process_time()
        run(work)
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    wall = sorted(t[0] for t in times)
    peaks = (1024 * kib // 10**6 for kib in (peak, resource.getrusage(who).ru_maxrss))
    numbers = (round(x, 4) for x in (wall[0], wall[len(wall) // 2], min(times)[1]))
    machine = platform.processor() or platform.machine()
    reach = REACH[name], *peaks, REACH_MB.get(name)
    return dict(zip(FIELDS, (name, *numbers, *reach, machine, np.__version__), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(REACH))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--csv")
    parser.add_argument("--here", action="store_true", help="measure in this process and print one CSV row")
    options = parser.parse_args()
    if options.here:
        row = measure(options.names[0], options.repeats)
        csv.DictWriter(sys.stdout, row).writerow(row)
        return
    rows = []
    for name in options.names or list(REACH):
        command = [sys.executable, __file__, name, "--here", "--repeats", str(options.repeats)]
        done = subprocess.run(command, capture_output=True, text=True)
        print(done.stdout.strip() or f"{name}: {done.stderr.strip().splitlines()[-1]}", flush=True)
        rows.append(done.stdout)
    if options.csv:
        Path(options.csv).write_text(",".join(FIELDS) + "\n" + "".join(rows))


if __name__ == "__main__":
    main()
