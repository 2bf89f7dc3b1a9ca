"""Launches whose rows need a row of another band: rows travel in chunks, into a buffer of fixed size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import torch

from phloem.clustering.gpu.shards_device import Batch, Shard


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
