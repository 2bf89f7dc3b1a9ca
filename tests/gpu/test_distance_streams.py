"""Matrices larger than the memory for them, and rows dealt to several devices."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from gpu.random_sequences import formula, measured, sequences  # noqa: E402
from phloem.clustering.gpu import alignment as gpu_distance_streams  # noqa: E402
from phloem.clustering.gpu.alignment import fill_triangle  # noqa: E402
from phloem.data.distance_matrix import DistanceTriangle  # noqa: E402
from phloem.hardware.gpu_device import find_device  # noqa: E402


def streamed(codes: np.ndarray, devices: int, memory: int | None) -> np.ndarray:
    n = len(codes)
    entries = np.zeros(n * (n - 1) // 2, np.float32)
    told: list[int] = []
    status = fill_triangle(
        codes, np.eye(4, dtype=int), True, formula("jc69"), entries, [find_device()] * devices, memory,
        lambda done, total: told.append(done),
    )  # fmt: skip
    assert status[1] == 0 and told == sorted(told) and told[-1] == n
    return np.tril(DistanceTriangle(tuple(map(str, range(n))), entries).matrix().values)


@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize("memory", [None, 64 * 200 * 4])
def test_streamed_rows_are_the_same_matrix(devices, memory):
    codes = sequences(200, 40, 4, 3)
    whole = measured(codes, 4, formula("jc69"), dtype=torch.float32)[0]
    assert np.array_equal(streamed(codes, devices, memory), np.tril(whole, -1))


def test_no_block_exceeds_the_memory_for_it(monkeypatch):
    codes, limit, made, empty = sequences(200, 40, 4, 3), 64 * 200 * 4, [], torch.empty

    def watched(*arguments, **options):
        array = empty(*arguments, **options)
        if array.dtype == torch.float32:
            made.append(array.nbytes)
        return array

    monkeypatch.setattr(gpu_distance_streams.torch, "empty", watched)
    streamed(codes, 2, limit)
    assert made and max(made) <= limit < 200 * 200 * 4
    made.clear()
    streamed(codes, 1, None)
    assert max(made) == 200 * 200 * 4
