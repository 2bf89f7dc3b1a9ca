"""Which of many samples or rows are used, and which stand for all where only so many are shown or kept."""

from __future__ import annotations

import numpy as np


def evenly_spread(first: int, end: int, most: int) -> np.ndarray:
    """(n,) int64, ascending: at most so many of the numbers from first up to end, which is not among them;
    the first and the last are, where most is not 1."""
    n = min(most, end - first)
    return np.unique(np.linspace(first, end - 1, n).round().astype(np.int64))


def first_used(generations: np.ndarray, burn_in: float, tuning: int) -> int:
    """Index of the first sample that summaries use: after a share of them, and after the generations during
    which moves adapt."""
    return max(int(burn_in * len(generations)), int(np.searchsorted(generations, tuning, side="right")))
