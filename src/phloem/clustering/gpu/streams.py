"""Distances of more sequences than fit a device: blocks of rows, dealt to all devices, to host memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from phloem.clustering.formula import Formula
from phloem.clustering.gpu.alignment import PADDING, EncodedSequences, SequenceCodes
from phloem.clustering.gpu.device import free_bytes, visible_devices

ROWS = 4096  # of a block, at most


def _fill_from(
    sequences: Sequence[EncodedSequences],
    formula: Formula,
    entries: np.ndarray,
    memory: int | None,
    progress: Callable[[int, int], None] | None,
) -> np.ndarray:
    """Fill a triangle (data.distance_triangle) in host memory that need not fit a device.

    sequences: the same, encoded on each device; every block of rows is the work of one of them, so that the
    result does not depend on how many there are. memory: bytes for a block on a device; None takes half
    of what is free. Returns the status of `fill`.
    """
    n, total = sequences[0].n, np.array([0, 0, -1], np.int64)
    dtype = torch.float64 if entries.dtype == np.float64 else torch.float32
    if memory is None:
        memory = min(free_bytes(s.device) for s in sequences) // 2
    share = -(-n // (len(sequences) * PADDING)) * PADDING
    rows = min(ROWS, share, max(1, memory // (n * entries.itemsize) // PADDING) * PADDING)
    blocks = [torch.empty(min(rows, n) * n, dtype=dtype, device=s.device) for s in sequences]
    for start in range(0, n, rows * len(sequences)):
        firsts = range(start, min(start + rows * len(sequences), n), rows)
        launched = [
            each.fill(block, formula, first, min(first + rows, n), mirror=False)
            for each, block, first in zip(sequences, blocks, firsts)
        ]
        for block, first, on_its_way in zip(blocks, firsts, launched):
            last, status = min(first + rows, n), on_its_way.cpu().numpy()
            total = np.array([total[0] + status[0], total[1] + status[1], max(total[2], status[2])])
            part = torch.from_numpy(entries[first * (first - 1) // 2 : last * (last - 1) // 2])
            part.copy_(block[: len(part)])
            if progress is not None:
                progress(last, n)
    return total


def fill_triangle(
    codes: np.ndarray,
    weights: np.ndarray,
    nucleotides: bool,
    formula: Formula,
    entries: np.ndarray,
    devices: Sequence[torch.device] | None = None,
    memory: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Fill a triangle (data.distance_triangle) from codes and weights as SequenceCodes takes them.

    On all visible devices; memory: bytes for a block of rows on each, None takes half of what is free.
    progress(rows done, rows) after each block.
    """
    encoded = [
        SequenceCodes(codes, weights, nucleotides, device).encoded(formula)
        for device in devices or visible_devices()
    ]
    return _fill_from(encoded, formula, entries, memory, progress)
