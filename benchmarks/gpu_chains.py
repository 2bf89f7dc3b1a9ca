"""Chain-generations a second of H chains on one GPU: random proposals, Metropolis' rule, and nothing else.

    python benchmarks/gpu_chains.py [--data DIRECTORY] [--chains H …] [--seconds S] [--only NAME …]

The loop is compiled; a generation proposes for every chain, evaluates all of them in one go and accepts or
rejects each. What a sampler does besides (priors, eigensystems of new models, samples) is not in it: models
come from a small pool. Every chain's last value is checked against the CPU engine before a rate is printed.
"""

# ruff: noqa: NPY002 (compiled code has no Generator per thread)

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from numba import njit
from problems import _model, _problem

from phloem import parse_model, read_alignment
from phloem.data.patterns import site_patterns
from phloem.model.record import SiteModel
from phloem.pruning.cpu import chain_evaluation as generation
from phloem.pruning.cpu.chain_state import LEFT, MODEL, N_BRANCHES, N_EDITS, PARENT, RIGHT, ordered_tree
from phloem.pruning.cpu.evaluator import CpuEvaluator
from phloem.pruning.gpu.forest import GpuForest
from phloem.pruning.interface import Problem

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[1] / "shared"
# Shares of proposals: one branch, a nearest-neighbour interchange, another model.
MIXES = {
    "mixed": (0.6, 0.3, 0.1),
    "branch": (1.0, 0.0, 0.0),
    "interchange": (0.0, 1.0, 0.0),
    "model": (0.0, 0.0, 1.0),
}


def rooted_on_first_tip(left: np.ndarray, right: np.ndarray, lengths: np.ndarray):
    """The same unrooted tree with its root on tip 0's branch, all of whose length tip 0 has."""
    n_tips, root = len(left) + 1, 2 * len(left)
    edges: list[dict[int, float]] = [{} for _ in range(root + 1)]
    for k, pair in enumerate(zip(left, right)):
        for child in map(int, pair):
            edges[child][n_tips + k] = edges[n_tips + k][child] = lengths[child]
    a, b = edges[root]
    del edges[a][root], edges[b][root]
    edges[a][b] = edges[b][a] = lengths[a] + lengths[b]
    children, new_lengths, waiting = [], {0: next(iter(edges[0].values()))}, [(next(iter(edges[0])), 0)]
    order = []
    while waiting:
        x, above = waiting.pop()
        order.append((x, [y for y in edges[x] if y != above]))
        for y in edges[x]:
            if y != above:
                new_lengths[y] = edges[x][y]
                if y >= n_tips:
                    waiting.append((y, x))
    number = dict(zip(range(n_tips), range(n_tips))) | {x: n_tips + k for k, (x, _) in enumerate(order[::-1])}
    children = [[number[y] for y in below] for _, below in order[::-1]] + [[0, root - 1]]
    found = np.zeros(root + 1)
    for x, length in new_lengths.items():
        found[number[x]] = max(length, 1e-6)
    return (*np.array(children, np.int32).T.copy(), found)


def random_tree(n_tips: int, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    free, pairs = list(range(n_tips)), []
    while len(free) > 1:
        pairs.append([free.pop(int(rng.integers(len(free)))) for _ in range(2)])
        free.append(n_tips + len(pairs) - 1)
    left, right = np.array(pairs, np.int32).T.copy()
    return rooted_on_first_tip(left, right, rng.exponential(0.05, 2 * n_tips - 1))


def _shared(name: str, data: Path):
    spec = importlib.util.spec_from_file_location("shared_problems", data.parent / "bench" / "problems.py")
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    return shared, shared.load(name, str(data))


def problem_named(name: str, data: Path) -> tuple[Problem, np.ndarray, list[SiteModel]]:
    """(problem, lengths, pool of models)."""
    rng = np.random.default_rng(7)
    if name == "primates":
        patterns = site_patterns(read_alignment(HERE.parent / "examples" / "primates.nex"))
        left, right, lengths = random_tree(len(patterns.codes), rng)
        problem = _problem(patterns.codes, patterns.weights, 4, (left, right), 4, "float64")
        problem = replace(
            problem, state_sets=patterns.state_sets, tip_codes=np.ascontiguousarray(patterns.codes)
        )
        frequencies = np.array([0.32, 0.30, 0.11, 0.27])
        return problem, lengths, _pool(frequencies, rng)
    kind = {"nucleotides": "nuc", "amino_acids": "codon", "codons": "codon"}[name.split("_", 1)[1]]
    shared, found = _shared(f"carnivores_{kind}", data)
    tree, codes, weights = found["tree"], found["pat"], found["w"]
    left, right = tree.child[:, 0].astype(np.int32), tree.child[:, 1].astype(np.int32)
    left, right, lengths = rooted_on_first_tip(left, right, tree.len)
    if kind == "nuc":
        return _problem(codes, weights, 4, (left, right), 4, "float64"), lengths, _pool(found["pi"], rng)
    if name.endswith("codons"):
        pool = [_model(shared.gy94(k, w, found["pi"]), found["pi"], np.ones(1), np.ones(1))
                for k, w in rng.uniform((1.1, 1.2), (1.4, 1.6), (8, 2))]  # fmt: skip
        return _problem(codes, weights, found["S"], (left, right), 1, "float64"), lengths, pool
    letters = "ARNDCQEGHILKMFPSTWYV"
    sense = [x for x in shared.GC[1] if x != "*"]
    amino = np.array([*[letters.index(x) for x in sense], 20])[codes]
    unique, inverse = np.unique(amino, axis=1, return_inverse=True)
    weights = np.bincount(inverse.ravel(), weights, unique.shape[1])
    return _problem(unique, weights, 20, (left, right), 4, "float64"), lengths, _pool(None, rng)


def _pool(frequencies: np.ndarray | None, rng) -> list[SiteModel]:
    """Eight models that differ in shape: GTR+G4 with these frequencies, or WAG+G4."""
    pool = []
    for alpha in rng.uniform(0.4, 0.6, 8):
        if frequencies is None:
            model = parse_model(f"WAG+G4{{{alpha}}}", datatype="protein")
        else:
            given = "/".join(f"{x:.6f}" for x in frequencies / frequencies.sum())
            model = parse_model(f"GTR{{1.2/6/0.9/0.8/7/1}}+F{{{given}}}+G4{{{alpha}}}", datatype="dna")
        pool.append(model.evaluate())
    return pool


@njit
def propose(chains, change, shares, pool, rates, hastings):
    trees = chains.trees
    n_nodes = trees.node.shape[2]
    n_tips = (n_nodes + 1) // 2
    for h in range(trees.node.shape[1]):
        version, kind = trees.accepted[h], np.random.random()
        node = trees.node[version, h]
        still = (
            node[n_nodes - 1, LEFT] + node[n_nodes - 1, RIGHT]
        )  # above it is tip 0's branch, its own has length 0
        hastings[h] = 0.0
        if kind < shares[0]:
            x = np.random.randint(n_nodes - 1)
            while x == still:
                x = np.random.randint(n_nodes - 1)
            step = np.random.uniform(-0.5, 0.5)
            change.branches[h, 0], change.counts[h, N_BRANCHES] = x, 1
            change.lengths[h, 0, x] = min(max(trees.lengths[version, h, 0, x] * np.exp(step), 1e-8), 10.0)
            hastings[h] = step
        elif kind < shares[0] + shares[1]:
            x = n_tips + np.random.randint(n_nodes - n_tips - 1)
            while x == still or node[x, PARENT] == n_nodes - 1:
                x = n_tips + np.random.randint(n_nodes - n_tips - 1)
            p = node[x, PARENT]
            a, b = node[x, LEFT], node[x, RIGHT]
            if np.random.random() < 0.5:
                a, b = b, a
            sibling = node[p, LEFT] + node[p, RIGHT] - x
            change.edits[h, 0, 0], change.edits[h, 0, 1], change.edits[h, 0, 2] = x, sibling, b
            change.edits[h, 1, 0], change.edits[h, 1, 1], change.edits[h, 1, 2] = p, x, a
            change.counts[h, N_EDITS] = 2
        else:
            k = np.random.randint(len(pool))
            change.numbers[h, :] = pool[k]
            change.rates[h, :] = rates[k]
            change.counts[h, MODEL] = 1


@njit
def decide(chains, change, hastings, accept):
    trees = chains.trees
    for h in range(len(accept)):
        new, old = trees.value[1 - trees.accepted[h], h], trees.value[trees.accepted[h], h]
        accept[h] = np.log(np.random.random()) < new - old + hastings[h]
    generation.settle(chains, change, accept)


@njit
def generations(n, chains, change, record, shares, pool, rates, hastings, accept):
    """Stops where a list wants room or a graph: the caller evaluates it, decides, and goes on."""
    for done in range(n):
        propose(chains, change, shares, pool, rates, hastings)
        if generation.evaluate(chains, change, record) != generation.READY:
            return done
        decide(chains, change, hastings, accept)
    return n


@njit
def generations_of_two(n, one, two, shares, pool, rates):
    """The same for two sets of chains by turns: the host prepares one while the device evaluates the other.
    one, two: (chains, change, record, hastings, accept)."""
    propose(one[0], one[1], shares, pool, rates, one[3])
    if generation.begin(one[0], one[1], one[2]) != generation.READY:
        return 0, 1
    for done in range(n):
        propose(two[0], two[1], shares, pool, rates, two[3])
        if generation.begin(two[0], two[1], two[2]) != generation.READY:
            return done, 2
        if generation.await_values(one[0].trees, one[2]) != generation.READY:
            return done, 3
        decide(one[0], one[1], one[3], one[4])
        propose(one[0], one[1], shares, pool, rates, one[3])
        if generation.begin(one[0], one[1], one[2]) != generation.READY:
            return done, 4
        if generation.await_values(two[0].trees, two[2]) != generation.READY:
            return done, 5
        decide(two[0], two[1], two[3], two[4])
    if generation.await_values(one[0].trees, one[2]) != generation.READY:
        return n, 6
    decide(one[0], one[1], one[3], one[4])
    return n, 0


def run_two(forests: list[GpuForest], n: int, shares, pool, rates) -> None:
    while n > 0:
        sets = [
            (f.chains, f.change, f.record, np.zeros(f.n_chains), np.zeros(f.n_chains, np.int64))
            for f in forests
        ]
        done, stopped = generations_of_two(n, *sets, shares, pool, rates)
        n -= max(done, 1)
        if stopped == 0:
            return
        first, second = (0, 1) if stopped in (1, 4) else (1, 0)
        if stopped in (2, 4):  # the other set's values are on their way
            other = forests[second]
            assert generation.await_values(other.chains.trees, other.record) == generation.READY
            decide(other.chains, other.change, sets[second][3], sets[second][4])
        forests[first].evaluate()
        decide(forests[first].chains, forests[first].change, sets[first][3], sets[first][4])


def run(forest: GpuForest, n: int, shares, pool, rates) -> None:
    hastings, accept = np.zeros(forest.n_chains), np.zeros(forest.n_chains, np.int64)
    while n > 0:
        n -= generations(
            n, forest.chains, forest.change, forest.record, shares, pool, rates, hastings, accept
        )
        if n > 0:
            forest.evaluate()
            decide(forest.chains, forest.change, hastings, accept)
            n -= 1


def checked(forest: GpuForest, pool: list[SiteModel], chain: int) -> float:
    """Relative difference from the CPU engine, at the model of the pool that fits best."""
    left, right, number = ordered_tree(forest.chains.trees, chain)
    trees = forest.chains.trees
    lengths = np.empty(forest.n_nodes)
    lengths[number] = trees.lengths[trees.accepted[chain], chain, 0]
    cpu = CpuEvaluator(replace(forest.problem, left=left, right=right))
    value = forest.values()[chain]
    return min(abs(cpu.log_likelihood(lengths, model) / value - 1) for model in pool)


def measure(name: str, n_chains: int, arguments) -> None:
    problem, lengths, models = problem_named(name, arguments.data)
    forest = GpuForest(problem, np.stack([problem.left] * n_chains), np.stack([problem.right] * n_chains))
    forest.start(np.stack([lengths] * n_chains), [models[0]] * n_chains)
    pool = np.zeros((len(models), forest.numbers.n_words))
    for words, model in zip(pool, models):
        forest.numbers.pack(model, words)
    rates = np.stack([m.rates for m in models])
    shown = []
    for mix, shares in MIXES.items():
        run(forest, 300, np.array(shares), pool, rates)
        begin = time.perf_counter()
        run(forest, 100, np.array(shares), pool, rates)
        n = max(200, int(100 * arguments.seconds / (time.perf_counter() - begin)))
        taken = []
        for _ in range(3):
            begin = time.perf_counter()
            run(forest, n // 3, np.array(shares), pool, rates)
            taken.append((time.perf_counter() - begin) / (n // 3))
        shown.append(f"{mix} {n_chains / np.median(taken):,.0f} ({np.median(taken) * 1e6:.0f} us)")
        error = max(checked(forest, models, h) for h in (0, n_chains - 1))
        if not error < 1e-9:
            sys.exit(f"RED {name} after {mix}: {error:.1e}")
    if n_chains >= 16:
        shown.append(_by_turns(problem, lengths, models, (pool, rates), n_chains, n))
    graphs = len(forest._graphs)
    n_tips, n_patterns = problem.tip_codes.shape
    print(f"{name} H={n_chains} T={n_tips} P={n_patterns}: chain-generations/s "
          f"(a generation): {' · '.join(shown)}; {graphs} graphs; values right to {error:.0e}",
          flush=True)  # fmt: skip


def _by_turns(problem, lengths, models, of_pool, n_chains: int, n: int) -> str:
    """The mixed proposals in two sets of half as many chains."""
    half, shares = n_chains // 2, np.array(MIXES["mixed"])
    forests = [
        GpuForest(problem, np.stack([problem.left] * half), np.stack([problem.right] * half)) for _ in "ab"
    ]
    for forest in forests:
        forest.start(np.stack([lengths] * half), [models[0]] * half)
    run_two(forests, 200, shares, *of_pool)
    begin = time.perf_counter()
    run_two(forests, n, shares, *of_pool)
    taken = (time.perf_counter() - begin) / n
    error = max(checked(forest, models, half - 1) for forest in forests)
    if not error < 1e-9:
        sys.exit(f"RED two sets of chains: {error:.1e}")
    return f"mixed, in two sets by turns {n_chains / taken:,.0f} ({taken * 1e6:.0f} us)"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--chains", type=int, nargs="*", default=[4, 64])
    parser.add_argument("--seconds", type=float, default=1.0)
    names = ["primates", "carnivores_nucleotides", "carnivores_amino_acids", "carnivores_codons"]
    parser.add_argument("--only", nargs="*", default=names)
    arguments = parser.parse_args()
    for name in arguments.only:
        for n_chains in arguments.chains:
            measure(name, n_chains, arguments)


if __name__ == "__main__":
    main()
