"""Agglomerative clustering, one merge at a time: the specification of the linkage kernels."""

from __future__ import annotations

import numpy as np

from phloem.clustering.settings import LinkageMethod

PART = 1 << 18  # distances looked at together


def counting_unit(distances: np.ndarray, n: int | None = None) -> float:
    """The unit (1, or the smallest positive one) of which every distance is a whole number, or 0 if none is.

    Means of such distances are then compared exactly, as quotients of whole sums (float64 only): counts of
    differences tie often, and rounding must not decide between ties.
    distances: C-contiguous, of any shape that holds all of them; n: taxa, if not its length.
    """
    n = len(distances) if n is None else n
    if distances.dtype != np.float64 or n < 2:
        return 0.0
    flat = distances.reshape(-1)
    parts = [flat[start : start + PART] for start in range(0, len(flat), PART)]
    for unit in (1.0, _smallest_positive(parts)):
        if (
            unit > 0
            and flat.max() / unit * (n * n / 4) < 2.0**52
            and all(_whole(part, unit) for part in parts)
        ):
            return unit
    return 0.0


def _smallest_positive(parts: list[np.ndarray]) -> float:
    return min((float(part[part > 0].min()) for part in parts if np.any(part > 0)), default=0.0)


def _whole(part: np.ndarray, unit: float) -> bool:
    count = part / unit
    return bool(np.all(np.abs(count - np.rint(count)) <= 4 * np.finfo(np.float64).eps * count))


def merge_weights(method: LinkageMethod, size_lower: float, size_upper: float) -> tuple[float, float]:
    """Weights of the two merged clusters in `combine` (Sneath and Sokal 1973); single linkage has none."""
    if method == "upgma":
        total = size_lower + size_upper
        return size_lower / total, size_upper / total
    return (0.5, 0.5) if method == "wpgma" else (1.0, 1.0)


def combine(x: np.ndarray, y: np.ndarray, weight_x: float, weight_y: float) -> np.ndarray:
    """Weighted average of distances, above the smaller one unless both are equal, and at most the larger.

    Clamping makes equal inputs give that very number. Staying above the smaller one when they differ keeps
    the order of pairs intact: rounding must never let a merged cluster tie with a pair it was behind.
    Weights (1, 1) give the larger one, complete linkage.
    """
    info = np.finfo(x.dtype)
    low, high = np.minimum(x, y), np.maximum(x, y)
    above = low * x.dtype.type(1 + info.eps) + info.tiny
    return np.minimum(np.maximum(x * x.dtype.type(weight_x) + y * x.dtype.type(weight_y), above), high)


def linkage(
    distances: np.ndarray, method: LinkageMethod = "upgma"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Merge the closest pair until one cluster is left.

    distances: (n, n) symmetric, float32 or float64; arithmetic happens in that precision.
    A cluster is named by its smallest leaf; pairs are ordered by (distance, smaller name, larger name).
    Returns (lower, upper, distance), each (n-1,): names of the merged clusters, in order of merging.
    """
    n = len(distances)
    unit = counting_unit(distances) if method in ("upgma", "wpgma") else 0.0
    sums = unit > 0 and method == "upgma"
    d = np.rint(distances / unit) if unit else distances.copy()
    np.fill_diagonal(d, np.inf)
    sizes, below = np.ones(n), np.tril(np.full((n, n), np.inf))
    lower, upper, height = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1)
    for step in range(n - 1):
        mean = d / np.outer(sizes, sizes) if sums else d
        a, b = divmod(int(np.argmin(mean + below)), n)
        lower[step], upper[step], height[step] = a, b, mean[a, b] * (unit or 1.0)
        d[a] = _merged(d[a], d[b], method, sizes[a], sizes[b], sums)
        d[:, a] = d[a]
        d[b], d[:, b], d[a, a] = np.inf, np.inf, np.inf
        sizes[a] += sizes[b]
    return lower, upper, height


def _merged(
    x: np.ndarray, y: np.ndarray, method: LinkageMethod, size_x: float, size_y: float, sums: bool
) -> np.ndarray:
    """The row of the union of two clusters whose rows are x and y."""
    if method == "single":
        return np.minimum(x, y)
    return x + y if sums else combine(x, y, *merge_weights(method, size_x, size_y))
