"""Distances, UPGMA and neighbour joining on a GPU: time of the whole call, and peak device memory.

    python benchmarks/gpu_distance.py [--only distances upgma single nj bionj unj]
        [--smallest N] [--largest N] [--csv FILE]

Matrices are made on the device and stay there; a call ends when merges or joins are in host memory
(distances: when the matrix is on the device). Every kind of input is compared with the CPU kernels at a small
size first, and the largest tree with the one that was planted; on a red check nothing is reported and the
exit status is 1. Rows in results/gpu_distance.csv beside this file are replaced by those measured now.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
import triton
from outbreak import AS_IN_SARS_COV_2, outbreak_distances
from path_lengths import additive, is_joined, on_a_tree

from phloem.clustering.formula import Formula, ScoreTables, score_tables
from phloem.clustering.gpu.alignment import EncodedSequences, SequenceCodes, distance_matrix
from phloem.clustering.gpu.linkage import linkage_merges
from phloem.clustering.gpu.nj import JoiningTiling, joins
from phloem.clustering.joining import neighbour_joining
from phloem.clustering.linkage import linkage
from phloem.clustering.reference.distances import likelihood_distance, nucleotide_distance, nucleotide_terms
from phloem.model.grammar import parse_model
from phloem.model.record import SiteModel

RESULTS = Path(__file__).parent / "results" / "gpu_distance.csv"
FREQUENCIES = np.array([0.3, 0.2, 0.27, 0.23])
SIZES = (100, 1000, 4000, 10_000, 16_000, 20_000, 60_000, 100_000, 140_000)
SINGLE_SIZES = (100, 1000, 10_000, 20_000)
JOINING = ("nj", "bionj", "unj")
JOINING_SIZES = (100, 1000, 4000, 10_000, 20_000)
LARGE_JOINING_SIZES = (60_000, 100_000, 140_000)
ALIGNMENTS = ((1000, 10_000), (5000, 1500), (16_000, 29_903))
NUCLEOTIDE_METHODS = ("p", "jc69", "k80", "f84", "tn93", "logdet")
MODELS = {"ml GTR+G4": "GTR{1,4,0.7,0.9,5}+F{0.3,0.2,0.27,0.23}+G4{0.5}", "ml LG+G4": "LG+G4{0.8}"}
PROTEINS = (5000, 400)
MISSING = 200
DEVICE = torch.device("cuda")


def tiles(n: int, width: int = 4096):
    for i in range(0, n, width):
        for j in range(0, i + 1, width):
            yield i, j, min(i + width, n), min(j + width, n)


def uniform(n: int) -> torch.Tensor:
    """Independent uniform distances."""
    generator, d = torch.Generator(DEVICE).manual_seed(1), torch.empty((n, n), device=DEVICE)
    for i, j, i_end, j_end in tiles(n):
        block = torch.rand((i_end - i, j_end - j), device=DEVICE, generator=generator)
        block = torch.triu(block, 1) + torch.triu(block, 1).T if i == j else block
        d[i:i_end, j:j_end], d[j:j_end, i:i_end] = block, block.T
    return d


def tree_like(n: int) -> torch.Tensor:
    """A tree without a clock, each distance 0 to 20 % too long."""
    d = on_a_tree(n, np.random.default_rng(1).exponential(0.01, n), 2, DEVICE)
    return too_long(d, torch.Generator(DEVICE).manual_seed(1))


def outbreak(n: int) -> torch.Tensor:
    """Whole numbers of mutations in an outbreak: many ties, half of the genomes copies of others."""
    return on_a_tree(n, np.random.default_rng(1).poisson(0.7, n).astype(float), 2, DEVICE)


def clock_like(n: int) -> torch.Tensor:
    """Heights of common ancestors in a Yule tree, each 0 to 20 % too long, in random order.

    Between neighbouring tips of such a tree these heights are independent (Gernhard 2008, coalescent point
    process), and between any two tips the largest of those between them.
    """
    generator = torch.Generator(DEVICE).manual_seed(1)
    height = torch.empty(n, device=DEVICE).exponential_(20.0, generator=generator)
    tip, order = torch.arange(n, device=DEVICE), torch.randperm(n, device=DEVICE, generator=generator)
    d = torch.zeros((n, n), device=DEVICE)
    for rows in tip.split(1024):
        later = tip > rows[:, None]
        d[rows] = torch.where(later, height, 0.0).cummax(dim=1).values * later
    d = (d + d.T)[order][:, order]
    return too_long(d, generator)


def too_long(d: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Every distance 0 to 20 % longer."""
    for i, j, i_end, j_end in tiles(len(d)):
        noise = 1 + 0.2 * torch.rand((i_end - i, j_end - j), device=DEVICE, generator=generator)
        noise = torch.triu(noise, 1) + torch.triu(noise, 1).T if i == j else noise
        block = d[i:i_end, j:j_end] * noise
        d[i:i_end, j:j_end], d[j:j_end, i:i_end] = block, block.T
    return d


def epidemic(n: int, from_founder: float = AS_IN_SARS_COV_2) -> torch.Tensor:
    """Genomes of a simulated epidemic, with as many rounds of linkage as real ones (outbreak.py)."""
    return torch.from_numpy(outbreak_distances(n, 1, from_founder)).to(DEVICE)


def clusters_at(level: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """(first leaves, heights) of the clusters of 2^level leaves or fewer: all heights differ."""
    block = np.arange(-(-n >> level))
    return block << level, level + block / 2**17


def ultrametric(n: int) -> torch.Tensor:
    """Heights of last common ancestors in a tree that halves runs of 2^level leaves."""
    d, leaf = torch.empty((n, n), device=DEVICE), torch.arange(n, device=DEVICE)
    for i, j, i_end, j_end in tiles(n, 2048):
        x, y = leaf[i:i_end, None], leaf[None, j:j_end]
        level = torch.frexp((x ^ y).double())[1]
        block = torch.where(x == y, 0.0, level + (x >> level) / 2**17).float()
        d[i:i_end, j:j_end], d[j:j_end, i:i_end] = block, block.T
    return d


def is_planted(result: tuple, n: int) -> bool:
    """Whether (lower, upper, distance, rounds) are the merges of `ultrametric`, to the last bit."""
    planted = []
    for level in range(1, (n - 1).bit_length() + 1):
        first, height = clusters_at(level, n)
        upper = first + 2 ** (level - 1)
        planted.append(np.stack([first, upper, height])[:, upper < n])
    lower, upper, height = np.concatenate(planted, axis=1)
    return all(np.array_equal(*pair) for pair in zip(result[:3], (lower, upper, height)))


KINDS = {"uniform": uniform, "tree-like": tree_like, "outbreak": outbreak}
LINKAGE_KINDS = {**KINDS, "clock-like": clock_like}
EPIDEMICS = {"epidemic": epidemic, "hard epidemic": partial(epidemic, from_founder=0.2)}
EPIDEMIC_SIZES = (4000, 16_000)  # the matrices take their time to make
LARGE_KINDS = {"uniform": uniform, "ultrametric": ultrametric}
LARGE_JOINING_KINDS = {"tree-like": tree_like, "additive": partial(additive, device=DEVICE)}


def sequences(n: int, sites: int, states: int = 4) -> torch.Tensor:
    codes = torch.randint(0, states, (1, sites), device=DEVICE, dtype=torch.uint8).repeat(n, 1)
    for part in codes.split(2048):
        chance = torch.rand(part.shape, device=DEVICE)
        other = torch.randint(0, states, part.shape, device=DEVICE, dtype=torch.uint8)
        part.copy_(torch.where(chance < 0.2, other, part))
        part[chance > 0.97] = MISSING
    return codes


def states_of(method: str) -> int:
    return 20 if "LG" in method else 4


def formula(method: str) -> Formula:
    if method in MODELS:
        missing = states_of(method) != 4
        return Formula(scores=ScoreTables(*score_tables(_model(method), 5.0, missing)))
    terms = None if method in ("p", "logdet") else nucleotide_terms(method, FREQUENCIES)
    return Formula(terms=terms, logdet=method == "logdet")


def encoded(codes: torch.Tensor | np.ndarray, method: str) -> EncodedSequences:
    states = states_of(method)
    return SequenceCodes(codes, np.eye(states, dtype=int), states == 4).encoded(formula(method))


def _model(method: str) -> SiteModel:
    return parse_model(MODELS[method], datatype="dna" if states_of(method) == 4 else "protein").evaluate()


def checks(parts: list[str]) -> dict[str, bool]:
    """Every kind of work next to the CPU."""
    green = {}
    for name, make in {**LINKAGE_KINDS, "epidemic": epidemic}.items():
        d = make(1500)
        for method in sorted({"upgma", "single"} & set(parts)):  # ties are exact in float64 only
            exact = d.double() if name in ("outbreak", "epidemic") else d
            green[f"{method} {name}"] = _same_tree(exact, method)
        if "nj" in parts and name in ("uniform", "tree-like"):  # equal criteria are resolved differently
            for method in JOINING:  # BIONJ's weights in float32 differ in the last bits
                exact = d.double() if method == "bionj" else d
                pairs = neighbour_joining(exact.cpu().numpy(), method).pairs
                green[f"{method} {name}"] = np.array_equal(pairs, joins(exact, method).pairs)
    for method in (*NUCLEOTIDE_METHODS, *MODELS) if "distances" in parts else ():
        codes = sequences(130, 777, states_of(method))
        host, tolerance = codes.cpu().numpy(), 1e-5 if method in MODELS else 1e-12
        values = distance_matrix(encoded(codes, method), formula(method), torch.float64)[0].cpu().numpy()
        green[f"distance {method}"] = all(
            abs(values[i, j] - _by_hand(host[i], host[j], method)) < tolerance
            for i in range(0, 130, 9)
            for j in range(0, i, 40 if method in MODELS else 1)
        )
    for n in (1000, 1500) if "upgma" in parts else ():
        green[f"upgma planted {n}"] = is_planted(linkage_merges(ultrametric(n)), n)
    for method in JOINING if "nj" in parts else ():
        d = additive(1500, DEVICE)
        green[f"{method} planted"] = is_joined(joins(d, method), 1500)
        d[3, 700] = d[700, 3] = 1.0
        green[f"{method} not what was planted"] = not is_joined(joins(d, method), 1500)
        green[f"{method} with other programs"] = _is_same_with_other_programs(uniform(1500), method)
    if "upgma" in parts:
        wrong = ultrametric(1000)
        wrong[3, 700] = wrong[700, 3] = 0.5
        green["upgma not what was planted"] = not is_planted(linkage_merges(wrong), 1000)
    return green


def _is_same_with_other_programs(d: torch.Tensor, method: str) -> bool:
    """Whether few programs, and lanes as of 140,000 taxa, give the same joins to the last bit."""
    usual, wide = joins(d, method), JoiningTiling(lanes=2048, blocks=((len(d), 2048),))
    others = [joins(d, method, tiling=tiling) for tiling in (JoiningTiling(programs=20), wide)]
    return all(np.array_equal(usual.lengths, other.lengths) for other in others)


def _same_tree(d: torch.Tensor, method: str) -> bool:
    """The CPU's merges; its averages may differ in the last bit."""
    cpu, (lower, upper, distance, _) = linkage(d.cpu().numpy(), method), linkage_merges(d, method)
    eps = torch.finfo(d.dtype).eps if method == "upgma" else 0.0
    return (
        np.array_equal(cpu.lower, lower)
        and np.array_equal(cpu.upper, upper)
        and np.allclose(cpu.distance, distance, rtol=8 * eps, atol=0)
    )


def _by_hand(x: np.ndarray, y: np.ndarray, method: str) -> float:
    states = states_of(method)
    counts, both = np.zeros((states, states)), (x < states) & (y < states)
    np.add.at(counts, (x[both], y[both]), 1)
    if method in MODELS:
        return min(likelihood_distance(counts, _model(method), 5.0), 5.0)
    return nucleotide_distance(counts, method, FREQUENCIES)


def timed(make: Callable, call: Callable, repeats: int) -> tuple[np.ndarray, object, float]:
    """(p20, p50, p80) in ms of call(make()), its last result, peak device memory in GB; one call warms up."""
    times, result = [], None
    for repeat in range(repeats + (repeats > 1)):
        argument = make()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        result = call(argument)
        torch.cuda.synchronize()
        if repeat or repeats == 1:
            times.append((time.perf_counter() - start) * 1e3)
        del argument
    peak = torch.cuda.max_memory_allocated() / 1e9
    return np.percentile(times, (20, 50, 80)), result, peak


def tree_rows(work: str, smallest: int, largest: int):
    sizes, call = {
        "upgma": (SIZES, linkage_merges),
        "single": (SINGLE_SIZES, partial(linkage_merges, method="single")),
        **{method: (JOINING_SIZES, partial(joins, method=method)) for method in JOINING},
        "nj": ((*JOINING_SIZES, *LARGE_JOINING_SIZES), joins),
    }[work]
    large = LARGE_JOINING_KINDS if work in JOINING else LARGE_KINDS
    for n in (size for size in sizes if smallest <= size <= largest):
        kinds = large if n > 20_000 else KINDS if work in JOINING else LINKAGE_KINDS
        if work == "upgma" and n in EPIDEMIC_SIZES:
            kinds = {**kinds, **EPIDEMICS}
        for name, make in kinds.items():
            torch.cuda.empty_cache()
            original = make(n) if n <= 60_000 else None
            fresh = original.clone if original is not None else partial(make, n)
            usual = (9, 3) if work == "upgma" else (3, 2) if work in JOINING else (3, 3)
            repeats = usual[n > 20_000] if n <= 100_000 else 1
            quantiles, result, peak = timed(fresh, lambda d: call(d, overwrite=True), repeats)
            found = {"ultrametric": is_planted, "additive": is_joined}.get(name)
            if found and not found(result, n):
                raise SystemExit(f"the tree of {n} taxa is not the one that was planted")
            extra = (
                f"{result.rows_read / n:.1f} rows read a join" if work in JOINING else f"{result[3]} rounds"
            )
            del original, fresh
            yield (work, name, n, "", *quantiles, peak, extra)


def encoded_times(codes: torch.Tensor, method: str) -> tuple[np.ndarray, float]:
    ready, how, n = encoded(codes, method), formula(method), len(codes)
    out, _ = distance_matrix(ready, how, torch.float32)
    quantiles, _, peak = timed(lambda: None, lambda _: ready.fill(out, how, 0, n, True), 9)
    return quantiles, peak


def distance_rows():
    for n, sites in ALIGNMENTS:
        codes = sequences(n, sites)
        for method in (*NUCLEOTIDE_METHODS, "ml GTR+G4"):
            quantiles, peak = encoded_times(codes, method)
            rate = 16 * n * n * sites / quantiles[1] / 1e9
            yield (method, "encoded on the device", n, sites, *quantiles, peak, f"{rate:.0f} Top/s")
        host = codes.cpu().numpy()
        del codes

        def whole(_, host=host):
            return distance_matrix(encoded(host, "tn93"), formula("tn93"), torch.float32)

        quantiles, _, peak = timed(lambda: None, whole, 5)
        yield ("tn93", "codes in host memory", n, sites, *quantiles, peak, "")
    quantiles, peak = encoded_times(sequences(*PROTEINS, 20), "ml LG+G4")
    yield ("ml LG+G4", "encoded on the device", *PROTEINS, *quantiles, peak, "")


def _read(path: Path) -> dict[tuple, list[str]]:
    """Rows measured before, by what they measured."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {tuple(row[:4]): row for row in list(csv.reader(file))[1:]}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=["distances", "upgma", "single", *JOINING])
    parser.add_argument("--smallest", type=int, default=0)
    parser.add_argument("--largest", type=int, default=140_000)
    parser.add_argument("--csv", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    green = checks(arguments.only)
    for name, passed in green.items():
        print(f"check {name}: {'passed' if passed else 'FAILED'}", flush=True)
    if not all(green.values()):
        return 1
    machine = [torch.cuda.get_device_name(), torch.__version__, triton.__version__]
    header = ["work", "input", "taxa", "sites", "p20_ms", "p50_ms", "p80_ms", "peak_GB", "notes"]
    table = _read(arguments.csv)
    print(*header, sep="\t")
    for part in arguments.only:
        for row in (
            distance_rows() if part == "distances" else tree_rows(part, arguments.smallest, arguments.largest)
        ):
            cells = [f"{x:.3f}" if isinstance(x, float) else str(x) for x in row]
            table[tuple(cells[:4])] = [*cells, *machine]
            print(*cells, sep="\t", flush=True)
            with arguments.csv.open("w", newline="") as file:
                csv.writer(file).writerows([[*header, "device", "torch", "triton"], *table.values()])
    return 0


if __name__ == "__main__":
    sys.exit(main())
