"""How launches on a GPU and calls of an evaluator are timed."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch


def device_times(launch: Callable[[], None], repeats: int) -> np.ndarray:
    """(p20, p50, p80) in ms of a graph of the launches."""
    launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    taken = []
    for step in range(repeats + 5):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        if step >= 5:
            taken.append(start.elapsed_time(stop))
    return np.quantile(taken, (0.2, 0.5, 0.8))


def call_times(action: Callable[[], object], repeats: int) -> np.ndarray:
    taken = []
    for _ in range(repeats + 3):
        start = time.perf_counter()
        action()
        taken.append((time.perf_counter() - start) * 1e3)
    return np.quantile(taken[3:], (0.2, 0.5, 0.8))
