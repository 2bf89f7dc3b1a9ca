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
