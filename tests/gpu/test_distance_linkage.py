"""Linkage on the device, next to the CPU kernels and the sequential reference."""

from __future__ import annotations

from dataclasses import astuple
from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from gpu.conftest import LATER  # noqa: E402
from gpu.random_matrices import continuous, duplicated, few_copies, ladder, tied  # noqa: E402
from phloem.clustering.gpu import linkage as gpu_distance_linkage  # noqa: E402
from phloem.clustering.gpu.linkage import LinkageTiling, linkage_merges  # noqa: E402
from phloem.clustering.linkage import linkage as on_cpu  # noqa: E402
from phloem.clustering.reference.linkage import linkage as sequential  # noqa: E402
from phloem.errors import DeviceError, NumericalError  # noqa: E402

BLOCKS = dict(scan=16, pairs=4, merge=16, columns=32, lanes=32, registers=0, per_processor=1)
REWRITES = LinkageTiling(**BLOCKS, small=4, loose=1)
APPENDS = LinkageTiling(**BLOCKS, small=4, loose=4)
IN_PLACE = LinkageTiling(**BLOCKS, small=99)


@pytest.mark.parametrize("tiling", [REWRITES, APPENDS, IN_PLACE], ids=["rewrites", "appends", "in place"])
@pytest.mark.parametrize("make", [continuous, tied, duplicated, few_copies, ladder])
@pytest.mark.parametrize("n", [2, 5, 33])
def test_merges_equal_the_sequential_ones(n, make, tiling, poisoned):
    d = make(n, np.random.default_rng(n))
    lower, upper, distance, rounds = linkage_merges(d, "upgma", tiling=tiling)
    a, b, height = sequential(d, "upgma")
    order = np.lexsort((b, a, height))
    assert np.array_equal(lower, a[order]) and np.array_equal(upper, b[order])
    np.testing.assert_allclose(distance, height[order], rtol=1e-15)
    assert rounds == n - 1 if make is ladder else 1 <= rounds < n or make is duplicated


@pytest.mark.parametrize(
    ("method", "precision"),
    [
        *product(["upgma", "wpgma", "complete"], ["float64"]),
        ("upgma", "float32"),
        *(pytest.param(method, "float32", marks=LATER) for method in ("wpgma", "complete")),
    ],
)
def test_the_cpus_tree_and_one_result_however_the_rounds_store_it(method, precision, poisoned):
    d = continuous(48, np.random.default_rng(3)).astype(precision)
    lower, upper, distance, _ = linkage_merges(d, method, tiling=REWRITES)
    cpu = on_cpu(d, method)
    assert np.array_equal(lower, cpu.lower) and np.array_equal(upper, cpu.upper)
    np.testing.assert_allclose(distance, cpu.distance, rtol=4 * np.finfo(precision).eps)
    for tiling in (APPENDS, IN_PLACE):
        assert np.array_equal(distance, linkage_merges(d, method, tiling=tiling)[2])


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("make", [continuous, tied, duplicated])
@pytest.mark.parametrize("n", [2, 3, 31])
def test_single_linkage_equals_the_cpu_bit_for_bit(n, make, precision, poisoned):
    d = make(n, np.random.default_rng(n)).astype(precision)
    lower, upper, distance, _ = linkage_merges(d, "single")
    for a, b, height in [sequential(d, "single"), astuple(on_cpu(d, "single"))[:3]]:
        assert np.array_equal(lower, a) and np.array_equal(upper, b) and np.array_equal(distance, height)


def test_too_little_device_memory_is_an_error_with_the_numbers(monkeypatch):
    monkeypatch.setattr(gpu_distance_linkage, "UNASKED_BYTES", 0)
    monkeypatch.setattr(gpu_distance_linkage, "free_bytes", lambda device: 10_000)
    with pytest.raises(DeviceError, match=r"40 taxa needs 0\.00 GB .* 0\.00 GB are free"):
        linkage_merges(continuous(40, np.random.default_rng(0)))


def test_the_input_is_left_alone_unless_told_otherwise():
    d = continuous(9, np.random.default_rng(0))
    before = d.copy()
    linkage_merges(d, tiling=IN_PLACE)
    assert np.array_equal(d, before)


@pytest.mark.parametrize("method", ["upgma", "single"])
def test_not_a_number_is_an_error_and_no_endless_loop(method):
    d = continuous(9, np.random.default_rng(2))
    d[:] = np.nan
    with pytest.raises(NumericalError):
        linkage_merges(d, method, tiling=IN_PLACE)


def test_a_changed_entry_changes_the_merges():
    d = continuous(17, np.random.default_rng(1))
    first = linkage_merges(d, tiling=IN_PLACE)[2]
    d[3, 11] = d[11, 3] = 1e-6
    assert not np.allclose(first, linkage_merges(d, tiling=IN_PLACE)[2])
