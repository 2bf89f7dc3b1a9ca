"""Symmetric matrices to cluster: without ties, with many, with identical rows."""

from __future__ import annotations

import numpy as np


def symmetric(values: np.ndarray) -> np.ndarray:
    upper = np.triu(values, 1)
    return upper + upper.T


def continuous(n: int, rng) -> np.ndarray:
    return symmetric(rng.random((n, n)))


def tied(n: int, rng) -> np.ndarray:
    return symmetric(rng.integers(1, 5, (n, n)).astype(float))


def duplicated(n: int, rng) -> np.ndarray:
    """Differences between short binary sequences: many ties, identical rows, and zeros in plenty."""
    sequences = rng.integers(0, 2, (n, 5))
    return (sequences[:, None] != sequences[None]).sum(axis=2).astype(float)


def few_copies(n: int, rng) -> np.ndarray:
    """No ties but those of a few identical rows: too few for the matrix to be rewritten."""
    rows = np.arange(n)
    rows[[-1, -2][: n // 16]] = 0
    return continuous(n, rng)[np.ix_(rows, rows)]


def ladder(n: int, rng) -> np.ndarray:
    """One merge a round, and all that are left tie for the cluster that grows."""
    name = rng.permutation(n)
    return symmetric(np.maximum.outer(name, name).astype(float))
