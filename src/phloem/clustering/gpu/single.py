"""Single linkage on a GPU: one launch, one merge after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import triton.language as tl

from phloem.clustering.gpu.device import launch_options, programs
from phloem.clustering.gpu.kernels.linkage_scan import NO_PLACE
from phloem.clustering.gpu.kernels.linkage_single import REPORTS, single_merges
from phloem.errors import NumericalError


@dataclass(frozen=True)
class SingleTiling:
    """scan: entries of a row in flight. lanes: clusters of a program looked at together."""

    scan: int = 4096
    lanes: int = 256
    warps: int = 8


def single_linkage(
    work: torch.Tensor, n: int, tiling: SingleTiling | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """(lower, upper, distance, 0) in order of merging, as on the CPU to the last bit.

    work: (n, rows a multiple of 16 entries apart) on the device, symmetric, infinite diagonal; overwritten.
    """
    tiling = tiling or SingleTiling()
    device, count = work.device, programs(work.device, 1)
    lanes = 1 << (count - 1).bit_length()
    nearest = torch.arange(n, dtype=torch.int32, device=device)
    distance = torch.zeros(n, dtype=work.dtype, device=device)
    alive = torch.ones(n, dtype=torch.uint8, device=device)
    joined = torch.zeros((2, n), dtype=torch.int32, device=device)
    merged = torch.zeros(n, dtype=work.dtype, device=device)
    values = torch.full((REPORTS * lanes,), torch.inf, dtype=work.dtype, device=device)
    places = torch.full((REPORTS * lanes,), NO_PLACE.value, dtype=torch.int32, device=device)
    counters = torch.zeros(2, dtype=torch.int32, device=device)
    single_merges[(count,)](
        work, work.stride(0), nearest, distance, alive, n, joined[0], joined[1], merged, values, places,
        counters, SCAN=tiling.scan, LANES=tiling.lanes, PROGRAMS=lanes,
        DTYPE=tl.float64 if work.dtype == torch.float64 else tl.float32,
        NATIVE=device.type == "cuda" and torch.version.hip is None,
        num_warps=tiling.warps, **launch_options(device, 0),
    )  # fmt: skip
    heights = merged[: n - 1].double().cpu().numpy()
    if int(counters[1]) != n - 1 or not np.all(np.isfinite(heights)):
        raise NumericalError("clustering met a distance that is not finite")
    lower, upper = joined[:, : n - 1].long().cpu().numpy()
    return lower, upper, heights, 0
