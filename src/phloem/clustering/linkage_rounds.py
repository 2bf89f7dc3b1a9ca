"""Clusters on their way to one: a triangle of distances that shrinks as they merge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from phloem.clustering.arrays import equal_areas, not_finite, refuse_negative
from phloem.clustering.cpu import linkage_rounds as kernels
from phloem.clustering.cpu import linkage_sequence
from phloem.clustering.cpu.linkage_rounds import COMPLETE, UPGMA, WPGMA, Rule
from phloem.clustering.settings import LinkageMethod

LAG = 128  # rows behind the place they are read from that threads may write while others read
SAMPLE = 64  # rows in which most pairs of clusters at distance zero differ, unless they are duplicates
METHODS = {"upgma": UPGMA, "wpgma": WPGMA, "complete": COMPLETE}


class LinkageState:
    """Clusters 0 … n-1 in the order of their names (smallest leaves).

    triangle, bits: entries among the clusters and their integer view. names, sizes: (n,) smallest leaf and
    number of leaves. before, nearest and their _bits: (n,) the nearest cluster of those before, and of all,
    and its distance's bits. unit: distances are whole numbers of it (0: they are not); sums: the entries are
    sums over leaf pairs, else averages. rounds: of reciprocal nearest neighbours so far.
    """

    def __init__(
        self,
        entries: np.ndarray,
        n: int,
        method: LinkageMethod,
        workers: ThreadPoolExecutor,
        threads: int,
    ) -> None:
        self.method, self.workers, self.threads, self.rounds = method, workers, threads, 0
        self.integer = np.dtype(f"i{entries.itemsize}")
        self.infinity = np.array(np.inf, entries.dtype).view(self.integer)[()]
        self.unit = 0.0
        if entries.dtype == np.float64 and method in ("upgma", "wpgma"):
            self.unit = self._counted(entries, n)
        self.sums = self.unit > 0 and method == "upgma"
        self.triangle, self.bits = entries, entries.view(self.integer)
        self.names, self.sizes = np.arange(n), np.ones(n)
        info, number = np.finfo(entries.dtype), entries.dtype.type
        constants = {True: (0.0, 0.0, 2.0), False: (1 + info.eps, info.tiny, 1.0)}[self.sums]
        one_up, tiny, cap = (number(x) for x in constants)
        self.rule = Rule(METHODS[method], self.sums, (one_up, tiny, cap), self.infinity)
        self._merges: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._scan()

    @property
    def n(self) -> int:
        return len(self.names)

    def recorded(self) -> tuple[np.ndarray, ...]:
        """Names of the lower and upper members of all merges so far, and their distances."""
        return tuple(np.concatenate(part) for part in zip(*self._merges))

    def reciprocal_pairs(self) -> np.ndarray:
        """(m, 2) positions of reciprocal nearest neighbours, ordered by the lower one."""
        here = np.arange(self.n)
        lower = here[(self.nearest > here) & (self.nearest[self.nearest] == here)]
        return np.column_stack([lower, self.nearest[lower]])

    def merge_round(self, pairs: np.ndarray) -> None:
        """Merge all these reciprocal nearest neighbours and drop the merged rows and columns."""
        self.rounds += 1
        lower, upper = pairs.T
        bits = self.nearest_bits[lower]
        self._record(lower, upper, bits)
        ranks = np.empty(len(pairs), np.int64)
        ranks[np.lexsort((upper, lower, bits))] = np.arange(len(pairs))
        weights = self._weights(self.sizes[pairs])
        self.sizes[lower] += self.sizes[upper]
        self._rewrite(np.delete(np.arange(self.n), upper), pairs, weights, ranks)

    def merge_in_sequence(self, fewest: int) -> None:
        """Merge one pair at a time until `fewest` clusters are left."""
        n = self.n
        mask, means = np.zeros(n, self.integer), np.empty(n, self.integer)
        merged, merged_bits = np.empty((n, 2), np.int64), np.empty(n, self.integer)
        clusters = linkage_sequence.Clusters(
            self.triangle,
            self.bits,
            mask,
            self.sizes,
            self.before_bits,
            self.before,
            np.zeros(n, bool),
            means,
        )
        scratch = np.empty(n, self.triangle.dtype)
        made = linkage_sequence.merge_in_sequence(
            clusters, self.rule, n, fewest, scratch, merged, merged_bits
        )
        self._record(merged[:made, 0], merged[:made, 1], merged_bits[:made])
        self._keep(np.flatnonzero(mask == 0))

    def collapse_duplicates(self) -> None:
        """Merge identical rows at distance zero: all of a class at once, the lowest names first.

        A class counts only if nothing outside it is at distance zero from it: then the greedy order merges
        it first of all, and the merged row is the row itself.
        """
        copies = np.flatnonzero(self.before_bits == 0)
        originals = self.before[copies].astype(np.int64)
        first = self.before_bits[originals] != 0
        copies, originals = copies[first], originals[first]
        if len(copies) == 0:
            return
        order = np.argsort(originals, kind="stable")
        copies, originals = copies[order], originals[order]
        same, _ = self._compared(copies, originals, max(0, self.n - SAMPLE))
        copies, originals = copies[same], originals[same]
        same, zeros = self._compared(copies, originals, 0)
        members = np.bincount(originals[same], minlength=self.n)
        same &= members[originals] == zeros
        copies, originals = copies[same], originals[same]
        if len(copies) == 0:
            return
        self._record(originals, copies, np.zeros(len(copies), self.integer))
        np.add.at(self.sizes, originals, 1.0)
        keep = np.delete(np.arange(self.n), copies)
        if self.sums:
            for k in keep.tolist():
                self.triangle[k * (k - 1) // 2 : k * (k + 1) // 2] *= self.sizes[k] * self.sizes[:k]
        self._keep(keep)

    def _compared(
        self, copies: np.ndarray, originals: np.ndarray, start: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Whether rows start … n-1 are alike for each copy and its original, and the zeros of this there."""
        shape = (self.threads, len(copies))
        same, zeros = np.ones(shape, np.uint8), np.zeros(shape, np.int64)
        before = np.searchsorted(originals, np.arange(self.n))
        copies, originals = copies.astype(np.uint64), originals.astype(np.uint64)
        edges = equal_areas(start, self.n, self.threads)

        def compare(t: int) -> None:
            kernels.compare_rows(
                self.bits, edges[t], edges[t + 1], copies, originals, before, same[t], zeros[t]
            )

        list(self.workers.map(compare, range(self.threads)))
        return np.asarray(same.all(axis=0)), zeros.sum(axis=0)

    def _counted(self, entries: np.ndarray, n: int) -> float:
        """Entries in their unit if they have one (reference.linkage.counting_unit); returns it, or 0."""
        edges = np.linspace(0, len(entries), 4 * self.threads + 1).astype(np.int64)

        def over_parts(work: Callable[[int, int], Any]) -> list[Any]:
            return list(self.workers.map(work, edges[:-1], edges[1:]))

        bits, none = entries.view(self.integer), (self.infinity, self.infinity, self.infinity * 0)
        found = np.array(over_parts(lambda a, b: kernels.extremes(bits, a, b, none)))
        if found[:, 2].max() >= self.infinity:
            return 0.0  # which is an error later
        positive, largest = np.array([found[:, 1].min(), found[:, 2].max()]).view(np.float64)
        for unit in (1.0, float(positive)):
            of_unit = partial(kernels.are_whole, entries, unit)
            if largest / unit * (n * n / 4) < 2.0**52 and all(over_parts(of_unit)):
                over_parts(partial(kernels.count, entries, unit))
                return unit
        return 0.0

    def _record(self, lower: np.ndarray, upper: np.ndarray, bits: np.ndarray) -> None:
        self._merges.append((self.names[lower], self.names[upper], bits.view(self.triangle.dtype)))

    def _weights(self, sizes: np.ndarray) -> np.ndarray:
        """(m, 2) weights of merged clusters of (m, 2) sizes: reference.linkage.merge_weights of pairs."""
        if self.method == "upgma" and not self.sums:
            return (sizes / sizes.sum(axis=1, keepdims=True)).astype(self.triangle.dtype)
        return np.full(sizes.shape, 0.5 if self.method == "wpgma" else 1.0, self.triangle.dtype)

    def _keep(self, keep: np.ndarray) -> None:
        none = np.empty((0, 2), np.int64)
        self._rewrite(keep, none, none.astype(self.triangle.dtype), np.empty(0, np.int64))

    def _rewrite(self, keep: np.ndarray, pairs: np.ndarray, weights: np.ndarray, ranks: np.ndarray) -> None:
        """Reduce the triangle to the clusters in keep, merging the pairs, and find nearest neighbours."""
        lowers, uppers = np.ascontiguousarray(pairs.T.astype(np.uint64))
        places = np.searchsorted(keep, pairs[:, 0])
        pair_of = np.full(len(keep), -1)
        pair_of[places] = np.arange(len(pairs))
        before = np.searchsorted(pairs[:, 0], keep)
        change = kernels.Round(
            keep.astype(np.uint64), pair_of, before, lowers, uppers,
            uppers * (uppers - np.uint64(1)) // np.uint64(2), places.astype(np.uint64), weights[:, 0].copy(),
            weights[:, 1].copy(), ranks,
        )  # fmt: skip
        copies = self._new_minima(len(keep))
        self.names, self.sizes = self.names[keep], self.sizes[keep]

        def rewrite(start: int, stop: int, copy: int) -> None:
            kernels.rewrite_rows(
                self.triangle, self.bits, start, stop, change, self.sizes, self.rule, copies[copy]
            )

        for edges in _stretches(keep, self.threads):
            list(self.workers.map(rewrite, edges[:-1], edges[1:], range(self.threads)))
        self._join_minima(copies)

    def _scan(self) -> None:
        """Every cluster's nearest neighbour; raises InputError for what is no distance."""
        copies, edges = self._new_minima(self.n), equal_areas(0, self.n, self.threads)

        def scan(t: int) -> int:
            return kernels.scan_rows(
                self.triangle, self.bits, edges[t], edges[t + 1], self.sizes, self.rule, copies[t]
            )

        largest = max(self.workers.map(scan, range(self.threads)))
        if largest >= self.infinity:
            raise not_finite()
        self._join_minima(copies)
        if self.nearest_bits.min() < 0:
            refuse_negative(self.triangle)
            self.triangle += 0.0  # negative zeros become zeros
            self._scan()

    def _new_minima(self, n: int) -> list[tuple[np.ndarray, ...]]:
        """Distance and place of the nearest cluster before and after, for each thread; `before` is shared."""
        before_bits, before = np.full(n, self.infinity), np.full(n, n, self.integer)
        return [
            (before_bits, before, np.full(n, self.infinity), np.full(n, n, self.integer))
            for _ in range(self.threads)
        ]

    def _join_minima(self, copies: list[tuple[np.ndarray, ...]]) -> None:
        """The nearest of all from the nearest before and the threads' nearest after; of equals the first."""
        self.before_bits, self.before = copies[0][:2]
        bits, nearest = self.before_bits.copy(), self.before.copy()
        for _, _, after_bits, after in copies:
            better = (after_bits < bits) | ((after_bits == bits) & (after < nearest))
            bits[better], nearest[better] = after_bits[better], after[better]
        self.nearest_bits, self.nearest = bits, nearest.astype(np.int64)


def _stretches(keep: np.ndarray, threads: int) -> Iterator[list[int]]:
    """Edges of ranges of rows that threads may rewrite at the same time, one list after the other.

    New row i lies where old row i was and comes from old rows from keep[i] on: new rows up to keep[i] may be
    written while these are read. The first rows, which lag less than LAG behind, are rewritten in order.
    """
    n, lag = len(keep), keep - np.arange(len(keep))
    start = int(np.searchsorted(lag, LAG)) if threads > 1 else n
    yield [0, start]
    while start < n:
        stop = min(int(keep[start]), n)
        yield equal_areas(start, stop, threads)
        start = stop
