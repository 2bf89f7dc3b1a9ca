"""What lean_interpreter.py changes leaves the interpreter's results as they are."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from gpu.conftest import INTERPRETED  # noqa: E402
from phloem.hardware.gpu_device import find_device  # noqa: E402

# A device rounds and signs its zeros in its own way; there is nothing of the interpreter to test there.
pytestmark = pytest.mark.skipif(not INTERPRETED, reason="about Triton's interpreter alone")


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


@triton.jit
def _mixed(x, i, found, N: tl.constexpr):
    lane = tl.arange(0, N)
    a, k = tl.load(x + lane), tl.load(i + lane)
    tl.store(found + lane, a * 2 + k)
    tl.store(found + N + lane, 0.0 * a)
    tl.store(found + 2 * N + lane, -0.0 * a)
    tl.store(found + 3 * N + lane, k // 2 + k % 3)
    tl.store(found + 4 * N + lane, k * 0.1)
    tl.store(found + 5 * N + lane, tl.where((k > 2) & (a < 1.5), a, 1 - a))
    tl.store(found + 6 * N + lane, (k == 3) | (a > 1))
    tl.store(found + 7 * N + lane, 3 - k + tl.load(i) * 2)


def test_numbers_and_types_beside_each_other():
    """What is remembered of a number beside a block holds for other blocks and for the number alone."""
    rng = np.random.default_rng(5)
    for n in (8, 16, 8):
        a, k = rng.normal(1.5, 1.0, n), rng.integers(0, 9, n).astype(np.int32)
        found = torch.empty((8, n), dtype=torch.float64, device=find_device())
        _mixed[(1,)](torch.from_numpy(a).to(found.device), torch.from_numpy(k).to(found.device), found, n)
        tenth = (k.astype(np.float32) * np.float32(0.1)).astype(float)
        wanted = [
            a * 2 + k, 0.0 * a, -0.0 * a, k // 2 + k % 3, tenth,
            np.where((k > 2) & (a < 1.5), a, 1 - a), (k == 3) | (a > 1), 3 - k + k[0] * 2,
        ]  # fmt: skip
        found = found.cpu().numpy()
        assert np.array_equal(found, np.array(wanted, float))
        assert np.array_equal(np.signbit(found), np.signbit(np.array(wanted, float)))


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
