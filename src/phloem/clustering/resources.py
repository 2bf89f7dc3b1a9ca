"""What distances and trees of them take: which device, how much memory; asked before any of it is taken."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from phloem.errors import InputError, require_choice
from phloem.hardware.gpu_presence import gpu_is_here, require_torch, why_not_gpu
from phloem.hardware.machine import detect_hardware

Device = Literal["auto", "cpu", "gpu"]
GPU_WORTH_SECONDS = 5.0  # loading PyTorch takes about as long


def select_distance_device(
    requested: str, cpu_seconds: float, missing: str | None = None
) -> tuple[Literal["cpu", "gpu"], str]:
    """Where distances, linkage or neighbour joining run, and why.

    requested: "auto", "cpu" or "gpu". cpu_seconds: forecast for two cores. missing: what the GPU kernels lack
    for this task. Raises InputError or DeviceError as select_engine does.
    """
    require_choice("device", requested, get_args(Device))
    if requested == "gpu":
        if missing is not None:
            raise InputError(f"the GPU kernels have no {missing}", hint="Choose the CPU.")
        require_torch()
        return "gpu", "GPU asked for"
    if requested == "cpu":
        return "cpu", "CPU asked for"
    if missing is not None:
        return "cpu", f"CPU chosen: the GPU kernels have no {missing}"
    if not gpu_is_here():
        return "cpu", f"CPU chosen: {why_not_gpu()}"
    if cpu_seconds < GPU_WORTH_SECONDS:
        return "cpu", f"CPU chosen: about {cpu_seconds:.1g} s, less than a GPU takes to start"
    return "gpu", f"GPU chosen: about {cpu_seconds:.0f} s on two cores"


ONE_CALL = 2048  # so few taxa are clustered in one compiled call, in a square of their own
LINKAGE = ("upgma", "wpgma", "single", "complete")
BATCH_ROWS = 256  # rows of a text that are parsed before they are folded into the triangle


def forecast_bytes(
    n: int,
    method: str | None,
    precision: Literal["float32", "float64"],
    *,
    cophenetic: bool = False,
) -> int:
    """Bytes that n taxa take beyond the program itself, from reading or measuring to the tree.

    method: a linkage method works inside the triangle below the diagonal, of up to ONE_CALL taxa in a square
    of its own; nj and unj inside the square, bionj has a second one for variances; None is the square of
    distances alone. cophenetic: the distances are kept beside what the tree is made in.
    """
    size = np.dtype(precision).itemsize
    entries = n * (n - 1) // 2 if method in LINKAGE else n * n
    copies = 1 + (method == "bionj") + (method is not None and cophenetic)
    if method in LINKAGE and method != "single" and n <= ONE_CALL:
        entries += n * n
    return copies * entries * size + min(n, BATCH_ROWS) * n * size


def require_memory(
    n: int,
    method: str | None,
    precision: Literal["float32", "float64"],
    source: str | None,
    *,
    cophenetic: bool = False,
) -> None:
    """Raise InputError, with numbers and a remedy, if the forecast exceeds what is available here."""
    need, free = (
        forecast_bytes(n, method, precision, cophenetic=cophenetic),
        detect_hardware().available_bytes,
    )
    if free is None or need <= free:
        return
    remedies = ["fewer taxa", "a machine with more memory"]
    if precision == "float64":
        remedies.insert(0, "--precision float32 (half of it)")
    if cophenetic:
        remedies.insert(0, "no cophenetic correlation")
    raise InputError(
        f"{n:,} taxa need {need / 1e9:,.1f} GB for distances in {precision}, {free / 1e9:,.1f} GB are there",
        file=source,
        hint=f"Use {', '.join(remedies[:-1])} or {remedies[-1]}.",
    )
