"""Whether this machine has a GPU that PyTorch may drive. Loads no framework."""

from __future__ import annotations

import os
from importlib.util import find_spec

from phloem.errors import DeviceError


def why_not_gpu() -> str:
    """The reason, as a clause."""
    if not _driver_is_here():
        return "no GPU here"
    if find_spec("torch") is None:
        return "the GPU needs PyTorch, which is not installed (pip install 'phloem[gpu]')"
    return "threads were asked for"


def gpu_is_here() -> bool:
    """A driver and PyTorch; whether they fit each other shows when the engine is built."""
    return _driver_is_here() and find_spec("torch") is not None


def _driver_is_here() -> bool:
    """NVIDIA's or AMD's."""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/kfd")


def require_torch() -> None:
    """DeviceError where PyTorch is missing."""
    if find_spec("torch") is None:
        raise DeviceError("the GPU needs PyTorch, which is not installed: pip install 'phloem[gpu]'")
