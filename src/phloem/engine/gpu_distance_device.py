"""The device of the distance kernels, and matrices on it."""

from __future__ import annotations

import numpy as np
import torch


def programs(device: torch.device, per_processor: int) -> int:
    """Programs that run at the same time and may wait for each other (the interpreter runs one at a time)."""
    if device.type != "cuda":
        return 1
    return per_processor * torch.cuda.get_device_properties(device).multi_processor_count


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
