"""Exact neighbour joining on a GPU: launches between which dead columns go; the last four on the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import triton.language as tl

from phloem.clustering.gpu.device import as_work_matrix, free_bytes, launch_options, programs
from phloem.clustering.gpu.kernels.nj_exact import ARRIVED, COUNTERS, ROWS_READ, nj_exact
from phloem.clustering.gpu.kernels.nj_records import (
    BEGIN,
    FIELDS,
    NAME,
    REALS,
    RING,
    RUN,
    SIZE,
    SLOT,
    SUMS,
    UNTOLD,
    WORDS,
)
from phloem.clustering.gpu.kernels.nj_scan import count_places, drop_columns, first_partners, row_sums
from phloem.clustering.reference.joining import neighbour_joining
from phloem.clustering.settings import JoiningMethod
from phloem.errors import InputError, NumericalError
from phloem.hardware.gpu_device import find_device

# The launches of exact neighbour joining; between them dead columns are dropped.
#
# How many clusters a launch leaves is known beforehand, so that nothing is waited for on the host.


METHODS = {"nj": 0, "bionj": 1, "unj": 2}
COLUMNS = 1024  # in flight where each program has one row


@dataclass(frozen=True)
class JoiningTiling:
    """programs: at most so many, one a multiprocessor. lanes: rows of a program at least, since every number
    of lanes is compiled by itself. blocks: entries of a row in flight, of launches up to so many clusters.
    small: never drop columns of fewer clusters. ahead: rows that so many joins would make due are scanned
    early."""

    programs: int = 128
    lanes: int = 128
    blocks: tuple[tuple[int, int], ...] = ((4_000, 512), (16_384, 1024), (1 << 31, 2048))
    small: int = 512
    ahead: float = 4.0


USUAL = JoiningTiling()  # measured on an H100


def stages(n: int, small: int) -> list[tuple[int, int]]:
    """Clusters before and after each launch; all but the last end when a quarter of the columns is dead."""
    counts = [n]
    while counts[-1] > max(small, 6):  # the last launch has something to do
        counts.append(-(-3 * counts[-1] // 4) - 1)
    return list(zip(counts, [*counts[1:], 4]))


class JoiningStages:
    """A matrix, what is known of its clusters (nj_steps; sums of rows at first), and all joins in the end."""

    def __init__(self, work: torch.Tensor, n: int, method: JoiningMethod, tiling: JoiningTiling):
        self.work, self.n, self.method, self.tiling = work, n, METHODS[method], tiling
        self.variances = work.clone() if method == "bionj" else work
        device, self.width = work.device, -(-(n + 16) // 16) * 16
        self.state = torch.zeros((FIELDS, self.width), dtype=torch.int32, device=device)
        for field in (SLOT, NAME):
            self.state[field.value, :n] = torch.arange(n, dtype=torch.int32, device=device)
        place = torch.arange(n, dtype=torch.int32, device=device)
        round_end = n - (n - 1) // 2  # of two clusters just opposite each other, the later answers
        self.state[BEGIN.value, :n] = torch.where(place < n // 2, place + round_end, place - n // 2)
        self.reals = torch.full((REALS, self.width), -torch.inf, dtype=torch.float64, device=device)
        self.reals[SIZE.value] = 1.0
        self.order = torch.zeros((2, self.width), dtype=torch.int32, device=device)
        self.names = torch.zeros((2, self.width), dtype=torch.int32, device=device)
        self.lengths = torch.zeros((2, self.width), dtype=torch.float64, device=device)
        self.counters = torch.zeros(COUNTERS, dtype=torch.int32, device=device)
        self._cooperative = launch_options(device, registers=0)
        self._alone = {key: x for key, x in self._cooperative.items() if key == "enable_fp_fusion"}
        self._dtype = tl.float64 if work.dtype == torch.float64 else tl.float32
        row_sums[(n,)](work, work.stride(0), self.reals, self.width, n, BLOCK=COLUMNS, **self._alone)

    def join(self) -> int:
        """Join until four clusters are left; they live in as many columns as are returned."""
        first_partners[(self.n,)](
            self.work, self.work.stride(0), self.state, self.reals, self.width, self.n,
            DTYPE=self._dtype, BLOCK=COLUMNS, **self._alone,
        )  # fmt: skip
        steps = stages(self.n, self.tiling.small)
        for clusters, left in steps:
            self._launch(clusters, left)
            if left > 4:
                self._drop_dead(clusters, left)
        return steps[-1][0]

    def _launch(self, clusters: int, left: int) -> None:
        tiling, device = self.tiling, self.work.device
        count = min(tiling.programs, programs(device, per_processor=1))
        rows = -(-clusters // (RUN.value * count)) * RUN.value
        lanes = max(1 << (max(rows, count) - 1).bit_length(), tiling.lanes)
        block = next(block for most, block in tiling.blocks if clusters <= most)
        records = torch.full((RING.value, count, WORDS.value), UNTOLD.value, dtype=torch.int64, device=device)
        self.counters[ARRIVED.value] = 0
        nj_exact[(count,)](
            self.work, self.variances, self.work.stride(0), self.state, self.reals, records, self.names,
            self.lengths, self.width, clusters, left, self.n - clusters, self.counters, tiling.ahead,
            BLOCK=block, WIDTH=lanes, METHOD=self.method, DTYPE=self._dtype,
            NATIVE=device.type == "cuda" and torch.version.hip is None,
            num_warps=min(max(lanes // 32, 4), 16),  # a lane a thread
            **self._cooperative,
        )  # fmt: skip

    def _drop_dead(self, clusters: int, left: int) -> None:
        """Of `clusters` columns the `left` living ones move together."""
        sums = self.reals[SUMS.value + (self.n - left) % 2]
        count_places[(clusters // COLUMNS + 1,)](self.order, sums, self.width, clusters, BLOCK=COLUMNS)
        state, reals = torch.empty_like(self.state), torch.empty_like(self.reals)
        for matrix in (self.work, self.variances)[: 1 + (self.variances is not self.work)]:
            drop_columns[(left,)](
                matrix, matrix.stride(0), self.order, self.state, self.reals, state, reals, self.width, left,
                MOVES_STATE=matrix is self.work, FIELDS=FIELDS, REALS=REALS, BLOCK=COLUMNS,
            )  # fmt: skip
        self.state, self.reals = state, reals


# Exact neighbour joining on a GPU, the last four clusters on the host.


@dataclass(frozen=True)
class GpuJoins:
    """pairs, lengths: (n-3, 2) names joined; last, last_lengths: the final three; rows_read: scanned."""

    pairs: np.ndarray
    lengths: np.ndarray
    last: np.ndarray
    last_lengths: np.ndarray
    rows_read: int


def joins(
    distances: np.ndarray | torch.Tensor,
    method: JoiningMethod = "nj",
    *,
    overwrite: bool = False,
    tiling: JoiningTiling = USUAL,
) -> GpuJoins:
    """Exact neighbour joining, BIONJ or UNJ (reference.joining) of n ≥ 4 clusters.

    distances: (n, n) symmetric with zero diagonal, float32 or float64, in host memory or on the device, kept
    in its precision; sums, the criterion and branch lengths are float64. BIONJ keeps a second matrix.
    overwrite: see linkage_merges. InputError where the device's memory does not hold it, NumericalError
    where a distance is not finite.
    """
    device = distances.device if isinstance(distances, torch.Tensor) else find_device()
    n = len(distances)
    _require_memory(distances, method, overwrite, device)
    run = JoiningStages(as_work_matrix(distances, device, overwrite), n, method, tiling)
    if not bool(torch.isfinite(run.reals[SUMS.value, :n]).all()):
        raise NumericalError("neighbour joining met a distance that is not finite")
    columns = run.join()
    alive = torch.nonzero(run.reals[SUMS.value + (n - 4) % 2, :columns] > -torch.inf).ravel()
    slots, last = run.state[SLOT.value, alive].long(), run.state[NAME.value, alive].cpu().numpy()
    four, four_variances = (m[slots][:, alive].cpu().numpy() for m in (run.work, run.variances))
    sizes = run.reals[SIZE.value, alive].cpu().numpy()
    final_pairs, final_lengths, final = neighbour_joining(four, method, four_variances, sizes)
    return GpuJoins(
        np.concatenate([run.names[:, : n - 4].T.cpu().numpy(), last[final_pairs]]).astype(np.int64),
        np.concatenate([run.lengths[:, : n - 4].T.cpu().numpy(), final_lengths]),
        last[final[:, 0].astype(np.int64)].astype(np.int64),
        final[:, 1],
        int(run.counters[ROWS_READ.value]) + n,
    )


def _require_memory(
    distances: np.ndarray | torch.Tensor, method: JoiningMethod, overwrite: bool, device: torch.device
) -> None:
    """Copies are asked for before anything is allocated."""
    n, size = len(distances), distances.dtype.itemsize
    there = overwrite and isinstance(distances, torch.Tensor)
    need, free = (
        (not there) * n * (n + 16) * size + (method == "bionj") * n * (n + 16) * size,
        free_bytes(device),
    )
    if need > free:
        raise InputError(
            f"{method} of {n:,} taxa needs {need / 1e9:.1f} GB on the GPU, {free / 1e9:.1f} GB are free",
            hint="Use the CPU, or neighbour joining, which keeps one matrix.",
        )
