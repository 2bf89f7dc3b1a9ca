"""Which of many rows stand for all where only so many are shown or kept."""

from __future__ import annotations

import numpy as np


def evenly_spread(first: int, end: int, most: int) -> np.ndarray:
    """(n,) int64, ascending: at most so many of the numbers from first up to end, which is not among them;
    the first and the last are, where most is not 1."""
    n = min(most, end - first)
    return np.unique(np.linspace(first, end - 1, n).round().astype(np.int64))
