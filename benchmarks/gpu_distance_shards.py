"""UPGMA of one matrix spread by rows over all GPUs of a host, next to one GPU.

    python benchmarks/gpu_distance_shards.py [--sizes N ...] [--checks N ...] [--seconds S] [--csv FILE]

Matrices are made in place on the devices, each entry from its two numbers alone. First, merges of all kinds
of input are compared with those of one device, bit for bit; on a red check the exit status is 1. Then times:
of one call from bands to merges in host memory, kernels compiled. A size that does not fit one GPU runs on
all; one that does not fit all is named and left out, as is what is left after --seconds. Writes
results/gpu_distance_shards.csv beside this file.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import triton
import triton.language as tl

from phloem.clustering.gpu.device import on_device, visible_devices
from phloem.clustering.gpu.linkage import linkage_merges
from phloem.clustering.gpu.shards import linkage_merges_sharded
from phloem.clustering.gpu.shards_bands import bands_of_rows, devices_for
from phloem.clustering.gpu.shards_device import ShardTiling
from phloem.errors import PhloemError

RESULTS = Path(__file__).parent / "results" / "gpu_distance_shards.csv"
KINDS = ("uniform", "tree-like", "counts", "copies")
SMALL = ShardTiling(finish=0, buffer=2**20)  # rows travel in many chunks, all rounds in bands
START = time.perf_counter()


@triton.jit
def _number(i, j, seed):
    """A number in (0, 1] for the pair of two numbers; multiples of 2^-24."""
    x = (tl.minimum(i, j) * 2654435761 + tl.maximum(i, j) * 2246822519 + seed) & 0xFFFFFFFF
    x = ((x ^ (x >> 16)) * 1103515245) & 0xFFFFFFFF
    x = ((x ^ (x >> 13)) * 1664525) & 0xFFFFFFFF
    return (((x ^ (x >> 16)) >> 8) + 1).to(tl.float32) * (1.0 / 16777216)


@triton.jit(do_not_specialize=["first", "n"])
def fill_rows(out, ld, first, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Rows first, first + 1, … of a symmetric matrix with a zero diagonal."""
    i = first + tl.program_id(0) + tl.zeros((BLOCK,), tl.int64)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK) + tl.zeros((BLOCK,), tl.int64)
    value = _number(i, j, 1)
    if KIND == 1:  # a binary tree whose tips are shuffled, each distance 0 to 20 % too long
        x = ((i * 40503) & 0xFFFFF) ^ ((j * 40503) & 0xFFFFF)
        level = tl.zeros((BLOCK,), tl.float32)
        for k in tl.static_range(20):
            level += ((x >> k) > 0).to(tl.float32)
        value = 0.05 * level * (1 + 0.2 * value)
    if KIND == 2:  # ties in plenty
        value = 1 + tl.floor(value * 20)
    if KIND == 3:  # each row three times
        value = tl.where(i // 3 == j // 3, 0.0, _number(i // 3, j // 3, 2))
    row = tl.program_id(0).to(tl.int64) * ld
    tl.store(out + row + j, tl.where(i == j, 0.0, value).to(out.dtype.element_ty), mask=j < n)


def filler(kind: str) -> Callable[[torch.Tensor, int], None]:
    def fill(band: torch.Tensor, first: int) -> None:
        rows, n = band.shape
        with on_device(band.device):
            fill_rows[(rows, -(-n // 1024))](band, band.stride(0), first, n, KINDS.index(kind), 1024)

    return fill


def made(kind: str, n: int, devices: list[torch.device]) -> list[torch.Tensor]:
    return bands_of_rows(n, devices, torch.float32, filler(kind))


def synchronize(devices: list[torch.device]) -> None:
    for device in devices:
        if device.type == "cuda":
            torch.cuda.synchronize(device)


def same(found: tuple, expected: tuple) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(found, expected, strict=True))


def checks(sizes: list[int], devices: list[torch.device]) -> bool:
    """All kinds of input on all devices (two bands on one, where there is one only)."""
    spread, green = devices if len(devices) > 1 else devices * 2, True
    small, *large = sorted(sizes)
    work = [(kind, small, tiling) for kind in KINDS for tiling in (SMALL, ShardTiling(finish=small // 3))]
    work += [(kind, n, ShardTiling(finish=n // 3)) for n in large for kind in KINDS]
    work += [(kind, n, ShardTiling(finish=0)) for n in large for kind in KINDS[:2]]
    for kind, n, tiling in work:
        name = f"{kind} {n:,} finish {tiling.finish:,}"
        try:
            expected = linkage_merges(made(kind, n, devices[:1])[0], overwrite=True)
            start = time.perf_counter()
            found = linkage_merges_sharded(made(kind, n, spread), tiling=tiling)
            passed = same(found, expected)
            note = f"{found[3]} rounds, {time.perf_counter() - start:.2f} s"
        except Exception:
            passed, note = False, traceback.format_exc(limit=-4)
        green &= passed
        print(f"check {name}: {'passed' if passed else 'FAILED'} ({note})", flush=True)
    return green


def link_speed(devices: list[torch.device]) -> None:
    """Copies between the first two devices: right, and how fast."""
    if len(devices) < 2:
        return
    there, back = (torch.empty(2**26, device=device) for device in devices[:2])
    there.uniform_()
    for _ in range(2):
        synchronize(devices)
        start = time.perf_counter()
        back.copy_(there)
        synchronize(devices)
        seconds = time.perf_counter() - start
    right = bool(torch.equal(back.cpu(), there.cpu()))
    print(f"copy between GPUs: {2**28 / seconds / 1e9:.0f} GB/s, {'right' if right else 'WRONG'}", flush=True)


def row(kind: str, n: int, devices: list[torch.device]) -> tuple:
    """(work, input, taxa, devices, seconds to fill, seconds, rounds, peak GB on each device, notes)."""
    for device in devices:
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
    start = time.perf_counter()
    bands = made(kind, n, devices)
    synchronize(devices)
    filled = time.perf_counter()
    if len(bands) == 1:
        merges = linkage_merges(bands[0], overwrite=True)
    else:
        merges = linkage_merges_sharded(bands)
    end = time.perf_counter()
    peaks = [torch.cuda.max_memory_allocated(d) / 1e9 if d.type == "cuda" else 0.0 for d in devices]
    note = f"height {merges[2][-1]:.9g}"
    return (
        "upgma", kind, n, len(bands), filled - start, end - filled, merges[3],
        " ".join(f"{peak:.1f}" for peak in peaks), note,
    )  # fmt: skip


def rows(sizes: list[int], devices: list[torch.device], seconds: float):
    for n in sizes:
        try:
            alone = len(devices_for(n, 4, devices=devices)[0]) == 1
        except PhloemError as error:
            print(error, flush=True)
            continue
        spreads = [devices[:1], devices] if alone else [devices]
        for kind in KINDS[:2]:
            for spread in spreads if len(devices) > 1 else spreads[:1]:
                if time.perf_counter() - START > seconds:
                    print(f"{n:,} {kind} on {len(spread)} left out: no time left", flush=True)
                    continue
                try:
                    yield row(kind, n, spread)
                except Exception:
                    print(f"{n:,} {kind} on {len(spread)}: {traceback.format_exc(limit=-4)}", flush=True)
                if devices[0].type == "cuda":
                    torch.cuda.empty_cache()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[20_000, 60_000, 100_000, 200_000, 260_000, 300_000]
    )
    parser.add_argument("--checks", type=int, nargs="+", default=[1500, 20_000])
    parser.add_argument("--seconds", type=float, default=125.0)
    parser.add_argument("--csv", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    devices = visible_devices()
    link_speed(devices)
    if not checks(arguments.checks, devices):
        return 1
    header = ["work", "input", "taxa", "GPUs", "fill_s", "seconds", "rounds", "peak_GB", "notes"]
    name = torch.cuda.get_device_name() if devices[0].type == "cuda" else "interpreter"
    arguments.csv.parent.mkdir(exist_ok=True)
    with arguments.csv.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*header, "device", "torch", "triton"])
        print(*header, sep="\t")
        for found in rows(arguments.sizes, devices, arguments.seconds):
            cells = [f"{x:.3f}" if isinstance(x, float) else x for x in found]
            writer.writerow([*cells, name, torch.__version__, triton.__version__])
            file.flush()
            print(*cells, sep="\t", flush=True)
    print(f"{time.perf_counter() - START:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
