"""Square arrays of distances, before a tree is made of them."""

from __future__ import annotations

import numpy as np

from phloem.clustering.cpu.forms import first_asymmetry
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
    rows = np.arange(n) if n <= _ALL_ROWS else np.arange(_SOME_ROWS) * (n - 1) // (_SOME_ROWS - 1)
    found = first_asymmetry(distances, rows, _TOLERANCE, _NOTHING)
    if found >= 0:
        i, j = divmod(found, n)
        raise InputError(
            f"the distances are not symmetric: [{i}, {j}] is {distances[i, j]:g} and [{j}, {i}] is "
            f"{distances[j, i]:g}",
            hint="Give both halves.",
        )
