"""The device that every GPU engine runs on."""

from __future__ import annotations

import os

import torch

from phloem.errors import DeviceError


def find_device() -> torch.device:
    """The GPU, or the CPU under Triton's interpreter (TRITON_INTERPRET=1); DeviceError otherwise."""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if os.environ.get("TRITON_INTERPRET") == "1":
        return torch.device("cpu")
    raise DeviceError("PyTorch finds no GPU here", hint="Use the CPU, or TRITON_INTERPRET=1 for a trial.")
