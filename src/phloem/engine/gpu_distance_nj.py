"""Exact neighbour joining on a GPU: one launch, the last four clusters on the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import triton.language as tl

from phloem.engine.gpu_device import find_device
from phloem.engine.gpu_distance_device import as_work_matrix, launch_options, programs
from phloem.errors import NumericalError
from phloem.kernels.reference.nj import neighbour_joining
from phloem.kernels.triton.nj_exact import COUNTERS, ROWS_READ, SIDE, TURN, nj_exact
from phloem.kernels.triton.nj_steps import (
    ABOVE_LOWER,
    ABOVE_UPPER,
    FIELDS,
    LOWER,
    MESSAGES,
    NAME,
    NOTES,
    REALS,
    SLOT,
    UPPER,
    U,
)


@dataclass(frozen=True)
class JoiningTiling:
    """block: entries of a row in flight. small: never drop columns of fewer clusters. warps; per_processor:
    programs a multiprocessor runs; registers: limit for a thread, so that as many fit (0: none)."""

    block: int = 2048
    small: int = 512
    warps: int = 8
    per_processor: int = 1
    registers: int = 0


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
    *,
    overwrite: bool = False,
    tiling: JoiningTiling = JoiningTiling(),
) -> GpuJoins:
    """Exact neighbour joining (reference.nj) of n ≥ 4 clusters.

    distances: (n, n) symmetric with zero diagonal, float32 or float64, in host memory or on the device, kept
    in its precision; sums, the criterion and branch lengths are float64. overwrite: see linkage_merges.
    """
    device = distances.device if isinstance(distances, torch.Tensor) else find_device()
    work, n = as_work_matrix(distances, device, overwrite), len(distances)
    if not np.isfinite(float(work[:, :n].sum(dtype=torch.float64))):
        raise NumericalError("neighbour joining met a distance that is not finite")
    state, reals, counters = _run(work, n, tiling)
    packed = counters.cpu().numpy()
    side, turn = int(packed[SIDE.value]), int(packed[TURN.value])
    names, lengths = state[[LOWER.value, UPPER.value], : n - 4], reals[[ABOVE_LOWER.value, ABOVE_UPPER.value]]
    pairs, above = names.T.cpu().numpy().astype(np.int64), lengths[:, : n - 4].T.cpu().numpy()
    alive = torch.nonzero(reals[U.value + turn, :n] > -torch.inf).ravel()[:4]
    slots, last = state[SLOT.value + side, alive].long(), state[NAME.value + side, alive].cpu().numpy()
    four = work[slots][:, alive].cpu().numpy()
    final_pairs, final_lengths, final = neighbour_joining(four)
    return GpuJoins(
        np.concatenate([pairs, last[final_pairs].astype(np.int64)]),
        np.concatenate([above, final_lengths]),
        last[final[:, 0].astype(np.int64)].astype(np.int64),
        final[:, 1],
        int(packed[ROWS_READ.value]) + n,
    )


def _run(work: torch.Tensor, n: int, tiling: JoiningTiling):
    device, padded = work.device, -(-(n + 16) // 16) * 16
    state = torch.zeros((FIELDS, padded), dtype=torch.int32, device=device)
    for field in (SLOT, NAME):
        state[field.value, :n] = torch.arange(n, dtype=torch.int32, device=device)
    reals = torch.full((REALS, padded), -torch.inf, dtype=torch.float64, device=device)
    count = programs(device, tiling.per_processor)
    width = 1 << (count - 1).bit_length()
    messages = torch.zeros((2 * MESSAGES.value, width), dtype=torch.float64, device=device)
    notes = torch.full((2 * NOTES.value, width), -1, dtype=torch.int32, device=device)
    counters = torch.zeros(COUNTERS, dtype=torch.int32, device=device)
    nj_exact[(count,)](
        work, work.stride(0), state, reals, messages, notes, padded, n, counters,
        BLOCK=tiling.block, LANES=1 << (-(-n // count) - 1).bit_length(), PROGRAMS=width, SMALL=tiling.small,
        DTYPE=tl.float64 if work.dtype == torch.float64 else tl.float32,
        NATIVE=device.type == "cuda" and torch.version.hip is None,
        num_warps=tiling.warps, **launch_options(device, tiling.registers),
    )  # fmt: skip
    return state, reals, counters
