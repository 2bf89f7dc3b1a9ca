"""UPGMA, WPGMA, single and complete linkage on a GPU: one launch from matrix to merges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import triton.language as tl

from phloem.clustering.gpu.device import as_work_matrix, free_bytes, launch_options, programs
from phloem.clustering.gpu.kernels.linkage_rounds import COUNTERS, MADE, ROUNDS, linkage_rounds
from phloem.clustering.gpu.kernels.linkage_single import REPORTS, single_merges
from phloem.clustering.gpu.kernels.linkage_state import FIELDS, HEIGHT_INTO, INTO, NO_PLACE, REALS
from phloem.errors import DeviceError, NumericalError
from phloem.hardware.gpu_device import find_device


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


LIST_BYTES = 400  # of lists and of their sorting, a taxon
UNASKED_BYTES = 1 << 23  # so much is taken to be there


@dataclass(frozen=True)
class LinkageTiling:
    """scan: entries of a row in flight. pairs, merge: rows and columns of a merging step. columns: of a
    rewriting step. lanes: clusters a step of bookkeeping looks at. dense, loose, small: when to rewrite
    (linkage_rounds). warps; per_processor: programs a multiprocessor runs; registers: limit for a thread,
    so that as many programs fit."""

    scan: int = 2048
    pairs: int = 16
    merge: int = 128
    columns: int = 1024
    lanes: int = 128
    dense: int = 8
    loose: int = 2
    small: int = 512
    warps: int = 8
    per_processor: int = 2
    registers: int = 128


SINGLE_PRECISION = LinkageTiling()
DOUBLE_PRECISION = LinkageTiling(merge=64, columns=512, per_processor=1, registers=0)


def linkage_merges(
    distances: np.ndarray | torch.Tensor,
    method: str = "upgma",
    *,
    overwrite: bool = False,
    sizes: np.ndarray | None = None,
    tiling: LinkageTiling | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """(lower, upper, distance, rounds) as clustering.linkage.Merges wants them, ordered by those three.

    Single linkage: in order of merging, 0 rounds. DeviceError where the device's memory is too small.
    distances: (n, n) symmetric, non-negative, float32 or float64, in host memory or on the device, n ≥ 2.
    overwrite: work inside a matrix that is on the device already (rows a multiple of 16 entries apart).
    sizes: (n,) leaves of clusters that were made before; their averages are not looked at for a common unit.
    """
    device = distances.device if isinstance(distances, torch.Tensor) else find_device()
    n = len(distances)
    _require_memory(distances, n, device, overwrite)
    work = as_work_matrix(distances, device, overwrite)
    if method == "single":
        work.diagonal().fill_(torch.inf)
        return single_linkage(work, n)
    unit = _counting_unit(work[:, :n]) if method != "complete" and sizes is None else 0.0
    if unit > 0:
        work[:, :n].div_(unit).round_()
    tiling = tiling or (DOUBLE_PRECISION if work.dtype == torch.float64 else SINGLE_PRECISION)
    lower, upper, distance, rounds, made = _ordered(
        *_run(work, n, method, unit > 0 and method == "upgma", sizes, tiling)
    )
    distance *= unit or 1.0
    if made != n - 1 or not np.all(np.isfinite(distance)):
        raise NumericalError("clustering met a distance that is not finite")
    return lower, upper, distance, rounds


def _require_memory(
    distances: np.ndarray | torch.Tensor, n: int, device: torch.device, overwrite: bool
) -> None:
    """DeviceError with the numbers where the matrix that is worked in, or the lists, will not fit."""
    inside = overwrite and isinstance(distances, torch.Tensor) and distances.device == device
    entries = 0 if inside else n * -(-n // 16) * 16 * distances.itemsize
    need = entries + n * LIST_BYTES
    free = free_bytes(device) if need > UNASKED_BYTES else need  # the driver takes its time
    if need > free:
        raise DeviceError(
            f"linkage of {n} taxa needs {need / 1e9:.2f} GB of device memory, {free / 1e9:.2f} GB are free",
            hint="Work inside a matrix that is there already (overwrite=True), or in float32.",
        )


def _run(
    work: torch.Tensor, n: int, method: str, sums: bool, leaves: np.ndarray | None, tiling: LinkageTiling
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    device, dtype = work.device, work.dtype
    padded = work.stride(0) + 16
    state = torch.zeros((FIELDS + 1, padded), dtype=torch.int32, device=device)
    counters = state[FIELDS, :COUNTERS]
    alive = torch.empty((2, padded), dtype=torch.uint8, device=device)
    reals = torch.empty((REALS, padded), dtype=dtype, device=device)
    sizes = torch.ones((2, padded), dtype=torch.float64, device=device)
    if leaves is not None:
        sizes[0, :n] = torch.from_numpy(leaves).to(device)
    count = programs(device, tiling.per_processor)
    survivors = torch.empty(count, dtype=torch.int32, device=device)
    linkage_rounds[(count,)](
        work, work.stride(0), state, alive, reals, sizes, padded, n, counters, survivors,
        SCAN=tiling.scan, PAIR_ROWS=tiling.pairs, MERGE=tiling.merge,
        COLUMNS=tiling.columns, LANES=tiling.lanes, PROGRAMS=1 << (count - 1).bit_length(),
        DENSE=tiling.dense, LOOSE=tiling.loose, SMALL=tiling.small,
        DTYPE=tl.float64 if dtype == torch.float64 else tl.float32,
        WEIGHTING=2 if sums else ("upgma", "wpgma", "complete").index(method), SUMS=sums,
        NATIVE=device.type == "cuda" and torch.version.hip is None,
        num_warps=tiling.warps, **launch_options(device, tiling.registers),
    )  # fmt: skip
    return state[INTO.value, 1:n], reals[HEIGHT_INTO.value, 1:n], counters


def _ordered(
    lower: torch.Tensor, distance: torch.Tensor, counters: torch.Tensor
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, int]:
    """(lower, upper, distance) in order of (distance, lower, upper), rounds, merges; one copy to the host.

    lower, distance: in order of upper: every name but 0 is the upper one of one merge.
    """
    single = distance.dtype == torch.float32
    if single:  # the bits of numbers that are not negative are in their order
        keys = torch.stack([lower, distance.view(torch.int32)], dim=1).view(torch.int64).ravel()
        keys, order = torch.sort(keys, stable=True)
    else:
        order = torch.sort(lower, stable=True).indices
        keys, last = torch.sort(distance[order], stable=True)
        keys, order = keys.view(torch.int64), order[last]
    packed = torch.cat([keys, order, lower, counters]).cpu().numpy()
    bits, place, lowers, counted = np.split(packed, len(lower) * np.arange(1, 4))
    distances = bits.view(np.float32)[1::2].astype(np.float64) if single else bits.view(np.float64)
    return lowers[place], place + 1, distances, int(counted[ROUNDS.value]), int(counted[MADE.value])


def _counting_unit(distances: torch.Tensor) -> float:
    """reference.linkage.counting_unit on the device."""
    n = len(distances)
    if distances.dtype != torch.float64 or not torch.any(distances[0] > 0):
        return 0.0
    rows = max(1, 2**24 // n)
    smallest, largest = torch.inf, 0.0
    for part in distances.split(rows):
        smallest = min(smallest, float(torch.where(part > 0, part, torch.inf).min()))
        largest = max(largest, float(part.max()))
    for unit in (1.0, smallest):
        if largest / unit * (n * n / 4) < 2.0**52 and all(
            _whole(part, unit) for part in distances.split(rows)
        ):
            return unit
    return 0.0


def _whole(part: torch.Tensor, unit: float) -> bool:
    count = part / unit
    return bool(torch.all((count - count.round()).abs() <= 4 * torch.finfo(torch.float64).eps * count))
