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


@triton.jit
def _outer(x, i, found, wrong, N: tl.constexpr, M: tl.constexpr):
    row, column = tl.arange(0, N), tl.arange(0, M)
    place, size = row[:, None] * M + column[None, :], N * M
    a = tl.load(x + row)
    k = tl.load(i + column, mask=column < M - 1, other=-7)
    last = tl.load(x + N - 1 - row)
    tl.store(found + place, a[:, None] * k[None, :])
    tl.store(found + size + place, k[None, :] - row[:, None].to(tl.int64) + tl.load(x + (0 - 1) + N))
    tl.store(found + 2 * size + place, (a[:, None] < last[:, None]) & (k[None, :] != 3) | (k == 5)[None, :])
    tl.store(found + 3 * size + place, tl.load(x + place % N, mask=place % 3 > 0) / (k[None, :] + 0.5))
    tl.store(found + 4 * size + place, tl.load(wrong + row)[:, None] + k[None, :])


@pytest.mark.parametrize("width", [4, 8])
def test_operands_of_other_shapes_and_types(width):
    """Three times, with other numbers: the interpreter's own way, and twice what is remembered of it."""
    rng, n = np.random.default_rng(6), 8
    for _ in range(3):
        a, k = rng.normal(1.5, 1.0, n), rng.integers(0, 9, width).astype(np.int32)
        a[rng.integers(n)] = np.nan
        u = rng.integers(2**31, 2**32, n, dtype=np.uint32)
        found = torch.empty((5, n, width), dtype=torch.float64, device=find_device())
        _outer[(1,)](
            *(torch.from_numpy(v).to(found.device) for v in (a, k)), found, torch.from_numpy(u), n, width
        )
        k[-1], row, place = -7, np.arange(n), np.arange(n * width).reshape(n, width)
        wanted = [
            a[:, None] * k, k - row[:, None] + a[-1], (a < a[::-1])[:, None] & (k != 3) | (k == 5),
            np.where(place % 3 > 0, a[place % n], 0) / (k + np.float32(0.5)),
            u[:, None] + k.astype(np.uint32),
        ]  # fmt: skip
        assert np.array_equal(found.cpu().numpy(), np.array(wanted, float), equal_nan=True)


def test_what_numpy_does_in_another_way_is_left_to_the_interpreter():
    """The control: an operation that is not the interpreter's is never taken in its place."""
    from triton.language import core
    from triton.runtime import interpreter

    from gpu import lean_operations

    def number(value):
        return core.tensor(interpreter.TensorHandle(np.array([value]), core.float64), core.float64)

    found = {}
    for name in ("__sub__", "__add__"):
        calls = []

        def slow(left, right, calls=calls):
            calls.append(right)
            return number(left.handle.data[0] - right.handle.data[0])

        quick = lean_operations.Quick(core, interpreter).operator(name, slow)
        found[name] = [quick(number(3.0), number(x)).handle.data[0] for x in (1.0, 2.0, 0.5)], len(calls)
    assert found == {"__sub__": ([2.0, 1.0, 2.5], 1), "__add__": ([2.0, 1.0, 2.5], 3)}


def test_what_a_comparison_gives_keeps_the_type_of_what_was_compared():
    """Its type is int1, its handle's that of the numbers: whole ones of 64 bits do not fit another's 32."""
    from triton.language import core
    from triton.runtime import interpreter

    from gpu import lean_operations

    def block(data, kind, shape):
        return core.tensor(interpreter.TensorHandle(data, kind), core.block_type(core.int1, shape))

    quick = lean_operations.Quick(core, interpreter).index(
        lambda one, slices: block(one.handle.data[slices], one.handle.dtype, [1, 4])
    )
    for kind, data in 2 * [(core.int32, np.ones(4, bool)), (core.int64, np.ones(4, np.int64))]:
        found = quick(block(data, kind, [4]), (None, slice(None)))
        assert found.handle.dtype is kind and found.handle.data.dtype is data.dtype


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
