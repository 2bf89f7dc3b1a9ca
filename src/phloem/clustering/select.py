"""The only place that decides where distances and trees from them are computed, and says why."""

from __future__ import annotations

from typing import Literal, get_args

from phloem.errors import InputError, require_choice
from phloem.hardware.gpu_presence import gpu_is_here, require_torch, why_not_gpu

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
