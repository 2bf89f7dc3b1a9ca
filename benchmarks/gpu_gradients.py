"""What a gradient of chains on one GPU costs: with nothing new, and after an accepted interchange.

    python benchmarks/gpu_gradients.py [--chains H …] [--only NAME …]

Every figure is the median of whole calls in Python, the gradients at home at their end; the last ones are
compared with the CPU engine before any figure is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace

import numpy as np
from mcmc_devices import PROBLEMS, alignment_of

from phloem.clustering.starting_tree import starting_tree
from phloem.data.patterns import site_patterns
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.problem import engine_problem
from phloem.model.record import SiteModel
from phloem.pruning.cpu.chain_state import LEFT, PARENT, RIGHT, ordered_tree
from phloem.pruning.cpu.evaluator import CpuEvaluator
from phloem.pruning.gpu.evaluator import GpuEvaluator
from phloem.pruning.gpu.forest import GpuForest
from phloem.pruning.interface import Problem
from phloem.tree.layout import tree_layout


def problem_named(name: str) -> tuple[Problem, np.ndarray, SiteModel]:
    """The problem of an alignment on its BIONJ tree, lengths, and the model as fits start with it."""
    alignment = alignment_of(name)
    model = model_for_alignment(PROBLEMS[name], alignment)
    layout = tree_layout(starting_tree(alignment, "bionj", 1e-6).tree, alignment.taxa)
    problem = engine_problem(site_patterns(alignment), model, layout.children)
    lengths = np.random.default_rng(7).exponential(0.05, 2 * len(problem.tip_codes) - 1) + 1e-4
    lengths[-1] = 0.0
    return problem, lengths, model.evaluate(model.start_values())


def interchange(forest: GpuForest, chain: int, rng: np.random.Generator) -> None:
    """Propose that a child of an inner node changes places with that node's sibling."""
    trees = forest.chains.trees
    node = trees.node[trees.accepted[chain], chain]
    inner = np.flatnonzero((node[:-1, LEFT] >= 0) & (node[:-1, PARENT] < len(node) - 1))
    x = int(rng.choice(inner))
    p = int(node[x, PARENT])
    sibling = int(node[p, LEFT] + node[p, RIGHT] - x)
    forest.set_children(chain, x, sibling, int(node[x, RIGHT]))
    forest.set_children(chain, p, x, int(node[x, LEFT]))


def error(forest: GpuForest, chain: int, found: np.ndarray, model) -> float:
    left, right, number = ordered_tree(forest.chains.trees, chain)
    trees = forest.chains.trees
    lengths = np.empty(forest.n_nodes)
    lengths[number] = trees.lengths[trees.accepted[chain], chain, 0]
    cpu = CpuEvaluator(replace(forest.problem, left=left, right=right))
    wanted = cpu.gradient(lengths, model).branch_lengths[number]
    return float(np.abs(found[0] - wanted).max() / np.abs(wanted).max())


def timed(call, n: int) -> float:
    taken = []
    for _ in range(n):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return float(np.median(taken)) * 1e6


def _ten_steps(forest: GpuForest) -> None:
    shape, n = forest.change.lengths.shape, forest.n_chains
    forest.gradients.leapfrog.run(np.zeros(shape), np.full(n, 1e-7), np.ones(shape), 10, np.ones(n, bool))
    forest.settle(np.zeros(n))


def neighbour(left: np.ndarray, right: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The children of a tree one interchange away, children below parents."""
    n_tips, sides = len(left) + 1, np.stack([left, right])
    while True:
        side, k = int(rng.integers(2)), int(rng.integers(n_tips - 1))
        x, y = sides[side, k], sides[1 - side, k]
        if n_tips <= x and y < x:
            sides[1 - side, k], sides[1, x - n_tips] = sides[1, x - n_tips], y
            return np.ascontiguousarray(sides[0]), np.ascontiguousarray(sides[1])


def trees_of_one(name: str) -> None:
    """A search by the evaluator of one tree: an interchange, accepted, and the gradient there."""
    problem, lengths, model = problem_named(name)
    engine, rng, left, right = GpuEvaluator(problem), np.random.default_rng(1), problem.left, problem.right
    engine.log_likelihood(lengths, model)
    taken: dict[str, list[float]] = {"proposed": [], "gradient": [], "of parameters": []}
    for _ in range(160):
        left, right = neighbour(left, right, rng)
        begin = time.perf_counter()
        engine.propose(lengths, np.arange(0), None, left, right)
        taken["proposed"].append(time.perf_counter() - begin)
        engine.accept()
        for what, parameters in (("gradient", False), ("of parameters", True)):
            begin = time.perf_counter()
            found = engine.gradient(lengths, model, parameters)
            taken[what].append(time.perf_counter() - begin)
    wanted = CpuEvaluator(replace(problem, left=left, right=right)).gradient(lengths, model, True)
    worst = np.abs(found.branch_lengths - wanted.branch_lengths).max() / np.abs(wanted.branch_lengths).max()
    q, wanted_q = (g.site_model.processes[0].rate_matrix for g in (found, wanted))
    worst = max(worst, np.abs(q - wanted_q).max() / np.abs(wanted_q).max())
    if not worst < 1e-8:
        sys.exit(f"RED {name}: {worst:.1e}")
    again = timed(lambda: engine.gradient(lengths, model, True), 100)
    texts = [f"{what} {np.median(of[60:]) * 1e6:.0f} us" for what, of in taken.items()]
    print(
        f"{name}, one tree, after an accepted interchange: {', '.join(texts)}, again {again:.0f}; "
        f"right to {worst:.0e}",
        flush=True,
    )


def measure(name: str, n_chains: int) -> None:
    problem, lengths, model = problem_named(name)
    rng = np.random.default_rng(1)
    forest = GpuForest(problem, np.stack([problem.left] * n_chains), np.stack([problem.right] * n_chains))
    forest.start(np.stack([lengths] * n_chains), [model] * n_chains)
    for _ in range(3):
        forest.gradient()
    again = timed(forest.gradient, 200)
    taken, values = [], []
    for _ in range(160):
        for chain in range(n_chains):
            interchange(forest, chain, rng)
        begin = time.perf_counter()
        forest.evaluate()
        values.append(time.perf_counter() - begin)
        forest.settle(np.ones(n_chains, bool))
        begin = time.perf_counter()
        found = forest.gradient()
        taken.append(time.perf_counter() - begin)
    worst = max(error(forest, chain, found[chain], model) for chain in (0, n_chains - 1))
    if not worst < 1e-8:
        sys.exit(f"RED {name}: {worst:.1e}")
    leap = timed(lambda: _ten_steps(forest), 40) / 10
    engine = GpuEvaluator(problem)
    for _ in range(3):
        engine.gradient(lengths, model)
        engine.gradient(lengths, model, parameters=True)
    alone = timed(lambda: engine.gradient(lengths, model), 100)
    whole = timed(lambda: engine.gradient(lengths, model, parameters=True), 100)
    of_chains = timed(lambda: forest.gradient(parameters=True), 40)
    print(
        f"{name} H={n_chains}: gradient {again:.0f} us, after an accepted interchange "
        f"{np.median(taken[60:]) * 1e6:.0f} (its value {np.median(values[60:]) * 1e6:.0f}); "
        f"a leapfrog step (of ten) {leap:.0f}; one chain from scratch, value included, {alone:.0f}; "
        f"with all parameters {of_chains:.0f}, one from scratch {whole:.0f}; "
        f"right to {worst:.0e}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chains", type=int, nargs="*", default=[1, 4])
    parser.add_argument("--only", nargs="*", default=list(PROBLEMS))
    arguments = parser.parse_args()
    for name in arguments.only:
        trees_of_one(name)
        for n_chains in arguments.chains:
            measure(name, n_chains)


if __name__ == "__main__":
    main()
