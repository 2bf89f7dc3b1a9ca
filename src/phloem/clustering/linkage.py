"""UPGMA, WPGMA, single and complete linkage, exact, and the merges they make."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from phloem.clustering.arrays import (
    Distances,
    equal_areas,
    flat,
    not_finite,
    packed,
    plain_array,
    refuse_negative,
    require_names,
    require_symmetry,
    taxa_of,
)
from phloem.clustering.cpu import forms, linkage_single, linkage_square
from phloem.clustering.linkage_rounds import METHODS, LinkageState
from phloem.clustering.settings import ONE_CALL, Device, LinkageMethod, select_distance_device
from phloem.data.distance_matrix import DistanceMatrix, DistanceTriangle
from phloem.errors import InputError, require_choice, require_count
from phloem.tree.tree import Tree

ROUNDING = 1e-9  # relative: how far a linkage matrix may fall from one merge to the next


@dataclass(frozen=True)
class Merges:
    """n-1 merges of n leaves in order of (distance, lower, upper).

    lower, upper: (n-1,) int64, the smallest leaf of each merged cluster, lower < upper.
    distance: (n-1,) float64 between the two, in the matrix's unit; the node's height is half of it.
    rounds: how many rounds of reciprocal nearest neighbours there were; other merges came one at a time.
    """

    lower: np.ndarray
    upper: np.ndarray
    distance: np.ndarray
    rounds: int = 0

    @property
    def n_leaves(self) -> int:
        return len(self.lower) + 1

    def nodes(self) -> np.ndarray:
        """(n-1, 2) int64: node numbers joined by each merge; leaf x is node x, merge k makes node n + k."""
        n = self.n_leaves
        node = list(range(n))
        joined = []
        for k, (a, b) in enumerate(zip(self.lower.tolist(), self.upper.tolist())):
            joined.append((node[a], node[b]))
            node[a] = n + k
        return np.array(joined, np.int64).reshape(n - 1, 2)

    def tree(self, taxa: Sequence[str]) -> Tree:
        """The ultrametric tree: a node's height is half the distance at which it was made."""
        n = self.n_leaves
        require_names(taxa, n)
        joined = self.nodes()
        parent = np.full(2 * n - 1, -1, np.int32)
        parent[joined.ravel()] = np.repeat(np.arange(n, 2 * n - 1), 2)
        heights = np.concatenate([np.zeros(n), self.distance / 2])
        lengths = np.zeros(2 * n - 1)
        lengths[:-1] = heights[parent[:-1]] - heights[:-1]
        return Tree(taxa=tuple(taxa), parent=parent, lengths=lengths, rooted=True)

    def linkage_matrix(self) -> np.ndarray:
        """(n-1, 4) float64 in SciPy's form: two nodes, distance, leaves below."""
        n = self.n_leaves
        joined = np.sort(self.nodes(), axis=1)
        sizes = np.ones(2 * n - 1)
        for k, (x, y) in enumerate(joined.tolist()):
            sizes[n + k] = sizes[x] + sizes[y]
        return np.column_stack([joined, self.distance, sizes[n:]])

    @classmethod
    def of_linkage_matrix(cls, matrix: np.ndarray) -> Merges:
        """The merges of an array in SciPy's form, whoever made it: fastcluster, ward linkage, a file.

        InputError for an array of another form, and where a merge is closer than one that it rests on.
        """
        given = np.asarray(matrix, np.float64)
        if given.ndim != 2 or given.shape[1] != 4:
            raise InputError(
                f"an array of shape {given.shape} is no linkage matrix",
                hint="Give SciPy's: a row a merge: two nodes, their distance, and leaves below.",
            )
        n, whole = len(given) + 1, given[:, :2].astype(np.int64)
        later = whole >= np.arange(n, 2 * n - 1)[:, None]
        if len(np.unique(whole)) < 2 * n - 2 or np.any(later | (whole < 0) | (whole != given[:, :2])):
            raise InputError("the rows do not merge every node once, after it is made", hint="Give SciPy's.")
        height, smallest = np.concatenate([np.zeros(n), given[:, 2]]), np.arange(2 * n - 1)
        for k, (x, y) in enumerate(whole.tolist(), n):
            smallest[k], below = min(smallest[x], smallest[y]), max(height[x], height[y])
            if not height[k] >= below - ROUNDING * abs(below):
                raise InputError(
                    f"row {k - n} merges at {height[k]:g}, and a node that it merges was made at {below:g}",
                    hint="Centroids and medians make such rows; other linkages make trees with a height.",
                )
            height[k] = max(height[k], below)
        ends = np.sort(smallest[whole], axis=1).reshape(n - 1, 2)
        return cls(ends[:, 0], ends[:, 1], height[n:])


OF_SCIPY = {"average": "upgma", "weighted": "wpgma"}
DENSE_SHARE = 1 / 32  # a round that merges more than this share of the clusters rewrites the triangle
CPU_SECONDS = 3e-9  # per entry of a square, two cores
SMALL = 256  # so few clusters of many finish one merge at a time
ONE_CALL_SINGLE = 1024  # taxa that single linkage, which needs no square, clusters in one compiled call
_INFINITY = {np.dtype(f"f{size}"): np.array(np.inf, f"f{size}").view(f"i{size}")[()] for size in (4, 8)}


def linkage(
    distances: Distances | DistanceMatrix,
    method: LinkageMethod = "upgma",
    *,
    overwrite: bool = False,
    threads: int = 2,
    device: Device = "cpu",
) -> Merges:
    """Cluster by merging the closest pair until one cluster is left.

    distances: a DistanceMatrix or DistanceTriangle, an (n, n) symmetric array or SciPy's condensed vector,
    finite and non-negative, float32 or float64; arithmetic happens in its precision.
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
    if method in OF_SCIPY:
        hint = f"It is called '{OF_SCIPY[method]}' here."
        raise InputError(f"unknown method of linkage '{method}'", hint=hint)
    require_choice("method of linkage", method, get_args(LinkageMethod))
    require_count("threads", threads)
    given = plain_array(distances.values if isinstance(distances, DistanceMatrix) else distances)
    n = taxa_of(given)
    if isinstance(given, np.ndarray) and given.ndim == 2:
        require_symmetry(given)
    if n < 2:
        return Merges(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    if linkage_device(n, device)[0] == "gpu":
        return _on_gpu(given, n, method)
    if n <= (ONE_CALL_SINGLE if method == "single" else ONE_CALL):
        return _in_one_call(given, n, method)
    with ThreadPoolExecutor(threads) as workers:
        if method == "single":  # which changes no entry
            kept = overwrite or isinstance(given, DistanceTriangle)
            return single_linkage(packed(given, kept, workers), n, workers, threads)
        state = LinkageState(packed(given, overwrite, workers), n, method, workers, threads)
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
            given, form, n, METHODS[method], rows, lower, upper, distance
        )
    if largest >= infinity:
        raise not_finite()
    if smallest < 0:
        refuse_negative(given)
    return Merges(lower, upper, distance)


def _on_gpu(distances: Distances, n: int, method: LinkageMethod) -> Merges:
    """On one GPU, or by rows on all where they do not fit one."""
    from phloem.clustering.gpu import shards_bands as by_rows
    from phloem.clustering.gpu.device import float_type, square_on_device
    from phloem.clustering.gpu.linkage import linkage_merges
    from phloem.clustering.gpu.shards import linkage_merges_sharded

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


def single_linkage(entries: np.ndarray, n: int, workers: ThreadPoolExecutor, threads: int) -> Merges:
    """Merge the closest clusters, of equals those of the smallest names, until one is left.

    entries: those of data.distance_triangle for n > 1 leaves; they are not changed. Raises as linkage does.
    """
    integer = np.dtype(f"i{entries.itemsize}")
    infinity = np.array(np.inf, entries.dtype).view(integer)[()]
    bits, edges = entries.view(integer), equal_areas(0, n, threads)
    pointers, levels = np.tile(np.arange(n), (threads, 1)), np.full((threads, n), infinity)

    def link(t: int) -> tuple[int, int]:
        return linkage_single.link_rows(bits, edges[t], edges[t + 1], pointers[t], levels[t])

    smallest, largest = zip(*workers.map(link, range(threads)))
    if max(largest) >= infinity:
        raise not_finite()
    if min(smallest) < 0:
        refuse_negative(entries)
        return single_linkage(entries + 0.0, n, workers, threads)  # negative zeros become zeros
    t, leaf = np.nonzero(levels < infinity)
    order = np.argsort(levels[t, leaf], kind="stable")
    t, leaf = t[order], leaf[order]
    links = np.column_stack([leaf, pointers[t, leaf]])
    lower, upper, distance = np.empty(n - 1, np.int64), np.empty(n - 1, np.int64), np.empty(n - 1)
    linkage_single.merges_of_links(
        entries, forms.TRIANGLE, links, levels[t, leaf].view(entries.dtype), lower, upper, distance
    )
    return Merges(lower, upper, distance)
