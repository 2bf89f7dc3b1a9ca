"""Neighbour joining, BIONJ and UNJ of a distance matrix, and simultaneous joining, an approximation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from phloem.clustering.arrays import plain_array, refuse_negative, require_names, require_square
from phloem.clustering.cpu import joining as kernels
from phloem.clustering.settings import REFERENCES, Device, JoiningMethod, select_distance_device
from phloem.data.distance_matrix import DistanceMatrix
from phloem.errors import InputError, NumericalError, require_choice, require_count
from phloem.tree.tree import Tree

NegativeBranches = Literal["keep", "zero", "transfer"]
CPU_SECONDS = 1.7e-8  # per entry of the matrix
METHODS: tuple[JoiningMethod, ...] = ("nj", "bionj", "unj")


@dataclass(frozen=True, eq=False)
class Joins:
    """n-3 joins of n leaves and the three clusters that are left.

    pairs: (n-3, 2) int64 names (smallest leaves) joined; lengths: (n-3, 2) float64 branch lengths above them.
    last: (m,) int64 names of the last m = min(n, 3) clusters, last_lengths: (m,) branches to the centre.
    rows_read: how many (half) rows were scanned.
    """

    pairs: np.ndarray
    lengths: np.ndarray
    last: np.ndarray
    last_lengths: np.ndarray
    rows_read: int

    def tree(self, taxa: Sequence[str], negative: NegativeBranches = "keep") -> Tree:
        """The unrooted tree, its centre as basal node.

        negative: keep negative branches, set them to zero, or set them to zero and shorten the sister
        branch by as much (transfer; Kuhner and Felsenstein 1994), which keeps the distance between the two.
        """
        n, k = len(self.pairs) + len(self.last), len(self.pairs)
        require_names(taxa, n)
        lengths, ends = _without_negatives(self.lengths, negative), self.last_lengths
        node, parent = list(range(n)), np.full(n + k + 1, -1, np.int32)
        branch = np.zeros(n + k + 1)
        for step, (a, b) in enumerate(self.pairs.tolist()):
            parent[node[a]] = parent[node[b]] = n + step
            branch[node[a]], branch[node[b]] = lengths[step]
            node[a] = n + step
        for name, end in zip(self.last.tolist(), ends if negative == "keep" else np.maximum(ends, 0)):
            parent[node[name]], branch[node[name]] = n + k, end
        return Tree(taxa=tuple(taxa), parent=parent, lengths=branch, rooted=False)


def _without_negatives(lengths: np.ndarray, negative: NegativeBranches) -> np.ndarray:
    if negative == "keep":
        return lengths
    if negative == "transfer":
        lengths = lengths + np.minimum(lengths[:, ::-1], 0)
    return np.maximum(lengths, 0)


def neighbour_joining(
    distances: np.ndarray | DistanceMatrix,
    method: JoiningMethod = "nj",
    *,
    simultaneous: bool = False,
    overwrite: bool = False,
    threads: int = 2,
    device: Device = "cpu",
) -> Joins:
    """Join the pair that minimises the NJ criterion until three clusters are left (reference.joining).

    distances: a DistanceMatrix, or (n, n) symmetric with zero diagonal, finite and non-negative, float32 or
    float64, kept in that precision; sums, the criterion and branch lengths are float64.
    overwrite: work inside `distances` (it is lost).
    The criterion is minimised exactly (to rounding) at every join.
    simultaneous: join all confirmed pairs of a round at once (reference.joining): not the
    neighbour-joining tree; rows_read counts whole rows then. threads: it alone uses several.
    device: see select_distance_device; the GPU never overwrites host memory. In float32 BIONJ's
    weights may differ in the last bits there.
    """
    require_choice("method of joining", method, METHODS)
    check_simultaneous(method, simultaneous)
    require_count("threads", threads)
    entries = plain_array(distances.values if isinstance(distances, DistanceMatrix) else distances)
    require_square(entries)
    n = len(entries)
    if n and entries.min() < 0:
        refuse_negative(entries)
    if n <= 3:
        return Joins(np.empty((0, 2), np.int64), np.empty((0, 2)), np.arange(n), centre(entries), 0)
    if joining_device(n, simultaneous, device)[0] == "gpu":
        return on_gpu(entries, method)
    work = entries if overwrite and entries.flags.writeable else entries.copy()
    if simultaneous:
        return _in_rounds(work, threads)
    variances = work.copy() if method == "bionj" else np.empty((1, 1), work.dtype)
    pairs, lengths = np.empty((n - 3, 2), np.int64), np.empty((n - 3, 2))
    last, slots, names, read = kernels.join_all(
        work, variances, np.arange(n), np.arange(n), np.ones(n), 0.0,
        METHODS.index(method), pairs, lengths,
    )  # fmt: skip
    if not np.all(np.isfinite(lengths)):
        raise NumericalError("neighbour joining met a distance that is not finite")
    return Joins(pairs, lengths, names, centre(work[np.ix_(slots, last)]), int(read))


def check_simultaneous(method: str | None, simultaneous: bool) -> None:
    """Raises InputError for a method that joins one pair at a time only."""
    if simultaneous and method != "nj":
        raise InputError(f"{method} has no simultaneous variant", hint="Only neighbour joining has one.")


def _in_rounds(work: np.ndarray, threads: int) -> Joins:
    state = SimultaneousJoining(work, threads)
    read = state.run()
    ends = centre(state.last())
    return Joins(np.concatenate(state.pairs), np.concatenate(state.lengths), state.names, ends, read)


def joining_device(n: int, simultaneous: bool, requested: Device) -> tuple[Literal["cpu", "gpu"], str]:
    """Where n taxa will be joined, and why."""
    return select_distance_device(requested, CPU_SECONDS * n * n, lacking_on_gpu(simultaneous))


def lacking_on_gpu(simultaneous: bool) -> str | None:
    """What the GPU kernels lack for this way to join, if anything."""
    return "simultaneous joining" if simultaneous else None


def on_gpu(distances: Any, method: JoiningMethod, overwrite: bool = False) -> Joins:
    """Joins on the device, of an array or a tensor there."""
    from phloem.clustering.gpu.nj import joins

    found = joins(distances, method, overwrite=overwrite)
    return Joins(found.pairs, found.lengths, found.last, found.last_lengths, found.rows_read)


def centre(distances: np.ndarray) -> np.ndarray:
    """Branches from at most three clusters to the point between them."""
    d = distances.astype(np.float64)
    if len(d) < 3:
        return np.full(len(d), d[0, 1] / 2 if len(d) == 2 else 0.0)
    return d.sum(axis=1) - d.sum() / 4


class SimultaneousJoining:
    """The state between rounds: n clusters, cluster i row slots[i] of the matrix, names, sums of rows."""

    def __init__(self, matrix: np.ndarray, threads: int):
        """matrix: (N, N) float32 or float64, overwritten."""
        self._matrix, self.n = matrix, len(matrix)
        self._threads = threads
        self.slots, self.names = np.arange(self.n), np.arange(self.n)
        self._sums = np.empty(self.n)
        kernels.row_sums(matrix, self.slots, self.n, self._sums)
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
