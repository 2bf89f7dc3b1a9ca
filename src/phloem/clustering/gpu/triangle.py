"""Distances kept once a pair on the host, as a square on the device."""

from __future__ import annotations

import numpy as np
import torch

from phloem.hardware.gpu_device import find_device

BLOCK_BYTES = 1 << 27  # of rows that travel together
TILE = 4096


def square_on_device(entries: np.ndarray, n: int) -> torch.Tensor:
    """(n, n) symmetric matrix with zero diagonal from data.distance_triangle's entries.

    Its rows are a multiple of 16 entries apart, so that linkage_merges may overwrite it.
    """
    device, width = find_device(), -(-n // 16) * 16
    work = torch.empty((n, width), dtype=torch.from_numpy(entries[:0]).dtype, device=device)
    rows = max(1, BLOCK_BYTES // (n * entries.itemsize))
    for first in range(0, n, rows):
        last = min(first + rows, n)
        block = np.zeros((last - first, last), entries.dtype)
        for i in range(first, last):
            block[i - first, :i] = entries[i * (i - 1) // 2 : i * (i + 1) // 2]
        work[first:last, :last].copy_(torch.from_numpy(block))
    for i in range(0, n, TILE):
        for j in range(0, i, TILE):
            work[j : j + TILE, i : min(i + TILE, n)] = work[i : i + TILE, j : j + TILE].T
        corner = work[i : i + TILE, i : min(i + TILE, n)].tril(-1)
        work[i : i + TILE, i : min(i + TILE, n)] = corner + corner.T
    return work[:, :n]
