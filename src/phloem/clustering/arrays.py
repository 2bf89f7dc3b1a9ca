"""Distances as they are given, square, condensed or a triangle: checked, and packed for linkage."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from phloem.clustering.cpu import forms
from phloem.clustering.cpu.forms import first_asymmetry
from phloem.data.distance_matrix import DistanceTriangle
from phloem.errors import InputError, NumericalError

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


Distances = np.ndarray | DistanceTriangle


def taxa_of(distances: Distances) -> int:
    """How many taxa the distances are between; raises InputError for an array that holds no distances."""
    if isinstance(distances, DistanceTriangle):
        return distances.n_taxa
    if not isinstance(distances, np.ndarray):
        raise InputError(f"a {type(distances).__name__} holds no distances", hint="Give a NumPy array.")
    shape = distances.shape
    n = shape[0] if len(shape) == 2 else (1 + math.isqrt(1 + 8 * distances.size)) // 2
    if distances.dtype not in (np.float32, np.float64) or shape not in ((n, n), (n * (n - 1) // 2,)):
        raise InputError(
            f"an array of shape {shape} and type {distances.dtype} holds no distances",
            hint="Give a square, or SciPy's condensed vector, of float32 or float64.",
        )
    return n


def packed(distances: Distances, overwrite: bool, workers: ThreadPoolExecutor) -> np.ndarray:
    """The entries of data.distance_triangle.

    overwrite: in the memory of a C-contiguous square, or those of the triangle itself; else a copy, as always
    from a condensed vector.
    """
    if isinstance(distances, DistanceTriangle):
        return distances.entries if overwrite else distances.entries.copy()
    n = taxa_of(distances)
    if overwrite and distances.ndim == 2 and distances.flags.c_contiguous:
        entries = distances.reshape(-1)[: n * (n - 1) // 2]
        forms.pack_square(distances, 0, n, entries)
        return entries
    entries = np.empty(n * (n - 1) // 2, distances.dtype)
    edges = equal_areas(0, n, 32)

    def pack(first: int, last: int) -> None:
        if distances.ndim == 2:
            forms.pack_square(distances, first, last, entries)
        else:
            forms.pack_condensed(distances, n, first, last, entries)

    list(workers.map(pack, edges[:-1], edges[1:]))
    return entries


def flat(distances: Distances) -> tuple[np.ndarray, int]:
    """The distances as they lie in memory, one-dimensional, and their form (cpu.forms)."""
    array, form = (
        (distances.entries, forms.TRIANGLE)
        if isinstance(distances, DistanceTriangle)
        else (distances, forms.SQUARE if distances.ndim == 2 else forms.CONDENSED)
    )
    if not array.flags.carray:  # other layouts would each be compiled anew
        array = np.array(array, order="C")
    return array.reshape(-1), form


def not_finite() -> NumericalError:
    """The error for an infinite or missing distance."""
    return NumericalError("clustering met a distance that is not finite")


def refuse_negative(entries: np.ndarray) -> None:
    """Raise for a sign that stands before a number, or before NaN as processors make it; not for -0."""
    if np.any(entries < 0):
        raise InputError("a distance is negative", hint="Distances are zero or more.")
    if np.any(np.isnan(entries)):
        raise not_finite()


def equal_areas(first: int, last: int, parts: int) -> list[int]:
    """Edges of `parts` ranges of the rows first … last-1 with about as many entries each."""
    edges = np.sqrt(np.linspace(float(first) ** 2, float(last) ** 2, parts + 1))
    return np.rint(edges).astype(int).tolist()
