"""Hamiltonian Monte Carlo over branch rates on fixed trees, beside random-walk moves: the study of
Gangavarapu et al. 2024 (Bioinformatics 40:btae030, Fig. 4), on the CPU or one GPU.

    python benchmarks/hmc_rates.py [--engine cpu|gpu] [--threads N] [--seconds S] [--only NAME …]

Every branch lasts its length on the problem's tree times exp(s ε - s²/2), ε ~ N(0, 1), s = 0.5. An iteration
of Hamiltonian dynamics is 5 leapfrog steps, each a value and a gradient; masses are the inverse variances of
a warm-up, steps are adapted to an acceptance of 0.8 there. A random-walk move changes one ε, at a width of
its own adapted to 0.3. Both sample for S seconds after a warm-up as long. The gradient is first compared
with differences; on a red check the exit status is 1. Real data from examples/, other sizes simulated: 997
taxa as the paper's dengue, 49 taxa × 22,151 codons as its yeasts, 122 states as its Markov-modulated model.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from problems import simulated

import phloem
from phloem.data.patterns import site_patterns
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.problem import engine_problem
from phloem.model.record import SiteModel
from phloem.pruning.interface import Evaluator, Problem
from phloem.summary.trace import mixing
from phloem.tree.layout import tree_layout

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SPREAD, STEPS, ACCEPTANCE, OF_ONE = 0.5, 5, 0.8, 0.3
SIMULATED = {
    "carnivores 122 states": (62, 3_601, 122, 1),
    "dengue size": (997, 5_000, 4, 4),
    "yeast size": (49, 22_151, 61, 1),
}
REAL = {
    "carnivores nucleotides": ("HKY{3.5}+F+G4{0.5}", {}),
    "carnivores codons": ("GY94{2.0,0.3}+F", {"datatype": "codon", "genetic_code": 2, "stop_codons": "mask"}),
}


class Tree(NamedTuple):
    """problem, base: (N,) lengths at ε = s / 2, model."""

    problem: Problem
    base: np.ndarray
    model: SiteModel


class Found(NamedTuple):
    """iterations in seconds; (n, N - 1) draws; share of what was proposed that was accepted."""

    iterations: int
    seconds: float
    draws: np.ndarray
    accepted: float


def tree_of(name: str) -> Tree:
    if name in SIMULATED:
        case = simulated(*SIMULATED[name])
        return Tree(case.problem, np.maximum(case.lengths, 1e-4), case.model)
    text, coding = REAL[name]
    alignment = phloem.read_alignment(EXAMPLES / "carnivores.fasta.gz", **coding)
    model = model_for_alignment(text, alignment)
    layout = tree_layout(phloem.read_tree(EXAMPLES / "carnivores.nwk"), alignment.taxa)
    tree = phloem.read_tree(EXAMPLES / "carnivores.nwk")
    problem = engine_problem(site_patterns(alignment), model, layout.children)
    lengths = layout.to_nodes(np.atleast_2d(tree.lengths)[:, :-1])[0]
    return Tree(problem, np.maximum(lengths, 1e-4), model.evaluate(model.start_values()))


def evaluator(problem: Problem, engine: str, threads: int) -> Evaluator:
    if engine == "cpu":
        from phloem.pruning.cpu.evaluator import CpuEvaluator

        return CpuEvaluator(problem, threads)
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    return GpuEvaluator(problem)


class Density:
    """log L + log prior of ε (N - 1,), and its gradient."""

    def __init__(self, tree: Tree, engine: Evaluator) -> None:
        self.tree, self.engine, self.n = tree, engine, len(tree.base) - 1

    def lengths(self, e: np.ndarray) -> np.ndarray:
        return np.append(self.tree.base[:-1] * np.exp(SPREAD * e - 0.5 * SPREAD**2), 0.0)

    def value(self, e: np.ndarray) -> float:
        return self.engine.log_likelihood(self.lengths(e), self.tree.model) - 0.5 * e @ e

    def gradient(self, e: np.ndarray) -> tuple[float, np.ndarray]:
        b = self.lengths(e)
        found = self.engine.gradient(b, self.tree.model)
        slope = np.atleast_2d(found.branch_lengths)[0, :-1] * b[:-1] * SPREAD
        return found.log_likelihood - 0.5 * e @ e, slope - e

    def error(self, e: np.ndarray) -> float:
        """Of the gradient in one random direction, from differences."""
        way, h = np.random.default_rng(3).normal(size=self.n), 1e-5
        wanted = (self.value(e + h * way) - self.value(e - h * way)) / (2 * h)
        return abs(float(self.gradient(e)[1] @ way) - wanted) / (1.0 + abs(wanted))


def hamiltonian(at: Density, e: np.ndarray, rng, seconds: float) -> Found:
    """A warm-up of so many seconds, half of it to learn masses, then draws for as long."""
    scale, log_step, draws = np.ones(at.n), np.log(0.1), []
    value, slope = at.gradient(e)
    for phase in ("far", "scales", "draws"):
        seen, accepted, begun = [], 0.0, time.perf_counter()
        while time.perf_counter() - begun < (seconds if phase == "draws" else seconds / 2) or len(seen) < 10:
            step = np.exp(log_step) * scale * rng.uniform(0.8, 1.2)
            p, x, g = rng.normal(size=at.n), e.copy(), slope
            energy = value - 0.5 * p @ p
            for _ in range(STEPS):
                p = p + 0.5 * step * g
                x = x + step * p
                there, g = at.gradient(x)
                p = p + 0.5 * step * g
            chance = min(1.0, np.exp(min(there - 0.5 * p @ p - energy, 0.0)))
            if rng.uniform() < chance:
                e, value, slope = x, there, g
            accepted += chance
            seen.append(e)
            if phase != "draws":
                log_step += (chance - ACCEPTANCE) / np.sqrt(len(seen) + 4.0)
        if phase == "far":
            scale = np.maximum(np.std(seen[len(seen) // 2 :], axis=0), 1e-3)
            log_step -= np.log(scale).mean() * 0.5
    draws = np.array(seen)
    return Found(len(seen), time.perf_counter() - begun, draws, accepted / len(seen))


def random_walk(at: Density, e: np.ndarray, rng, seconds: float) -> Found:
    """Moves of one rate each; draws every N - 1 of them."""
    engine, width, e = at.engine, np.full(at.n, 0.5), e.copy()
    log_likelihood = at.value(e) + 0.5 * e @ e
    for phase in ("warm-up", "draws"):
        seen, accepted, tried, begun = [], 0, 0, time.perf_counter()
        while time.perf_counter() - begun < seconds or len(seen) < 3:
            x = tried % at.n
            old, e[x] = e[x], e[x] + width[x] * rng.normal()
            there = engine.propose(at.lengths(e), np.array([x]))
            taken = np.log(rng.uniform()) < there - log_likelihood - 0.5 * (e[x] ** 2 - old**2)
            if taken:
                engine.accept()
                log_likelihood = there
            else:
                engine.reject()
                e[x] = old
            tried, accepted = tried + 1, accepted + taken
            if phase == "warm-up":
                width[x] *= np.exp((taken - OF_ONE) * min(0.5, (tried / at.n + 1.0) ** -0.6))
            if tried % at.n == 0:
                seen.append(e.copy())
    return Found(tried, time.perf_counter() - begun, np.array(seen), accepted / tried)


def row(name: str, how: str, found: Found) -> str:
    ess = mixing(found.draws[None])[0] / found.seconds
    cost = found.seconds / found.iterations * 1e3
    return (
        f"{name}\t{how}\t{found.iterations}\t{cost:.4g}\t{found.accepted:.2f}\t{np.nanmin(ess):.3g}\t"
        f"{np.nanmedian(ess):.3g}"
    )


def study(name: str, options: argparse.Namespace) -> bool:
    tree = tree_of(name)
    at = Density(tree, evaluator(tree.problem, options.engine, options.threads))
    rng, start = np.random.default_rng(1), np.full(len(tree.base) - 1, 0.5 * SPREAD)
    if not (worst := at.error(start)) < 1e-5:
        print(f"RED {name}: the gradient is {worst:.1e} off", file=sys.stderr)
        return False
    samplers: tuple[tuple[str, Callable[..., Found]], ...] = (
        ("Hamiltonian", hamiltonian), ("random walk", random_walk),
    )  # fmt: skip
    for how, sampler in samplers:
        print(row(name, how, sampler(at, start, rng, options.seconds)), flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", nargs="*", default=[*REAL, *SIMULATED])
    options = parser.parse_args()
    print("problem\tsampler\titerations\tms each\taccepted\tleast ESS/s of a rate\tmedian ESS/s")
    return 0 if all([study(name, options) for name in options.only]) else 1


if __name__ == "__main__":
    sys.exit(main())
