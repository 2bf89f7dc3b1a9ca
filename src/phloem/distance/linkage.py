"""UPGMA, WPGMA, single and complete linkage of a distance matrix, exact."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from phloem.distance.merges import Merges
from phloem.engine.select import Device, select_distance_device
from phloem.errors import InputError, NumericalError
from phloem.kernels.numba import linkage_duplicates, linkage_rounds, linkage_rows, linkage_single
from phloem.kernels.reference.linkage import LinkageMethod, counting_unit

DENSE_SHARE = 1 / 12  # a round that merges more than this share of the clusters rewrites the whole matrix
CPU_SECONDS = 6e-9  # per entry of the matrix, two cores
SMALL = 256  # so few clusters finish in one call


@dataclass
class _State:
    """Clusters 0 … n-1 in the order of their names (smallest leaves); arrays are replaced when it shrinks."""

    distances: np.ndarray
    bits: np.ndarray
    slots: np.ndarray
    names: np.ndarray
    sizes: np.ndarray
    nearest: np.ndarray
    nearest_bits: np.ndarray
    infinity: np.integer
    constants: tuple
    workers: ThreadPoolExecutor
    threads: int
    unit: float
    sums: bool
    merges: list = field(default_factory=list)
    rounds: int = 0

    @property
    def n(self) -> int:
        return len(self.names)

    def record(self, lower: np.ndarray, upper: np.ndarray, bits: np.ndarray) -> None:
        """Keep merges of the clusters at positions lower and upper."""
        self.merges.append((self.names[lower], self.names[upper], bits.view(self.distances.dtype)))

    def in_threads(self, kernel, n: int) -> None:
        """kernel(start, stop) over ranges of n rows."""
        chunks = 1 if self.threads == 1 or n < 512 else 8 * self.threads
        edges = np.linspace(0, n, chunks + 1).astype(int)
        list(self.workers.map(kernel, edges[:-1].tolist(), edges[1:].tolist()))


def linkage(
    distances: np.ndarray,
    method: LinkageMethod = "upgma",
    *,
    overwrite: bool = False,
    threads: int = 2,
    device: Device = "cpu",
) -> Merges:
    """Cluster by merging the closest pair until one cluster is left.

    distances: (n, n) symmetric, non-negative, float32 or float64; arithmetic happens in its precision.
    overwrite: work inside `distances` (it is lost); otherwise a copy is made.
    Equal distances are resolved by (smallest leaf, larger smallest leaf), so the result does not depend on
    the order of computation. All reciprocal nearest neighbours merge in one round: exact, since these
    methods are reducible (Bruynooghe 1978; Murtagh 1983).
    device: see engine.select.select_distance_device; the GPU has no single linkage, gives the CPU's result to
    the last bit, and never overwrites a matrix in host memory.
    """
    n = len(distances)
    if n < 2:
        return Merges(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    if linkage_device(n, method, device)[0] == "gpu":
        from phloem.engine.gpu_distance_linkage import linkage_merges

        return Merges(*linkage_merges(distances, method))
    work = distances if overwrite else distances.copy()
    with ThreadPoolExecutor(threads) as workers:
        state = _start(work, workers, threads, method)
        if method == "single":
            return _single(state)
        _collapse_duplicates(state)
        while state.n > 1:
            pairs = _reciprocal(state)
            if state.n > SMALL and len(pairs) > DENSE_SHARE * state.n:
                _dense(state, pairs, method)
            else:
                _sparse(state, method)
    return _ordered(state)


def linkage_device(n: int, method: LinkageMethod, requested: Device) -> tuple[Literal["cpu", "gpu"], str]:
    """Where n taxa will be clustered, and why."""
    missing = "single linkage" if method == "single" else None
    return select_distance_device(requested, CPU_SECONDS * n * n, missing)


def _start(work: np.ndarray, workers: ThreadPoolExecutor, threads: int, method: LinkageMethod) -> _State:
    """Every row's nearest neighbour; distances become whole numbers of units where there is a unit."""
    n = len(work)
    unit = counting_unit(work) if method in ("upgma", "wpgma") else 0.0
    sums = unit > 0 and method == "upgma"
    if unit > 0:
        np.rint(np.divide(work, unit, out=work), out=work)
    np.fill_diagonal(work, np.inf)
    integer = np.dtype(f"i{work.itemsize}").type
    info = np.finfo(work.dtype)
    state = _State(
        distances=work,
        bits=work.view(integer),
        slots=np.arange(n),
        names=np.arange(n),
        sizes=np.ones(n),
        nearest=np.empty(n, np.int64),
        nearest_bits=np.empty(n, integer),
        infinity=np.array(np.inf, work.dtype).view(integer)[()],
        constants=tuple(
            work.dtype.type(x) for x in ((0.0, 0.0, 2.0) if sums else (1 + info.eps, info.tiny, 1.0))
        ),
        workers=workers,
        threads=threads,
        unit=unit,
        sums=sums,
    )
    mask = np.zeros(n, integer)

    def scan(start: int, stop: int) -> None:
        linkage_rows.scan_rows(
            state.distances, state.bits, state.slots, start, stop, n, mask, state.infinity, state.sizes,
            state.sums, state.nearest, state.nearest_bits,
        )  # fmt: skip

    state.in_threads(scan, n)
    if state.nearest.max() >= n:  # no entry has the lowest non-negative bit pattern
        raise InputError("a distance is negative", hint="Distances are zero or more.")
    return state


def _reciprocal(state: _State) -> np.ndarray:
    """(m, 2) positions of reciprocal nearest neighbours, ordered by (distance, lower, upper)."""
    here = np.arange(state.n)
    lower = here[(state.nearest > here) & (state.nearest[state.nearest] == here)]
    lower = lower[np.argsort(state.nearest_bits[lower], kind="stable")]
    return np.column_stack([lower, state.nearest[lower]])


def _weights(method: str, sizes: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """(m, 2) weights of merged clusters of (m, 2) sizes: reference.linkage.merge_weights for many pairs."""
    if method == "upgma":
        return (sizes / sizes.sum(axis=1, keepdims=True)).astype(dtype)
    return np.full(sizes.shape, 0.5 if method == "wpgma" else 1.0, dtype)


def _dense(state: _State, pairs: np.ndarray, method: LinkageMethod) -> None:
    """One round that rewrites the matrix without the merged columns."""
    state.rounds += 1
    state.record(pairs[:, 0], pairs[:, 1], state.nearest_bits[pairs[:, 0]])
    weights = _weights("sums" if state.sums else method, state.sizes[pairs], state.distances.dtype)
    state.sizes[pairs[:, 0]] += state.sizes[pairs[:, 1]]
    merged = np.zeros(state.n, bool)
    merged[pairs] = True
    into = np.arange(state.n)
    into[pairs[:, 1]] = pairs[:, 0]
    keep = np.delete(np.arange(state.n), pairs[:, 1])
    _rewrite(state, keep, into, pairs, weights, stale=(merged | merged[state.nearest])[keep])


def _rewrite(
    state: _State,
    keep: np.ndarray,
    into: np.ndarray,
    pairs: np.ndarray,
    weights: np.ndarray,
    stale: np.ndarray,
) -> None:
    """Reduce the matrix to the clusters in keep, merging the pairs, and rescan the stale ones.

    into: (n,) the cluster in keep that each becomes part of.
    """
    n = state.n
    pair_of = np.full(n, -1)
    pair_of[pairs[:, 0]] = np.arange(len(pairs))
    place = np.zeros(n, np.int64)
    place[keep] = np.arange(len(keep))
    nearest, nearest_bits = place[into[state.nearest[keep]]], state.nearest_bits[keep]
    mask, sizes = np.zeros(len(keep), state.bits.dtype), state.sizes[keep]

    columns, merged = keep.astype(np.uint32), pairs.astype(np.uint32)

    def rewrite(start: int, stop: int) -> None:
        linkage_rounds.dense_round(
            state.distances, state.bits, state.slots, n, start, stop, columns, pair_of, merged, weights,
            stale,
            sizes, state.sums, state.constants, mask, state.infinity, nearest, nearest_bits,
        )  # fmt: skip

    state.in_threads(rewrite, len(keep))
    state.slots, state.names, state.sizes = state.slots[keep], state.names[keep], sizes
    state.nearest, state.nearest_bits = nearest, nearest_bits


def _sparse(state: _State, method: LinkageMethod) -> None:
    """Rounds in place until one is dense again or a quarter of the columns is dead; then drop those."""
    n = state.n
    alive, mask = np.ones(n, bool), np.zeros(n, state.bits.dtype)
    merged, merged_bits = np.empty((n, 2), np.int64), np.empty(n, state.bits.dtype)
    few = n <= SMALL
    dense_share, fewest = (1.0, 1) if few else (DENSE_SHARE, 3 * n // 4)
    made, rounds = linkage_rounds.sparse_rounds(
        state.distances, state.bits, state.slots, n, alive, mask, state.sizes,
        3 if state.sums else ("upgma", "wpgma", "complete").index(method), state.constants, state.infinity,
        state.nearest, state.nearest_bits, dense_share, fewest, merged, merged_bits,
    )  # fmt: skip
    state.rounds += rounds
    state.record(merged[:made, 0], merged[:made, 1], merged_bits[:made])
    keep = np.flatnonzero(alive)
    if made == 0 or (few and len(keep) > 1):
        raise NumericalError("clustering met a distance that is not a number")
    if few:
        state.names = state.names[keep]
    else:
        _rewrite(
            state,
            keep,
            np.arange(n),
            np.empty((0, 2), np.int64),
            np.empty((0, 2), state.distances.dtype),
            np.zeros(n, bool),
        )


def _collapse_duplicates(state: _State) -> None:
    """Merge identical rows at distance zero before the first round."""
    if not np.any(state.nearest_bits == 0):
        return
    first = linkage_duplicates.duplicate_rows(state.bits, state.nearest, state.nearest_bits)
    here = np.arange(state.n)
    copies = here[first != here]
    if len(copies) == 0:
        return
    state.record(first[copies], copies, np.zeros(len(copies), state.bits.dtype))
    np.add.at(state.sizes, first[copies], 1.0)
    stale = np.zeros(state.n, bool)
    stale[first[copies]] = True
    keep = here[first == here]
    if state.sums:
        scale = state.sizes[keep]
        for k, size in zip(keep, scale):
            state.distances[k, keep] *= size * scale
    _rewrite(
        state, keep, first, np.empty((0, 2), np.int64), np.empty((0, 2), state.distances.dtype), stale[keep]
    )


def _single(state: _State) -> Merges:
    n = state.n
    merged, merged_bits = np.empty((n - 1, 2), np.int64), np.empty(n - 1, state.bits.dtype)
    linkage_single.single_merges(
        state.bits, state.nearest, state.nearest_bits, state.infinity, merged, merged_bits
    )
    distance = merged_bits.view(state.distances.dtype).astype(np.float64)
    _check_finite(distance)
    return Merges(merged[:, 0].copy(), merged[:, 1].copy(), distance)


def _check_finite(distance: np.ndarray) -> None:
    if not np.all(np.isfinite(distance)):
        raise NumericalError("clustering met a distance that is not finite")


def _ordered(state: _State) -> Merges:
    """The recorded merges in the order in which one pair at a time would have been merged."""
    lower, upper, distance = (np.concatenate(part) for part in zip(*state.merges))
    order = np.lexsort((upper, lower, distance))
    distance = distance[order].astype(np.float64) * (state.unit or 1.0)
    _check_finite(distance)
    return Merges(lower[order], upper[order], distance, state.rounds)
