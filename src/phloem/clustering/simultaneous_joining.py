"""Simultaneous joining in rounds, in threads: an approximation of neighbour joining."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from phloem.clustering.cpu import nj_simultaneous as kernels
from phloem.clustering.cpu.nj_exact import row_sums
from phloem.clustering.reference.nj_simultaneous import REFERENCES
from phloem.errors import NumericalError


class SimultaneousJoining:
    """The state between rounds: n clusters, cluster i row slots[i] of the matrix, names, sums of rows."""

    def __init__(self, matrix: np.ndarray, threads: int):
        """matrix: (N, N) float32 or float64, overwritten."""
        self._matrix, self.n = matrix, len(matrix)
        self._threads = threads
        self.slots, self.names = np.arange(self.n), np.arange(self.n)
        self._sums = np.empty(self.n)
        row_sums(matrix, self.slots, self.n, self._sums)
        self._lowest = min(0.0, float(matrix.min()))
        self.rounds = 0
        self.pairs: list[np.ndarray] = []
        self.lengths: list[np.ndarray] = []
        if not np.all(np.isfinite(self._sums)):
            raise NumericalError("neighbour joining met a distance that is not finite")

    def run(self) -> int:
        """Join until three clusters are left; returns the number of rows read."""
        read = 0
        with ThreadPoolExecutor(self._threads) as workers:
            while self.n > 3:
                read += self.n
                u = self._sums / (self.n - 2)
                lower, upper = self._pairs_of_round(u, workers)
                self._join(lower, upper, u, workers)
                self.rounds += 1
        return read

    def last(self) -> np.ndarray:
        """(3, 3) distances of the clusters that are left."""
        return self._matrix[self.slots, :3]

    def _shares(self, workers: ThreadPoolExecutor, count: int, work: Callable[[int, int], Any]) -> list[Any]:
        """work(begin, end) over ranges of 0…count; more ranges than threads, since some take longer."""
        ends = np.linspace(0, count, 4 * self._threads + 1).astype(int)
        return list(workers.map(work, ends[:-1], ends[1:]))

    def _pairs_of_round(self, u: np.ndarray, workers: ThreadPoolExecutor) -> tuple[np.ndarray, np.ndarray]:
        n, matrix, slots = self.n, self._matrix, self.slots
        offset = u.max() - self._lowest
        shift, partner, value = offset - u, np.empty(n, np.int64), np.empty(n)
        self._shares(
            workers, n, lambda i, j: kernels.nearest_rows(matrix, slots, n, shift, i, j, partner, value)
        )
        q = value - offset - u
        first = int(q.argmin()) if n > 4 else 0
        i = np.arange(n)
        mutual = (partner[partner] == i) & (i < partner)
        ends = sorted((first, int(partner[first])))
        mutual[ends[0]] = False
        lower = np.flatnonzero(mutual & ~np.isin(i, ends) & ~np.isin(partner, ends) & (n > 4))
        upper, confirmed = partner[lower], np.zeros(len(lower), np.bool_)
        references = self._references(int(u.argmax()))
        self._shares(
            workers,
            len(lower),
            lambda i, j: kernels.confirm_pairs(matrix, slots, n, lower, upper, references, i, j, confirmed),
        )
        lower = lower[confirmed]
        lower = lower[np.argsort(q[lower], kind="stable")][: n - 4]
        lower = np.sort(np.append(lower, ends[0]))
        partner[ends[0]] = ends[1]
        return lower, partner[lower]

    def _references(self, start: int) -> np.ndarray:
        """start, and always the cluster farthest from those chosen before (Gonzalez 1985)."""
        chosen, nearest = [start], self._matrix[self.slots[start], : self.n].copy()
        while len(chosen) < min(REFERENCES, self.n):
            chosen.append(int(nearest.argmax()))
            np.minimum(nearest, self._matrix[self.slots[chosen[-1]], : self.n], out=nearest)
        return np.array(chosen)

    def _join(self, lower: np.ndarray, upper: np.ndarray, u: np.ndarray, workers: ThreadPoolExecutor) -> None:
        n, matrix, slots = self.n, self._matrix, self.slots
        ab = matrix[slots[lower], upper].astype(np.float64)
        half = (u[lower] - u[upper]) / 2
        self.pairs.append(np.column_stack([self.names[lower], self.names[upper]]))
        self.lengths.append(np.column_stack([ab / 2 + half, ab / 2 - half]))
        self._shares(
            workers,
            len(lower),
            lambda i, j: kernels.average_rows(matrix, slots, n, lower, upper, ab, i, j),
        )
        other, within = np.full(n, -1), np.zeros(n)
        other[lower], within[lower] = upper, ab
        stays = np.delete(np.arange(n), upper)
        other, within, slots = other[stays], within[stays], slots[stays]
        sums = np.empty(len(stays))
        lowest = self._shares(
            workers,
            len(stays),
            lambda i, j: kernels.average_columns(matrix, slots, stays, other, within, i, j, sums),
        )
        self.n, self.slots, self.names, self._sums = len(stays), slots, self.names[stays], sums
        self._lowest = min(self._lowest, *lowest)
