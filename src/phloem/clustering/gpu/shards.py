"""UPGMA, WPGMA and complete linkage of a matrix whose rows are spread over several GPUs of one host.

Every device keeps and rewrites its own rows. What is known of a cluster besides its row (name, size, where
its row lies, nearest neighbour) is kept on the host, which finds the pairs of a round and tells all devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from phloem.clustering.gpu.linkage import linkage_merges
from phloem.clustering.gpu.shards_device import Pairs, Shard, ShardTiling, on_pairs
from phloem.errors import InputError, NumericalError

PART = 2**24  # entries looked at together


def counting_unit(bands: Sequence[torch.Tensor]) -> float:
    """The unit of which every distance is a whole number, or 0 (float64 only); diagonals are zero."""
    n = sum(len(band) for band in bands)
    if bands[0].dtype != torch.float64 or n < 2:
        return 0.0
    smallest, largest = torch.inf, 0.0
    for part in _parts(bands, n):
        smallest = min(smallest, float(torch.where(part > 0, part, torch.inf).min()))
        largest = max(largest, float(part.max()))
    for unit in (1.0, smallest if torch.any(bands[0][0, :n] > 0) else 0.0):
        if unit > 0 and largest / unit * (n * n / 4) < 2.0**52:
            if all(_whole(part / unit) for part in _parts(bands, n)):
                return unit
    return 0.0


def _parts(bands: Sequence[torch.Tensor], n: int) -> Iterator[torch.Tensor]:
    for band in bands:
        yield from band[:, :n].split(max(1, PART // n))


def _whole(count: torch.Tensor) -> bool:
    return bool(torch.all((count - count.round()).abs() <= 4 * torch.finfo(torch.float64).eps * count))


def linkage_merges_sharded(
    bands: Sequence[torch.Tensor], method: str = "upgma", tiling: ShardTiling | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """(lower, upper, distance, rounds) as distance.merges.Merges wants them: the bits of one device.

    bands: the rows of a symmetric, non-negative n × n matrix in order, float32 or float64, each band on its
    device (several may share one), n columns of rows that are a multiple of 16 entries apart
    (shards_bands makes them). They are overwritten. NumericalError for distances that are not
    finite, InputError for a method other than upgma, wpgma and complete.
    """
    if method not in ("upgma", "wpgma", "complete"):
        raise InputError(f"there is no {method} linkage on several GPUs", hint="Choose the CPU.")
    tiling = tiling or ShardTiling()
    n = sum(len(band) for band in bands)
    unit = counting_unit(bands) if method != "complete" else 0.0
    first = 0
    for band in bands:
        if unit > 0:
            band[:, :n].div_(unit).round_()
        band.diagonal(first).fill_(torch.inf)
        first += len(band)
    clusters = _Clusters(bands, n, method, unit > 0 and method == "upgma", tiling)
    clusters.scan_all()
    clusters.collapse_twins()
    while clusters.left > 1:
        if not clusters.sums and clusters.left <= tiling.finish:
            clusters.finish()
        else:
            clusters.one_round()
    return (*clusters.ordered(unit or 1.0), clusters.rounds)


class _Clusters:
    """Places 0 … n-1 in the order of names (smallest leaves); alive: those that still hold a cluster."""

    def __init__(self, bands: Sequence[torch.Tensor], n: int, method: str, sums: bool, tiling: ShardTiling):
        self.shards = [Shard(band, n, sums, tiling) for band in bands]
        self.method, self.sums, self.tiling = method, sums, tiling
        self.dtype = np.dtype(np.float64 if bands[0].dtype == torch.float64 else np.float32)
        self.names, self.sizes, self.alive = np.arange(n), np.ones(n), np.ones(n, bool)
        rows = [len(band) for band in bands]
        self.owner = np.repeat(np.arange(len(bands)), rows)
        self.slot = np.concatenate([np.arange(count) for count in rows])
        self.nearest = np.zeros(n, np.int64)
        self.distance = np.full(n, np.inf, self.dtype)
        self.left, self.rounds = n, 0
        self.merges: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def scan_all(self) -> None:
        """The first nearest neighbours; zeros: of every row."""
        n = len(self.names)
        self._tell(np.arange(n), *self._no_pairs(), self.sizes)
        self.zeros = self._scan(np.arange(n), np.full(n, -1))

    def collapse_twins(self) -> None:
        """Merge classes of identical rows at distance zero from each other and from nothing else."""
        here, near = np.arange(len(self.names)), self.nearest
        suspects = np.flatnonzero((self.distance == 0) & (near < here))
        if len(suspects) == 0:
            return
        first = near[suspects]
        pairs = Pairs(
            self.owner[suspects], self.slot[suspects], self.owner[first], self.slot[first],
            np.stack([suspects, first]), np.zeros((4, len(suspects))),
        )  # fmt: skip
        n = len(here)
        equal = np.zeros(len(suspects), bool)
        for items, batch in on_pairs(self.shards, pairs, n, lambda shard, *where: shard.compare(*where, n)):
            equal[items] = batch.nearest.cpu().numpy() == 1
        twins = suspects[equal]
        count = np.bincount(near[twins], minlength=n)
        copies = twins[count[near[twins]] == self.zeros[near[twins]]]
        if len(copies) == 0:
            return
        self._record(near[copies], copies, np.zeros(len(copies), self.dtype))
        np.add.at(self.sizes, near[copies], 1.0)
        self.alive[copies] = False
        self._rewrite(*self._no_pairs(), expand=True)

    def one_round(self) -> None:
        """All reciprocal nearest neighbours merge, in rewritten rows or in place."""
        n = len(self.names)
        here, near = np.arange(n), self.nearest
        lower = np.flatnonzero(self.alive & (near > here) & (near[near] == here))
        upper = near[lower]
        if len(lower) == 0:
            raise NumericalError("clustering met a distance that is not a number")
        self.rounds += 1
        self._record(lower, upper, self.distance[lower])
        mate, reals = self._no_pairs()
        mate[lower], reals[2, lower] = upper, self.distance[lower]
        reals[:2, lower] = self._weights(self.sizes[lower], self.sizes[upper])
        self.sizes[lower] += self.sizes[upper]
        self.alive[upper] = False
        if len(lower) * self.tiling.dense > n or self.left * 4 < n * 3:
            self._rewrite(mate, reals)
        else:
            self._in_place(lower, upper, mate, reals)

    def _no_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Every place's mate (none), and its weight, its mate's and their distance."""
        n = len(self.names)
        return np.full(n, -1, np.int32), np.zeros((3, n), self.dtype)

    def _weights(self, size: np.ndarray, other: np.ndarray) -> np.ndarray:
        """(2, m) weights in the average, rounded to the matrix's precision."""
        if self.method == "upgma" and not self.sums:
            weights = np.stack([size / (size + other), other / (size + other)])
        else:
            weights = np.full((2, len(size)), 0.5 if self.method == "wpgma" else 1.0)
        return weights.astype(self.dtype)

    def _record(self, lower: np.ndarray, upper: np.ndarray, distance: np.ndarray) -> None:
        self.merges.append((self.names[lower], self.names[upper], distance))
        self.left -= len(lower)

    def _tell(self, places: np.ndarray, mates: np.ndarray, reals: np.ndarray, sizes: np.ndarray) -> None:
        columns = np.stack([places, mates], dtype=np.int32, casting="same_kind")
        for shard in self.shards:
            shard.set_columns(columns, reals, sizes)

    def _rewrite(self, mate: np.ndarray, reals: np.ndarray, expand: bool = False) -> None:
        """The living clusters alone, at new places; merged with their mates (-1: none)."""
        n, keep = len(self.names), np.flatnonzero(self.alive)
        self._tell(keep, mate[keep], reals[:, keep], self.sizes[keep])
        pairs = self._with_mates(keep, mate[keep], np.arange(len(keep)), reals[:, keep])
        nearest, distance = self._merge_rows(pairs, n, len(keep), expand)
        self.names, self.sizes, self.alive = self.names[keep], self.sizes[keep], np.ones(len(keep), bool)
        self.owner, self.slot = pairs.home, pairs.slot
        self.nearest, self.distance = nearest, distance

    def _in_place(self, lower: np.ndarray, upper: np.ndarray, mate: np.ndarray, reals: np.ndarray) -> None:
        """Rows that merge; then the merged columns of all others; then those whose neighbour merged."""
        n = len(self.names)
        here = np.arange(n)
        self._tell(np.where(self.alive, here, -1), mate, reals, self.sizes)
        pairs = self._with_mates(lower, upper, lower, reals[:, lower])
        nearest, distance = self._merge_rows(pairs, n, n, False)
        others = self.alive & (mate < 0)
        for s, shard in enumerate(self.shards):
            slots = self.slot[others & (self.owner == s)]
            if len(slots):
                shard.merge_columns(slots, np.stack([lower, upper]), reals[:2, lower])
        self.owner[lower], self.slot[lower] = pairs.home, pairs.slot
        went = np.full(n, -1)
        went[lower], went[upper] = lower, lower
        stale = np.flatnonzero(others & (went[self.nearest] >= 0))
        self._scan(stale, went[self.nearest[stale]])
        self.nearest[lower], self.distance[lower] = nearest, distance

    def _with_mates(
        self, places: np.ndarray, mates: np.ndarray, new_places: np.ndarray, reals: np.ndarray
    ) -> Pairs:
        """What merge_rows needs of these clusters. A pair of two bands goes to the one with fewer rows."""
        alone = mates < 0
        home, slot = self.owner[places], self.slot[places]
        source, partner = np.where(alone, home, self.owner[mates]), np.where(alone, -1, self.slot[mates])
        weights = np.where(alone, [[1.0], [0.0]], reals[:2])
        swap = _balanced(home, source, len(self.shards))
        home, source = np.where(swap, source, home), np.where(swap, home, source)
        slot, partner = np.where(swap, partner, slot), np.where(swap, slot, partner)
        numbers = np.vstack([np.where(swap, weights[::-1], weights), reals[2], self.sizes[places]])
        return Pairs(home, slot, source, partner, new_places[None], numbers)

    def _merge_rows(self, pairs: Pairs, n: int, columns: int, expand: bool) -> tuple[np.ndarray, np.ndarray]:
        nearest, distance = np.empty(len(pairs.home), np.int64), np.empty(len(pairs.home), self.dtype)
        for items, batch in on_pairs(
            self.shards, pairs, n, lambda shard, *where: shard.merge(*where, columns, expand)
        ):
            nearest[items], distance[items] = batch.nearest.cpu().numpy(), batch.distance.cpu().numpy()
        return nearest, distance

    def _scan(self, places: np.ndarray, went: np.ndarray) -> np.ndarray:
        """Nearest neighbours of these places; returns zeros in their rows, where they had to be read."""
        found, zeros = [], np.empty(len(places), np.int64)
        for s, shard in enumerate(self.shards):
            mine = np.flatnonzero(self.owner[places] == s)
            if len(mine):
                rows = np.stack([self.slot[places[mine]], places[mine], went[mine]])
                batch = shard.batch(rows, np.tile(self.distance[places[mine]], (4, 1)))
                shard.scan(batch, len(self.names))
                found.append((mine, batch))
        for mine, batch in found:
            self.nearest[places[mine]] = batch.nearest.cpu().numpy()
            self.distance[places[mine]] = batch.distance.cpu().numpy()
            zeros[mine] = batch.zeros.cpu().numpy()
        return zeros

    def finish(self) -> None:
        """The last clusters on the first device, in one launch."""
        if not np.all(self.alive):
            self._rewrite(*self._no_pairs())
        n, first = len(self.names), self.shards[0]
        matrix = torch.empty((n, -(-n // 16) * 16), dtype=first.distances.dtype, device=first.device)
        for s, shard in enumerate(self.shards):
            places = np.flatnonzero(self.owner == s)
            slots, where = shard.upload(self.slot[places], np.int32), first.upload(places, np.int64)
            step = min(shard.rows_at_a_time(n), first.rows_at_a_time(n))
            for low in range(0, len(places), step):
                high = min(low + step, len(places))
                matrix[:, :n].index_copy_(0, where[low:high], shard.send(slots, low, high, n, first)[:, :n])
        lower, upper, distance, rounds = linkage_merges(
            matrix[:, :n], self.method, overwrite=True, sizes=self.sizes
        )
        self._record(lower, upper, distance)
        self.rounds += rounds

    def ordered(self, unit: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All merges in the order of one merge at a time."""
        lower, upper, distance = (np.concatenate(part) for part in zip(*self.merges, strict=True))
        if not np.all(np.isfinite(distance)):
            raise NumericalError("clustering met a distance that is not finite")
        order = np.lexsort((upper, lower, distance))
        return lower[order], upper[order], distance[order].astype(np.float64) * unit


def _balanced(home: np.ndarray, source: np.ndarray, bands: int) -> np.ndarray:
    """Which pairs of two bands change places, so that the bands keep about as many rows each."""
    swap = np.zeros(len(home), bool)
    load = np.bincount(home[home == source], minlength=bands)
    for s in range(bands):
        for t in range(s + 1, bands):
            between = np.flatnonzero(((home == s) & (source == t)) | ((home == t) & (source == s)))
            to_s = int(np.clip((len(between) + load[t] - load[s]) // 2, 0, len(between)))
            goes_to_s = np.arange(len(between)) < to_s
            swap[between] = goes_to_s != (home[between] == s)
            load[s] += to_s
            load[t] += len(between) - to_s
    return swap
