"""Rates of classes that are known up to a factor: divided by their weighted mean, so that branch lengths keep
their unit."""

from __future__ import annotations

import numpy as np


def mean_one(weights: np.ndarray, relative: np.ndarray) -> np.ndarray:
    """relative / Σ weights · relative, all (k,)."""
    return relative / (weights @ relative)


def mean_one_adjoint(
    weights: np.ndarray, relative: np.ndarray, d_rates: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """From derivatives by mean_one, those by weights and by relative, entries taken as independent."""
    mean = weights @ relative
    shared = d_rates @ relative / mean**2
    return -relative * shared, d_rates / mean - weights * shared
