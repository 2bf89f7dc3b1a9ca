"""The GPU that every engine runs on, and noticing that its kernels are about to be compiled."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from triton import knobs
from triton.runtime.cache import FileCacheManager

from phloem.errors import DeviceError
from phloem.hardware.notice import compilation_begins

# The device that every GPU engine runs on.


def find_device() -> torch.device:
    """The GPU, or the CPU under Triton's interpreter (TRITON_INTERPRET=1); DeviceError otherwise."""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    if os.environ.get("TRITON_INTERPRET") == "1":
        return torch.device("cpu")
    raise DeviceError("PyTorch finds no GPU here", hint="Use the CPU, or TRITON_INTERPRET=1 for a trial.")


@contextmanager
def memory_errors() -> Iterator[None]:
    """What PyTorch says when memory runs out, as a DeviceError."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise DeviceError(f"the GPU's memory does not hold this problem: {error}") from error


@contextmanager
def captured(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    """Capture what is launched. Python's collector of garbage waits: a graph that it frees meanwhile, of an
    engine that nobody holds any more, would spoil the capture."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.graph(graph):
            yield
    finally:
        if collecting:
            gc.enable()


# Noticing that Triton is about to compile.


def announce_cache_misses() -> None:
    """Say so whenever a kernel is not in Triton's cache on disk; the cache itself stays the one there was.

    Triton's hook before a compilation is called for kernels that the cache holds, too. It asks the cache for
    the group of files of every kernel first, and compiles it where there is none. Its interpreter never asks.
    """

    class AnnouncedCache(knobs.cache.manager_class or FileCacheManager):  # type: ignore[misc]
        def get_group(self, filename: str) -> dict[str, str] | None:
            group = super().get_group(filename)
            if filename not in (group or {}):
                compilation_begins("gpu")
            return group

    knobs.cache.manager_class = AnnouncedCache
