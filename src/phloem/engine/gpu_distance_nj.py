"""Exact neighbour joining on a GPU: one launch, the last four clusters on the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import triton.language as tl

from phloem.engine.gpu_device import find_device
from phloem.engine.gpu_distance_device import as_work_matrix, free_bytes, launch_options, programs
from phloem.errors import InputError, NumericalError
from phloem.kernels.reference.nj import JoiningMethod, neighbour_joining
from phloem.kernels.triton.nj_exact import COUNTERS, ROWS_READ, TURN, nj_exact
from phloem.kernels.triton.nj_records import RING, UNTOLD, WORDS
from phloem.kernels.triton.nj_steps import (
    ABOVE_LOWER,
    ABOVE_UPPER,
    FIELDS,
    LOWER,
    NAME,
    REALS,
    RUN,
    SIZE,
    SLOT,
    SUMS,
    UPPER,
)

METHODS = {"nj": 0, "bionj": 1, "unj": 2}


@dataclass(frozen=True)
class JoiningTiling:
    """block: entries of a row in flight. small: never drop columns of fewer clusters. warps of a program.
    programs: at most so many, one a multiprocessor; None chooses by the number of taxa, since fewer programs
    understand each other faster. ahead: rows that so many joins would make due are scanned early."""

    block: int = 2048
    small: int = 512
    warps: int = 8
    programs: int | None = None
    ahead: float = 4.0


PROGRAMS = ((6_000, 32), (15_000, 96), (1 << 31, 128))  # up to so many taxa: measured on an H100


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
    tiling: JoiningTiling = JoiningTiling(),
) -> GpuJoins:
    """Exact neighbour joining, BIONJ or UNJ (reference.nj) of n ≥ 4 clusters.

    distances: (n, n) symmetric with zero diagonal, float32 or float64, in host memory or on the device, kept
    in its precision; sums, the criterion and branch lengths are float64. BIONJ keeps a second matrix.
    overwrite: see linkage_merges. InputError where the device's memory does not hold it.
    """
    device = distances.device if isinstance(distances, torch.Tensor) else find_device()
    n = len(distances)
    _require_memory(distances, method, overwrite, device)
    work = as_work_matrix(distances, device, overwrite)
    if not np.isfinite(float(work[:, :n].sum(dtype=torch.float64))):
        raise NumericalError("neighbour joining met a distance that is not finite")
    variances = work.clone() if method == "bionj" else work
    state, reals, counters = _run(work, variances, n, method, tiling)
    packed = counters.cpu().numpy()
    turn = int(packed[TURN.value])
    names, lengths = state[[LOWER.value, UPPER.value], : n - 4], reals[[ABOVE_LOWER.value, ABOVE_UPPER.value]]
    pairs, above = names.T.cpu().numpy().astype(np.int64), lengths[:, : n - 4].T.cpu().numpy()
    alive = torch.nonzero(reals[SUMS.value + turn, :n] > -torch.inf).ravel()[:4]
    slots, last = state[SLOT.value, alive].long(), state[NAME.value, alive].cpu().numpy()
    four, four_variances = (m[slots][:, alive].cpu().numpy() for m in (work, variances))
    sizes = reals[SIZE.value, alive].cpu().numpy()
    final_pairs, final_lengths, final = neighbour_joining(four, method, four_variances, sizes)
    return GpuJoins(
        np.concatenate([pairs, last[final_pairs].astype(np.int64)]),
        np.concatenate([above, final_lengths]),
        last[final[:, 0].astype(np.int64)].astype(np.int64),
        final[:, 1],
        int(packed[ROWS_READ.value]) + n,
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


def _run(work: torch.Tensor, variances: torch.Tensor, n: int, method: JoiningMethod, tiling: JoiningTiling):
    device, padded = work.device, -(-(n + 16) // 16) * 16
    state = torch.zeros((FIELDS, padded), dtype=torch.int32, device=device)
    for field in (SLOT, NAME):
        state[field.value, :n] = torch.arange(n, dtype=torch.int32, device=device)
    reals = torch.full((REALS, padded), -torch.inf, dtype=torch.float64, device=device)
    reals[SIZE.value] = 1.0
    usual = next(count for taxa, count in PROGRAMS if n <= taxa)
    count = min(tiling.programs or usual, programs(device, per_processor=1))
    lanes = -(-n // (RUN.value * count)) * RUN.value
    width = 1 << (max(lanes, count) - 1).bit_length()
    records = torch.full((RING.value, count, WORDS.value), UNTOLD.value, dtype=torch.int64, device=device)
    counters = torch.zeros(COUNTERS, dtype=torch.int32, device=device)
    nj_exact[(count,)](
        work, variances, work.stride(0), state, reals, records, padded, n, counters, tiling.ahead,
        BLOCK=tiling.block, WIDTH=width, SMALL=tiling.small, METHOD=METHODS[method],
        DTYPE=tl.float64 if work.dtype == torch.float64 else tl.float32,
        NATIVE=device.type == "cuda" and torch.version.hip is None,
        num_warps=tiling.warps, **launch_options(device, registers=0),
    )  # fmt: skip
    return state, reals, counters
