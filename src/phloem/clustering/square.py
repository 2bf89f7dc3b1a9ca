"""Square arrays of distances, before a tree is made of them."""

from __future__ import annotations

import numpy as np

from phloem.errors import InputError

_ALL_ROWS = 64  # so few are all compared with their columns, of more taxa some
_SOME_ROWS = 16
_TOLERANCE = 1e-4  # relative: more than rounding in float32
_NOTHING = 1e-6  # of the largest distance: what is left of zero by rounding


def require_square(distances: np.ndarray) -> None:
    """InputError unless the array is a symmetric (n, n) one of float32 or float64."""
    shape, kind = np.shape(distances), getattr(distances, "dtype", type(distances).__name__)
    if kind not in (np.float32, np.float64) or len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            f"shape {shape} and type {kind} are no square of distances",
            hint="Give an array of float32 or float64 with a row and a column for every taxon.",
        )
    require_symmetry(distances)


def require_symmetry(distances: np.ndarray) -> None:
    """InputError where d[i, j] and d[j, i] differ by more than rounding, of many taxa in some of the rows.

    A whole comparison would cost large trees a tenth of their time; half a matrix, or one that is none, shows
    in any row.
    """
    n = len(distances)
    rows = np.arange(n) if n <= _ALL_ROWS else np.linspace(0, n - 1, _SOME_ROWS).astype(np.int64)
    ours, theirs = distances[rows], distances[:, rows].T
    nothing = _NOTHING * np.max(np.abs(ours), initial=0.0, where=np.isfinite(ours))
    off = np.argwhere(~np.isclose(ours, theirs, rtol=_TOLERANCE, atol=nothing, equal_nan=True))
    if len(off):
        i, j = int(rows[off[0, 0]]), int(off[0, 1])
        raise InputError(
            f"the distances are not symmetric: [{i}, {j}] is {distances[i, j]:g} and [{j}, {i}] is "
            f"{distances[j, i]:g}",
            hint="Give both halves.",
        )
