"""The device of the distance kernels, and matrices on it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch

from phloem.hardware.gpu_device import find_device


def programs(device: torch.device, per_processor: int) -> int:
    """Programs that run at the same time and may wait for each other (the interpreter runs one at a time)."""
    if device.type != "cuda":
        return 1
    return per_processor * torch.cuda.get_device_properties(device).multi_processor_count


def visible_devices() -> list[torch.device]:
    """All GPUs that this process sees; the CPU in Triton's interpreter."""
    if torch.cuda.is_available():
        return [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    return [find_device()]


def on_device(device: torch.device) -> AbstractContextManager:
    """Kernels launched within run on this device."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def float_type(precision: str) -> torch.dtype:
    """Of "float32" or "float64"."""
    return torch.float64 if precision == "float64" else torch.float32


def free_bytes(device: torch.device) -> int:
    """Memory that tensors may still take; without a GPU no limit is known."""
    if device.type != "cuda":
        return 1 << 62
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + kept


def launch_options(device: torch.device, registers: int) -> dict[str, int | bool]:
    """All programs resident; products and sums rounded one by one, as on the CPU."""
    if device.type != "cuda":
        return {}
    limit = {"maxnreg": registers} if registers and torch.version.hip is None else {}
    return {"launch_cooperative_grid": True, "enable_fp_fusion": False, **limit}


def as_work_matrix(
    distances: np.ndarray | torch.Tensor, device: torch.device, overwrite: bool
) -> torch.Tensor:
    """A matrix on the device that may be overwritten: (n, n rounded up to a multiple of 16)."""
    source = torch.from_numpy(distances) if isinstance(distances, np.ndarray) else distances
    n = len(source)
    if (
        overwrite and source.device == device and source.stride(1) == 1 and source.stride(0) % 16 == 0
        and isinstance(distances, torch.Tensor)
    ):  # fmt: skip
        return torch.as_strided(source, (n, source.stride(0)), (source.stride(0), 1))
    work = torch.empty((n, -(-n // 16) * 16), dtype=source.dtype, device=device)
    work[:, :n].copy_(source)
    return work


BLOCK_BYTES = 1 << 27  # of rows that travel together
TILE = 4096


def square_on_device(entries: np.ndarray, n: int) -> torch.Tensor:
    """(n, n) symmetric matrix with zero diagonal from data.distance_triangle's entries.

    Its rows are a multiple of 16 entries apart, so that linkage_merges may overwrite it.
    """
    device, width = find_device(), -(-n // 16) * 16
    work = torch.empty((n, width), dtype=torch.from_numpy(entries[:0]).dtype, device=device)
    rows = max(1, BLOCK_BYTES // (n * entries.itemsize))
    for first in range(0, n, rows):
        last = min(first + rows, n)
        block = np.zeros((last - first, last), entries.dtype)
        for i in range(first, last):
            block[i - first, :i] = entries[i * (i - 1) // 2 : i * (i + 1) // 2]
        work[first:last, :last].copy_(torch.from_numpy(block))
    for i in range(0, n, TILE):
        for j in range(0, i, TILE):
            work[j : j + TILE, i : min(i + TILE, n)] = work[i : i + TILE, j : j + TILE].T
        corner = work[i : i + TILE, i : min(i + TILE, n)].tril(-1)
        work[i : i + TILE, i : min(i + TILE, n)] = corner + corner.T
    return work[:, :n]
