"""UPGMA, WPGMA, single and complete linkage, exact."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Literal, get_args

import numpy as np

from phloem.clustering.cpu import linkage_single, linkage_square
from phloem.clustering.linkage_state import LinkageState
from phloem.clustering.memory import ONE_CALL
from phloem.clustering.merges import Merges
from phloem.clustering.packing import Distances, flat, not_finite, packed, refuse_negative, taxa_of
from phloem.clustering.reference.linkage import LinkageMethod
from phloem.clustering.select import Device, select_distance_device
from phloem.clustering.single_linkage import single_linkage
from phloem.clustering.square import require_symmetry
from phloem.data.distance_triangle import DistanceTriangle
from phloem.errors import require_choice, require_count

DENSE_SHARE = 1 / 32  # a round that merges more than this share of the clusters rewrites the triangle
CPU_SECONDS = 3e-9  # per entry of a square, two cores
SMALL = 256  # so few clusters of many finish one merge at a time
ONE_CALL_SINGLE = 1024  # taxa that single linkage, which needs no square, clusters in one compiled call
_SQUARE_METHODS = {
    "upgma": linkage_square.UPGMA, "wpgma": linkage_square.WPGMA, "complete": linkage_square.COMPLETE,
}  # fmt: skip
_INFINITY = {np.dtype(f"f{size}"): np.array(np.inf, f"f{size}").view(f"i{size}")[()] for size in (4, 8)}


def linkage(
    distances: Distances,
    method: LinkageMethod = "upgma",
    *,
    overwrite: bool = False,
    threads: int = 2,
    device: Device = "cpu",
) -> Merges:
    """Cluster by merging the closest pair until one cluster is left.

    distances: a DistanceTriangle, an (n, n) symmetric array or SciPy's condensed vector, finite and
    non-negative, float32 or float64; arithmetic happens in its precision.
    overwrite: of more than ONE_CALL taxa, work inside the triangle or square (it is lost); otherwise in a
    triangle of its own. Fewer taxa take a square of their own, single linkage nothing.
    Equal distances are resolved by (smallest leaf, larger smallest leaf), so the result does not depend on
    the order of computation. Up to ONE_CALL taxa merge one pair at a time, the reference to the last bit;
    of more, all reciprocal nearest neighbours merge in one round: exact, since these methods are reducible
    (Bruynooghe 1978; Murtagh 1983). Single linkage takes one pass over the distances.
    device: see select_distance_device; the GPU never overwrites distances in host memory. It
    averages in another order where the CPU merges one pair at a time: distances may differ in the last bit.
    Where they do not fit one GPU, all are used (device_bands.devices_by_rows), except by single linkage.
    """
    require_choice("method of linkage", method, get_args(LinkageMethod))
    require_count("threads", threads)
    n = taxa_of(distances)
    if isinstance(distances, np.ndarray) and distances.ndim == 2:
        require_symmetry(distances)
    if n < 2:
        return Merges(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    if linkage_device(n, device)[0] == "gpu":
        return _on_gpu(distances, n, method)
    if n <= (ONE_CALL_SINGLE if method == "single" else ONE_CALL):
        return _in_one_call(distances, n, method)
    with ThreadPoolExecutor(threads) as workers:
        if method == "single":  # which changes no entry
            kept = overwrite or isinstance(distances, DistanceTriangle)
            return single_linkage(packed(distances, kept, workers), n, workers, threads)
        state = LinkageState(packed(distances, overwrite, workers), n, method, workers, threads)
        state.collapse_duplicates()
        while state.n > 1:
            pairs = state.reciprocal_pairs()
            if state.n > SMALL and len(pairs) > DENSE_SHARE * state.n:
                state.merge_round(pairs)
            else:
                state.merge_in_sequence(fewest=1 if state.n <= SMALL else 3 * state.n // 4)
    return _ordered(state)


def linkage_device(n: int, requested: Device) -> tuple[Literal["cpu", "gpu"], str]:
    """Where n taxa will be clustered, and why."""
    return select_distance_device(requested, CPU_SECONDS * n * n)


def _in_one_call(distances: Distances, n: int, method: LinkageMethod) -> Merges:
    given, form = flat(distances)
    lower, upper, distance = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1)
    infinity = _INFINITY[given.dtype]
    if method == "single":
        smallest, largest = linkage_single.merge_all(given, form, infinity, lower, upper, distance)
    else:
        rows = np.empty((n, linkage_square.row_width(n)), infinity.dtype)
        smallest, largest = linkage_square.merge_all(
            given, form, n, _SQUARE_METHODS[method], rows, lower, upper, distance
        )
    if largest >= infinity:
        raise not_finite()
    if smallest < 0:
        refuse_negative(given)
    return Merges(lower, upper, distance)


def _on_gpu(distances: Distances, n: int, method: LinkageMethod) -> Merges:
    """On one GPU, or by rows on all where they do not fit one."""
    from phloem.clustering.gpu import shards_bands as by_rows
    from phloem.clustering.gpu.device import float_type
    from phloem.clustering.gpu.linkage import linkage_merges
    from phloem.clustering.gpu.shards import linkage_merges_sharded
    from phloem.clustering.gpu.triangle import square_on_device

    square = isinstance(distances, np.ndarray) and distances.ndim == 2
    if square:
        entries = np.asarray(distances)
    else:
        with ThreadPoolExecutor(1) as workers:
            entries = packed(distances, overwrite=True, workers=workers)
    devices, _ = by_rows.devices_for(n, entries.itemsize)
    if len(devices) > 1 and method != "single":
        fill = by_rows.rows_of_square(entries) if square else by_rows.rows_of_triangle(entries, n)
        bands = by_rows.bands_of_rows(n, devices, float_type(entries.dtype.name), fill)
        return Merges(*linkage_merges_sharded(bands, method))
    if square:
        return Merges(*linkage_merges(entries, method))
    return Merges(*linkage_merges(square_on_device(entries, n), method, overwrite=True))


def _ordered(state: LinkageState) -> Merges:
    """The recorded merges in the order in which one pair at a time would have been merged."""
    lower, upper, distance = state.recorded()
    order = np.lexsort((upper, lower, distance))
    distance = distance[order].astype(np.float64) * (state.unit or 1.0)
    if not np.all(np.isfinite(distance)):
        raise not_finite()
    return Merges(lower[order], upper[order], distance, state.rounds)
