"""The GPU that every engine runs on, and noticing that its kernels are about to be compiled."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import RLock

import numpy as np
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


def require_gpus(n: int) -> None:
    """DeviceError unless this process sees so many GPUs; Triton's interpreter stands for any number."""
    there = torch.cuda.device_count() if find_device().type == "cuda" else n
    if not 0 < n <= there:
        raise DeviceError(
            f"{n} GPUs are asked for, and this process sees {there}",
            hint="CUDA_VISIBLE_DEVICES says which it may use.",
        )


def on_gpu(k: int) -> AbstractContextManager:
    """A context in which GPU k of those that this process sees is the present one; without a GPU it does
    nothing."""
    return torch.cuda.device(k) if torch.cuda.is_available() else nullcontext()


def products(n: int) -> Callable[[], float]:
    """Products of two pairs of n × n matrices in float64 on the present GPU, for timing; they are waited
    for."""
    one = torch.full((n, n), 1.0 / n, dtype=torch.float64, device=find_device())
    return lambda: float((one @ one @ one)[0, 0])


@contextmanager
def memory_errors() -> Iterator[None]:
    """What PyTorch says when memory runs out, as a DeviceError."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise DeviceError(f"the GPU's memory does not hold this problem: {error}") from error


def own_stream(gpu: int | None = None) -> Callable[[], AbstractContextManager]:
    """A context, to be entered again and again by any thread, in which launches and copies come in an order
    of their own; without a GPU it does nothing. gpu: its number among those that this process sees, which is
    the present device there (find_device); None is the one that is present now."""
    if not torch.cuda.is_available():
        return nullcontext
    stream = torch.cuda.Stream(gpu)
    return lambda: torch.cuda.stream(stream)


one_at_a_time = RLock()
"""Of threads that capture launches, or make room: captures do not bear another's."""


@contextmanager
def captured(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    """Capture what is launched; other threads may go on launching meanwhile. Python's collector of garbage
    waits: a graph that it frees meanwhile, of an engine that nobody holds any more, would spoil the
    capture."""
    with one_at_a_time:
        collecting = gc.isenabled()
        gc.disable()
        try:
            torch.cuda.synchronize()
            stream = torch.cuda.current_stream()  # the default one cannot be captured
            with torch.cuda.stream(torch.cuda.Stream() if stream == torch.cuda.default_stream() else stream):
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    yield
                finally:
                    graph.capture_end()
        finally:
            if collecting:
                gc.enable()


def graph_launcher(device: torch.device) -> tuple[np.ndarray, np.ndarray]:
    """(2,) address of cuGraphLaunch, and the stream that graphs are launched in; and (1,) the word by which
    threads that launch on this GPU take turns: those of another GPU need not wait."""
    if device.type != "cuda":
        return np.zeros(2, np.int64), _turns(device)
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    address = ctypes.cast(library.cuGraphLaunch, ctypes.c_void_p).value
    stream = torch.cuda.current_stream(device).cuda_stream
    return np.array([int(address or 0), stream], np.int64), _turns(device)


@cache
def _turns(device: torch.device) -> np.ndarray:
    return np.zeros(1, np.int64)


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
