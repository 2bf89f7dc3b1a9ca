"""Exact neighbour joining on a GPU, the last four clusters on the host."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from phloem.clustering.gpu.device import as_work_matrix, free_bytes
from phloem.clustering.gpu.kernels.nj_exact import ROWS_READ
from phloem.clustering.gpu.kernels.nj_steps import NAME, SIZE, SLOT, SUMS
from phloem.clustering.gpu.nj_stages import USUAL, JoiningStages, JoiningTiling
from phloem.clustering.reference.joining import neighbour_joining
from phloem.clustering.settings import JoiningMethod
from phloem.errors import InputError, NumericalError
from phloem.hardware.gpu_device import find_device


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
