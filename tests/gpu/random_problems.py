"""Small random problems with everything that can go wrong in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.model.record import EigenSystem, ProcessNumbers, SiteModel
from phloem.pruning.interface import Problem


@dataclass(frozen=True)
class Case:
    problem: Problem
    model: SiteModel
    lengths: np.ndarray


def random_topology(n_tips: int, rng: np.random.Generator, shape: str = "random"):
    """(left, right) of a random, caterpillar or balanced tree."""
    active, pairs = list(range(n_tips)), []
    while len(active) > 1:
        if shape == "random":
            a, b = sorted(rng.choice(len(active), 2, replace=False))
        else:
            a, b = (0, 1) if shape == "balanced" else (len(active) - 2, len(active) - 1)
        right, left = active.pop(b), active.pop(a)
        active.append(n_tips + len(pairs))
        pairs.append((left, right))
    return np.array([p[0] for p in pairs], np.int32), np.array([p[1] for p in pairs], np.int32)


def random_model(
    n_states: int, n_categories: int, rng: np.random.Generator, invariant: float = 0.0
) -> SiteModel:
    frequencies = rng.dirichlet(np.full(n_states, 5.0))
    exchange = rng.gamma(1.0, 1.0, (n_states, n_states))
    q = (exchange + exchange.T) * frequencies
    np.fill_diagonal(q, 0)
    np.fill_diagonal(q, -q.sum(axis=1))
    q /= -(frequencies @ np.diag(q))
    root = np.sqrt(frequencies)
    symmetric = q * root[:, None] / root
    values, vectors = np.linalg.eigh((symmetric + symmetric.T) / 2)
    eigen = EigenSystem(values, vectors / root[:, None], vectors.T * root)
    rates = np.sort(rng.gamma(1.0, 1.0, n_categories)) + 0.01
    weights = rng.dirichlet(np.full(n_categories, 5.0)) * (1 - invariant)
    process = ProcessNumbers(q, frequencies, frequencies, eigen)
    return SiteModel.of_one(process, rates / (rates @ weights), weights, invariant)


def random_mixture(
    n_states: int,
    n_categories: int,
    n_processes: int,
    n_sets: int,
    rng: np.random.Generator,
    invariant: float = 0.0,
) -> SiteModel:
    """Categories of several processes and sets of branch lengths, all of them used where categories
    suffice."""
    parts = [random_model(n_states, n_categories, rng, invariant) for _ in range(n_processes)]
    every = np.arange(n_categories)
    return SiteModel(
        tuple(part.processes[0] for part in parts),
        every % n_processes,
        parts[0].rates,
        parts[0].weights,
        every[::-1] % n_sets,
        invariant,
        rng.dirichlet(np.ones(n_states)),
    )


def random_case(
    n_tips: int,
    n_patterns: int,
    n_states: int,
    n_categories: int,
    precision: str = "float64",
    invariant: float = 0.0,
    ascertained: bool = False,
    seed: int = 1,
    shape: str = "random",
    mean_length: float = 0.2,
) -> Case:
    rng = np.random.default_rng(seed)
    left, right = random_topology(n_tips, rng, shape)
    column = rng.integers(n_states, size=n_patterns)
    codes = np.where(
        rng.random((n_tips, n_patterns)) < 0.4, rng.integers(n_states, size=(n_tips, n_patterns)), column
    )
    codes[rng.random(codes.shape) < 0.1] = n_states
    codes[rng.random(codes.shape) < 0.05] = n_states + 1
    if ascertained:
        codes[:, 0] = 0
    partly = np.zeros((1, n_states), bool)
    partly[0, ::2] = True
    sets = np.vstack([np.eye(n_states, dtype=bool), np.ones((1, n_states), bool), partly])
    weights = rng.integers(1, 5, n_patterns).astype(float)
    hidden = np.zeros(n_patterns, bool)
    if ascertained:
        hidden[0], weights[0] = True, 0.0
    problem = Problem(codes.astype(np.uint16), sets, weights, hidden, left, right, n_categories, precision)
    lengths = np.append(rng.exponential(mean_length, 2 * n_tips - 2), 0.0)
    return Case(problem, random_model(n_states, n_categories, rng, invariant), lengths)
