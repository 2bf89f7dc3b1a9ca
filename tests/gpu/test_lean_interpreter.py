"""What lean_interpreter.py changes leaves the interpreter's results as they are."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from phloem.hardware.gpu_device import find_device  # noqa: E402


@triton.jit
def _smaller(value, place, other, other_place):
    first = (value < other) | ((value == other) & (place < other_place))
    return tl.where(first, value, other), tl.where(first, place, other_place)


@triton.jit
def _smallest(values, found, AXIS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    place = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    low, where = tl.reduce((tl.load(values + place), place), AXIS, _smaller)
    lane = tl.arange(0, COLUMNS if AXIS == 0 else ROWS)
    tl.store(found + 2 * lane, low)
    tl.store(found + 2 * lane + 1, where)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_reduction_of_pairs(axis):
    """Ties included: the smallest of 1 to 5, and the first place where it is."""
    values = np.random.default_rng(4).integers(1, 6, (8, 16)).astype(np.int32)
    found = torch.zeros((values.shape[1 - axis], 2), dtype=torch.int32, device=find_device())
    _smallest[(1,)](torch.from_numpy(values).to(found.device), found, axis, 8, 16)
    places = np.arange(values.size).reshape(values.shape)
    right = np.stack(
        [values.min(axis), np.take_along_axis(places, values.argmin(axis, keepdims=True), axis).ravel()], 1
    )
    assert np.array_equal(found.cpu().numpy(), right)
    values[tuple(np.argwhere(values == values.min())[0])] -= 1  # negative control
    _smallest[(1,)](torch.from_numpy(values).to(found.device), found, axis, 8, 16)
    assert not np.array_equal(found.cpu().numpy(), right)
