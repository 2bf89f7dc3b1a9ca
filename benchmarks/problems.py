"""Benchmark problems as the engines take them: (Problem, effective branch lengths, SiteModel)."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phloem.model.record import EigenSystem, ProcessNumbers, SiteModel
from phloem.pruning.interface import EngineGradient, Problem
from phloem.pruning.reference.evaluator import ReferenceEvaluator

SHARED = Path(__file__).resolve().parents[2] / "shared"
NAMED = ("carnivores_nuc", "carnivores_codon", "wnv_codon")


@dataclass(frozen=True)
class Case:
    """A named problem; value and gradient_sum are what BEAGLE 4 prints, None where nothing was recorded."""

    name: str
    problem: Problem
    lengths: np.ndarray
    model: SiteModel
    value: float | None = None
    gradient_sum: float | None = None


RECORDED = {
    "carnivores_nuc": (-288035.022426, -150947.193176),
    "carnivores_codon": (-301098.111901, -184905.978672),
}


def named(name: str, precision: str = "float64") -> Case | None:
    """A problem on real data, or None where ../shared is not there."""
    source = SHARED / "bench" / "problems.py"
    if not source.exists():
        return None
    spec = importlib.util.spec_from_file_location("shared_problems", source)
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    data = shared.load(name, str(SHARED / "data"))
    tree, states = data["tree"], data["S"]
    model = _model(data["Q"], data["pi"], data["rates"], data["probs"])
    children = tree.child[:, 0].astype(np.int32), tree.child[:, 1].astype(np.int32)
    problem = _problem(data["pat"], data["w"], states, children, len(data["rates"]), precision)
    return Case(name, problem, tree.len.copy(), model, *RECORDED.get(name, (None, None)))


def simulated(
    taxa: int, patterns: int, states: int, categories: int, length: float = 0.02, seed: int = 1
) -> Case:
    """Columns evolved along a random tree: two random subtrees joined at each step, exponential lengths."""
    rng = np.random.default_rng(seed)
    frequencies = rng.dirichlet(np.full(states, 10.0))
    left, right = _random_topology(rng, taxa)
    lengths = rng.exponential(length, 2 * taxa - 1)
    column = np.empty((2 * taxa - 1, patterns), np.uint8)
    column[-1] = rng.choice(states, patterns, p=frequencies)
    for k in range(taxa - 2, -1, -1):
        for child in (left[k], right[k]):
            moved = rng.random(patterns) < 1 - np.exp(-lengths[child])
            drawn = rng.choice(states, patterns, p=frequencies)
            column[child] = np.where(moved, drawn, column[taxa + k])
    model = equal_exchange_model(frequencies, categories)
    weights = np.ones(patterns)
    problem = _problem(column[:taxa], weights, states, (left, right), categories, "float64")
    return Case(f"T={taxa} P={patterns} S={states} C={categories}", problem, lengths, model)


def equal_exchange_model(frequencies: np.ndarray, categories: int = 1) -> SiteModel:
    """Rates proportional to the target's frequency (Felsenstein 1981), one substitution a unit of time."""
    q = np.ones((len(frequencies), len(frequencies))) * frequencies
    np.fill_diagonal(q, 0.0)
    np.fill_diagonal(q, -q.sum(1))
    q /= -(frequencies @ np.diag(q))
    rates = np.linspace(0.2, 1.8, categories) if categories > 1 else np.ones(1)
    return _model(q, frequencies, rates, np.full(categories, 1 / categories))


def reference_gradient(case: Case) -> EngineGradient:
    """What the NumPy reference says; a function of a module, so that processes can share the work."""
    return ReferenceEvaluator(case.problem).gradient(case.lengths, case.model)


def _random_topology(rng, taxa: int) -> tuple[np.ndarray, np.ndarray]:
    free, children = list(range(taxa)), np.empty((taxa - 1, 2), np.int32)
    for k in range(taxa - 1):
        for side in range(2):
            i = int(rng.integers(len(free)))
            free[i], free[-1] = free[-1], free[i]
            children[k, side] = free.pop()
        free.append(taxa + k)
    return children[:, 0].copy(), children[:, 1].copy()


def _problem(codes, weights, states: int, children, categories: int, precision: str) -> Problem:
    sets = np.vstack([np.eye(states, dtype=bool), np.ones((1, states), bool)])
    hidden = np.zeros(codes.shape[1], bool)
    return Problem(codes.astype(np.uint8), sets, weights, hidden, *children, categories, precision)


def _model(q, frequencies, rates, weights) -> SiteModel:
    root = np.sqrt(frequencies)
    symmetric = q * root[:, None] / root
    values, vectors = np.linalg.eigh((symmetric + symmetric.T) / 2)
    eigen = EigenSystem(values, vectors / root[:, None], vectors.T * root)
    return SiteModel.of_one(ProcessNumbers(q, frequencies, frequencies, eigen), rates, weights)
