"""One band of rows of a distance matrix on its device, and launches that need rows of another band."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import numpy.typing
import torch
import triton.language as tl

from phloem.clustering.gpu.device import on_device
from phloem.clustering.gpu.kernels.linkage_shards import (
    compare_rows,
    gather_rows,
    merge_columns,
    merge_rows,
    scan_rows,
)

# One band of rows of a distance matrix on its device: buffers and launches.


@dataclass(frozen=True)
class ShardTiling:
    """scan, columns: entries of a row that a program has in flight when it scans and when it merges.
    rows, pairs: tile of a step that merges columns only. warps of a program. dense: rewrite where more than
    n / dense clusters merge. finish: so few clusters go to one device. buffer: bytes of rows a device
    receives, and sends, at a time."""

    scan: int = 4096
    columns: int = 1024
    rows: int = 32
    pairs: int = 32
    warps: int = 8
    dense: int = 8
    finish: int = 20_000
    buffer: int = 2**30


@dataclass(frozen=True)
class Batch:
    """Rows a launch works on: rows (F, M) int32, numbers (4, M) float64, and what it finds for each row.

    nearest: place of the nearest neighbour, or 1 for rows that are equal.
    """

    rows: torch.Tensor
    numbers: torch.Tensor
    nearest: torch.Tensor
    distance: torch.Tensor
    zeros: torch.Tensor

    @property
    def size(self) -> int:
        return self.rows.shape[1]


class Shard:
    """A band (rows, N rounded up to a multiple of 16) of an N × N matrix, overwritten as clusters merge."""

    def __init__(self, band: torch.Tensor, n: int, sums: bool, tiling: ShardTiling):
        self.device, self.ld, self.tiling, self.sums = band.device, band.stride(0), tiling, sums
        self.distances = torch.as_strided(band, (len(band), self.ld), (self.ld, 1), band.storage_offset())
        dtype, device = band.dtype, band.device
        self.width = -(-(n + 16) // 16) * 16
        self.places = torch.zeros((2, self.width), dtype=torch.int32, device=device)
        self.reals = torch.zeros((3, self.width), dtype=dtype, device=device)
        self.sizes = torch.ones(self.width, dtype=torch.float64, device=device)
        info = torch.finfo(dtype)
        limits = (0.0, 0.0, 2.0) if sums else (1 + info.eps, info.tiny, 1.0)
        self.constants = torch.tensor(limits, dtype=dtype, device=device)
        # Never more than the band could need; a row at least.
        entries = max(min(tiling.buffer // band.element_size(), len(band) * self.ld), self.ld)
        self.outbox = torch.empty(entries, dtype=dtype, device=device)
        self.inbox = torch.empty(entries, dtype=dtype, device=device)
        self._options = {"num_warps": tiling.warps}
        if device.type == "cuda":
            self._options["enable_fp_fusion"] = False  # as on the CPU, to the last bit
        self._types = {"DTYPE": tl.float64 if dtype == torch.float64 else tl.float32, "SUMS": sums}

    def set_columns(self, places: np.ndarray, reals: np.ndarray, sizes: np.ndarray) -> None:
        """places (2, n), reals (3, n) and sizes (n,) of the launches to come (linkage_shards)."""
        n = places.shape[1]
        self.places[:, :n] = self.upload(places, np.int32)
        self.reals[:, :n] = self.upload(reals, reals.dtype)
        if self.sums:
            self.sizes[:n] = self.upload(sizes, np.float64)

    def upload(self, values: np.ndarray, dtype: np.typing.DTypeLike) -> torch.Tensor:
        """A copy on the device, after what runs there."""
        return torch.from_numpy(np.ascontiguousarray(values, dtype)).to(self.device)

    def batch(self, rows: np.ndarray, numbers: np.ndarray) -> Batch:
        m, dtype = rows.shape[1], self.distances.dtype
        return Batch(
            rows=self.upload(rows, np.int32),
            numbers=self.upload(numbers, np.float64),
            nearest=torch.empty(m, dtype=torch.int32, device=self.device),
            distance=torch.empty(m, dtype=dtype, device=self.device),
            zeros=torch.empty(m, dtype=torch.int32, device=self.device),
        )

    def scan(self, batch: Batch, n: int) -> None:
        """batch: row, place, where the nearest neighbour went or -1; before: how far that was."""
        with on_device(self.device):
            scan_rows[(batch.size,)](
                self.distances, self.ld, batch.rows, batch.numbers.to(self.distances.dtype), batch.size,
                self.places, self.sizes, n, batch.nearest, batch.distance, batch.zeros,
                BLOCK=self.tiling.scan, **self._types, **self._options,
            )  # fmt: skip

    def merge(self, batch: Batch, first: int, stop: int, others: torch.Tensor, n: int, expand: bool) -> None:
        """New rows first … stop-1 of the batch; `others`: where their partners' rows are."""
        with on_device(self.device):
            merge_rows[(stop - first,)](
                self.distances, self.ld, others, others.stride(0), batch.rows, batch.numbers, batch.size,
                first, self.places, self.reals, self.sizes, self.width, n, int(expand), self.constants,
                batch.nearest, batch.distance,
                BLOCK=self.tiling.columns, **self._types, **self._options,
            )  # fmt: skip

    def compare(self, batch: Batch, first: int, stop: int, others: torch.Tensor, n: int) -> None:
        """batch.nearest = 1 where two rows agree but for their own two columns."""
        with on_device(self.device):
            compare_rows[(stop - first,)](
                self.distances, self.ld, others, others.stride(0), batch.rows, batch.size, first, n,
                batch.nearest, BLOCK=self.tiling.scan, **self._options,
            )  # fmt: skip

    def merge_columns(self, slots: np.ndarray, merged: np.ndarray, weights: np.ndarray) -> None:
        """Columns merged[0] (with merged[1]) of rows that do not merge themselves."""
        rows, pairs = len(slots), merged.shape[1]
        t = self.tiling
        with on_device(self.device):
            merge_columns[(-(-rows // t.rows), -(-pairs // t.pairs))](
                self.distances, self.ld, self.upload(slots, np.int32), rows, self.upload(merged, np.int32),
                self.upload(weights, weights.dtype), pairs, self.constants,
                ROWS=t.rows, PAIRS=t.pairs, **self._options,
            )  # fmt: skip

    def rows_at_a_time(self, n: int) -> int:
        """Rows of n columns that the buffers hold."""
        return self.inbox.numel() // _padded(n)

    def send(self, slots: torch.Tensor, first: int, stop: int, n: int, to: Shard) -> torch.Tensor:
        """The first n columns of rows slots[first:stop] (a list on this device), in the other's inbox."""
        shape = (stop - first, _padded(n))
        size = shape[0] * shape[1]
        out, arrived = self.outbox[:size].view(shape), to.inbox[:size].view(shape)
        block = self.tiling.scan
        with on_device(self.device):
            gather_rows[(stop - first, -(-n // block))](
                self.distances, self.ld, slots, first, out, shape[1], n, BLOCK=block, **self._options
            )
        # PyTorch lets both devices' streams wait: the inbox is free before the copy, full after it.
        arrived.copy_(out, non_blocking=True)
        return arrived


def _padded(n: int) -> int:
    return -(-n // 16) * 16


# Launches whose rows need a row of another band: rows travel in chunks, into a buffer of fixed size.


@dataclass(frozen=True)
class Pairs:
    """Rows to work on, each with a partner row; all arrays (M,).

    home, slot: band and row in it. source, partner: the same of the other row (-1: there is none; then source
    is home). fields: (F, M) whole numbers and numbers: (4, M) float64, passed on to the launch.
    """

    home: np.ndarray
    slot: np.ndarray
    source: np.ndarray
    partner: np.ndarray
    fields: np.ndarray
    numbers: np.ndarray


@dataclass(frozen=True)
class Chunk:
    """Items first … stop-1 of a batch need rows slots[low:high] of shard `source`, in this order."""

    source: int
    slots: torch.Tensor
    low: int
    high: int
    first: int
    stop: int


def chunks(source: np.ndarray, slot: np.ndarray, rows: int) -> tuple[list[tuple], np.ndarray]:
    """([(source, distinct slots, low, high, first, stop)], index of each item's row in its chunk).

    source, slot: (M,) sorted by both. rows: that a chunk may hold.
    """
    found, index = [], np.empty(len(source), np.int64)
    for s in np.unique(source).tolist():
        start, end = np.searchsorted(source, [s, s + 1]).tolist()
        distinct, which = np.unique(slot[start:end], return_inverse=True)
        for low in range(0, len(distinct), rows):
            first, stop = np.searchsorted(which, [low, low + rows]).tolist()
            index[start + first : start + stop] = which[first:stop] - low
            high = min(low + rows, len(distinct))
            found.append((s, distinct, low, high, start + first, start + stop))
    return found, index


def on_pairs(
    shards: list[Shard], pairs: Pairs, n: int, launch: Callable[[Shard, Batch, int, int, torch.Tensor], None]
) -> list[tuple[np.ndarray, Batch]]:
    """Run launch(shard, batch, first, stop, partners' rows) for all items; [(items, batch) of each shard].

    n: columns of a row that travels.
    """
    limit = min(shard.rows_at_a_time(n) for shard in shards)
    done, queues = [], []
    for s, shard in enumerate(shards):
        mine = np.flatnonzero(pairs.home == s)
        if len(mine) == 0:
            continue
        away = pairs.source[mine] != s
        near, far, local = mine[~away], mine[away], int(len(mine) - away.sum())
        far = far[np.lexsort((pairs.partner[far], pairs.source[far]))]
        mine = np.concatenate([near, far])
        arriving, index = chunks(pairs.source[far], pairs.partner[far], limit)
        partner = np.concatenate([pairs.partner[near], index])
        batch = shard.batch(
            np.vstack([pairs.slot[mine], partner, pairs.fields[:, mine]]), pairs.numbers[:, mine]
        )
        done.append((mine, batch))
        queues.append((shard, batch, local, list(_on_devices(shards, arriving, local))))
    for shard, batch, local, _ in queues:
        if local:
            launch(shard, batch, 0, local, shard.distances)
    # A chunk for every shard, then they all compute: what a device sends waits for what it computes.
    for turn in zip_longest(*(queue for *_, queue in queues)):
        arrived = []
        for (shard, batch, *_), chunk in zip(queues, turn, strict=True):
            if chunk is not None:
                rows = shards[chunk.source].send(chunk.slots, chunk.low, chunk.high, n, shard)
                arrived.append((shard, batch, chunk.first, chunk.stop, rows))
        for job in arrived:
            launch(*job)
    return done


def _on_devices(shards: list[Shard], arriving: list[tuple], local: int) -> Iterator[Chunk]:
    """The lists of rows to send, each uploaded once to its source, before anything is launched there."""
    uploaded: dict[int, torch.Tensor] = {}
    for source, distinct, low, high, first, stop in arriving:
        if source not in uploaded:
            uploaded[source] = shards[source].upload(distinct, np.int32)
        yield Chunk(source, uploaded[source], low, high, local + first, local + stop)
