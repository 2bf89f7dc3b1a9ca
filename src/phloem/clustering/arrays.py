"""What linkage and distances work on: distances given in any form, and characters as bit planes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np

from phloem.clustering.cpu import forms, site_counts
from phloem.clustering.cpu.forms import first_asymmetry
from phloem.clustering.formula import state_weights
from phloem.data.alignment import Alignment, Ambiguity
from phloem.data.distance_matrix import DistanceTriangle
from phloem.errors import InputError, NumericalError

# Distances as they are given, square, condensed or a triangle: checked, and packed for linkage.


_ALL_ROWS = 64  # so few are all compared with their columns, of more taxa some
_SOME_ROWS = 16
_TOLERANCE = 1e-4  # relative: more than rounding in float32
_TO_ARRAY = "Lists, tables and integers: numpy.asarray(distances, float)."
_NOTHING = 1e-6  # of the largest distance: what is left of zero by rounding


def plain_array(distances: Any) -> Any:
    """What kernels take of an array of another class (np.matrix, a file mapped by np.memmap), else the same.

    Raises InputError for a masked array: there is no tree without the distances that it hides.
    """
    if isinstance(distances, np.ma.MaskedArray):
        raise InputError("a masked array lacks distances", hint="Give an array that has all of them.")
    return distances.view(np.ndarray) if isinstance(distances, np.ndarray) else distances


def require_square(distances: np.ndarray) -> None:
    """InputError unless the array is a symmetric (n, n) one of float32 or float64, zero on its diagonal."""
    shape, kind = np.shape(distances), getattr(distances, "dtype", type(distances).__name__)
    if kind not in (np.float32, np.float64) or len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            f"shape {shape} and type {kind} are no square of distances",
            hint=f"Give an array of float32 or float64 with a row and a column for every taxon. {_TO_ARRAY}",
        )
    require_symmetry(distances)


def require_symmetry(distances: np.ndarray) -> None:
    """InputError where d[i, j] and d[j, i] differ by more than rounding, of many taxa in some of the rows,
    and where a taxon is not at distance zero from itself.

    A whole comparison would cost large trees a tenth of their time; half a matrix, or one that is none, shows
    in any row.
    """
    n = len(distances)
    rows = np.arange(n) if n <= _ALL_ROWS else np.arange(_SOME_ROWS) * (n - 1) // (_SOME_ROWS - 1)
    found = first_asymmetry(distances, rows, _TOLERANCE, _NOTHING)
    if found >= 0:
        i, j = divmod(found, n)
        if i == j:
            raise InputError(
                f"the distance of taxon {i} to itself is {distances[i, i]:g}",
                hint="It must be 0; of similarities, take the distances first (1 - s, or 100 - s).",
            )
        raise InputError(
            f"the distances are not symmetric: [{i}, {j}] is {distances[i, j]:g} and [{j}, {i}] is "
            f"{distances[j, i]:g}",
            hint="Give both halves.",
        )


Distances = np.ndarray | DistanceTriangle


def require_names(taxa: Sequence[str], n: int) -> None:
    """InputError unless there is a name of its own for every one of n leaves."""
    if isinstance(taxa, str) or len(taxa) != n:
        given = "one text" if isinstance(taxa, str) else f"{len(taxa):,} names"
        raise InputError(f"{given} for {n:,} taxa", hint="Give the taxa of the matrix, in its order.")
    seen: set[str] = set()
    for name in taxa:
        if not isinstance(name, str):
            raise InputError(f"{name!r} is no name", hint="Names are texts: str(name).")
        if name in seen:
            raise InputError(f"the name '{name}' occurs twice", taxon=name, hint="Rename one of the two.")
        seen.add(name)


def taxa_of(distances: Distances) -> int:
    """How many taxa the distances are between; raises InputError for an array that holds no distances."""
    if isinstance(distances, DistanceTriangle):
        return distances.n_taxa
    if not isinstance(distances, np.ndarray):
        kind = type(distances).__name__
        raise InputError(f"a {kind} holds no distances", hint=f"Give a NumPy array. {_TO_ARRAY}")
    shape = distances.shape
    n = shape[0] if len(shape) == 2 else (1 + math.isqrt(1 + 8 * distances.size)) // 2
    if distances.dtype not in (np.float32, np.float64) or shape not in ((n, n), (n * (n - 1) // 2,)):
        raise InputError(
            f"an array of shape {shape} and type {distances.dtype} holds no distances",
            hint=f"Give a square, or SciPy's condensed vector, of float32 or float64. {_TO_ARRAY}",
        )
    return n


def packed(distances: Distances, overwrite: bool, workers: ThreadPoolExecutor) -> np.ndarray:
    """The entries of data.distance_triangle.

    overwrite: in the memory of a C-contiguous square, or those of the triangle itself; else a copy, as always
    from a condensed vector.
    """
    if isinstance(distances, DistanceTriangle):
        kept = overwrite and distances.entries.flags.writeable
        return distances.entries if kept else distances.entries.copy()
    n = taxa_of(distances)
    if overwrite and distances.ndim == 2 and distances.flags.carray:
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


# The characters of an alignment as kernels want them: bit planes, and what ambiguous ones count for.


ROWS = 64  # sequences a thread packs at a time


def nucleotide_planes(alignment: Alignment, threads: int = 2) -> tuple[np.ndarray, np.ndarray, int]:
    """Planes of the sites that differ, of those that only lack characters, and how many do neither.

    (n, 3, W) uint64: pyrimidine (C, T), keto (G, T), observed; (n, 1, V): observed. Every ambiguous character
    is unobserved. In closely related genomes most sites are constant, and cost a quarter or nothing.
    """
    seen = np.zeros(alignment.n_sites, np.int32)
    site_counts.states_seen(alignment.codes, 0, alignment.n_taxa, 4, seen)
    lacking = seen & 16 > 0
    differing = (seen & 15 & ((seen & 15) - 1)) > 0
    constant = np.flatnonzero(lacking & ~differing)
    table = np.zeros((3, len(alignment.state_sets)), bool)
    table[0, [1, 3]], table[1, [2, 3]], table[2, :4] = True, True, True
    return (
        bit_planes(alignment.codes, table, np.flatnonzero(differing), threads),
        bit_planes(alignment.codes, table[2:], constant, threads),
        int(np.sum(~differing & ~lacking)),
    )


def one_hot_planes(alignment: Alignment, threads: int = 2) -> np.ndarray:
    """(n, S, W) uint64: plane s marks the sites in state s."""
    states = alignment.alphabet.n_states
    table = np.eye(states, len(alignment.state_sets), dtype=bool)
    return bit_planes(alignment.codes, table, np.arange(alignment.n_sites), threads)


def state_planes(alignment: Alignment, threads: int = 2) -> np.ndarray:
    """(n, K+1, W) uint64: the K bits of the state's number, then observed."""
    states, codes = alignment.alphabet.n_states, len(alignment.state_sets)
    bits = max(1, int(np.ceil(np.log2(states))))
    table = np.zeros((bits + 1, codes), bool)
    table[:bits, :states] = (np.arange(states) >> np.arange(bits)[:, None]) & 1
    table[bits, :states] = True
    return bit_planes(alignment.codes, table, np.arange(alignment.n_sites), threads)


def bit_planes(codes: np.ndarray, table: np.ndarray, sites: np.ndarray, threads: int = 2) -> np.ndarray:
    """(n, K, W) uint64 with bit l % 64 of word l // 64 set in plane k where table[k, codes[:, sites[l]]]."""
    n = len(codes)
    planes = np.empty((n, len(table), -(-len(sites) // 64)), np.uint64)
    plane_bits = (table.astype(np.uint64) << np.arange(len(table), dtype=np.uint64)[:, None]).sum(axis=0)

    def pack(start: int) -> None:
        site_counts.pack_rows(codes, sites, plane_bits, start, min(start + ROWS, n), planes)

    with ThreadPoolExecutor(threads) as workers:
        list(workers.map(pack, range(0, n, ROWS)))
    return planes


PairCounts = Literal["nucleotide", "difference", "joint"]


def partial_characters(
    alignment: Alignment, ambiguity: Ambiguity, counts: PairCounts
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """(rows, columns, starts, places, shares, states) as site_counts.add_partial wants them.

    counts: which K counts a kernel keeps: nucleotide (compared, A↔G, C↔T, transversions), difference
    (compared, differing), joint (all S²). Empty where ambiguous characters count as missing.
    """
    codes, states = alignment.codes, alignment.alphabet.n_states
    partial = codes > states
    if ambiguity == "missing":
        partial = np.zeros((alignment.n_taxa, 0), bool)
    sites = np.flatnonzero(partial.any(axis=0))
    sequence, place = np.nonzero(partial[:, sites])
    starts = np.searchsorted(sequence, np.arange(alignment.n_taxa + 1))
    weights = state_weights(alignment.state_sets, ambiguity)
    shares = np.moveaxis(_shares(weights, counts), -1, 0).copy()
    shares[:, : states + 1, : states + 1] = 0.0  # counted from the bit planes
    rows = np.ascontiguousarray(codes[:, sites])
    return rows, np.ascontiguousarray(rows.T), starts, place.astype(np.int32), shares, states


def whole_weights(alignment: Alignment, ambiguity: Ambiguity) -> np.ndarray | None:
    """(codes, S) state_weights times the least number that makes them whole; None where that is too large.

    Products of two such weights, summed over the sites, fit an int32, and a weight an int8.
    """
    weights = state_weights(alignment.state_sets, ambiguity)
    sizes = np.unique((weights > 0).sum(axis=1))
    unit = int(np.lcm.reduce(sizes[sizes > 0])) if len(sizes) < 20 else 1 << 30
    if unit > 127 or unit * unit * alignment.n_sites >= 2**31:
        return None
    return np.rint(weights * unit).astype(np.int64)


def device_weights(alignment: Alignment, ambiguity: Ambiguity) -> np.ndarray:
    """whole_weights for the GPU kernels; InputError where these lack such averages."""
    weights = whole_weights(alignment, ambiguity)
    if weights is None:
        raise InputError("the GPU kernels have no such averages", hint="Choose the CPU.")
    return weights


def _shares(weights: np.ndarray, counts: PairCounts) -> np.ndarray:
    """(codes, codes, K) float64: what a site adds to each count."""
    if counts == "difference":
        compared = np.outer(weights.sum(axis=1), weights.sum(axis=1))
        return np.stack([compared, compared - weights @ weights.T], axis=-1)
    joint = np.einsum("xa,yb->xyab", weights, weights)
    if counts == "joint":
        return joint.reshape(len(weights), len(weights), -1)
    ag = joint[..., 0, 2] + joint[..., 2, 0]
    ct = joint[..., 1, 3] + joint[..., 3, 1]
    compared = joint.sum(axis=(2, 3))
    same = np.trace(joint, axis1=2, axis2=3)
    return np.stack([compared, ag, ct, compared - same - ag - ct], axis=-1)
