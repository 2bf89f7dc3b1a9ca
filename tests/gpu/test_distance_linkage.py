"""UPGMA, WPGMA and complete linkage on the device, next to the CPU kernels and the sequential reference."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from phloem.distance.linkage import linkage as on_cpu  # noqa: E402
from phloem.engine.gpu_distance_linkage import LinkageTiling, linkage_merges  # noqa: E402
from phloem.errors import NumericalError  # noqa: E402
from phloem.kernels.reference.linkage import linkage as sequential  # noqa: E402

REWRITES = LinkageTiling(scan=64, merge=32, columns=32, lanes=32, small=4, registers=0, per_processor=1)
IN_PLACE = LinkageTiling(scan=64, merge=32, columns=32, lanes=32, small=99, registers=0, per_processor=1)


def symmetric(values: np.ndarray) -> np.ndarray:
    upper = np.triu(values, 1)
    return upper + upper.T


def continuous(n: int, rng) -> np.ndarray:
    return symmetric(rng.random((n, n)))


def tied(n: int, rng) -> np.ndarray:
    return symmetric(rng.integers(1, 5, (n, n)).astype(float))


def duplicated(n: int, rng) -> np.ndarray:
    """Differences between short binary sequences: many ties, identical rows, and zeros in plenty."""
    sequences = rng.integers(0, 2, (n, 5))
    return (sequences[:, None] != sequences[None]).sum(axis=2).astype(float)


@pytest.mark.parametrize("tiling", [REWRITES, IN_PLACE], ids=["rewrites", "in place"])
@pytest.mark.parametrize("make", [continuous, tied, duplicated])
@pytest.mark.parametrize("n", [2, 5, 33])
def test_merges_equal_the_sequential_ones(n, make, tiling, poisoned):
    d = make(n, np.random.default_rng(n))
    lower, upper, distance, rounds = linkage_merges(d, "upgma", tiling=tiling)
    a, b, height = sequential(d, "upgma")
    order = np.lexsort((b, a, height))
    assert np.array_equal(lower, a[order]) and np.array_equal(upper, b[order])
    np.testing.assert_allclose(distance, height[order], rtol=1e-15)
    assert 1 <= rounds < n or make is duplicated


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("method", ["wpgma", "complete"])
def test_equal_to_the_cpu_to_the_last_bit(method, precision, poisoned):
    d = continuous(23, np.random.default_rng(3)).astype(precision)
    lower, upper, distance, _ = linkage_merges(d, method, tiling=REWRITES)
    cpu = on_cpu(d, method)
    assert np.array_equal(lower, cpu.lower) and np.array_equal(upper, cpu.upper)
    assert np.array_equal(distance, cpu.distance)


def test_the_input_is_left_alone_unless_told_otherwise():
    d = continuous(9, np.random.default_rng(0))
    before = d.copy()
    linkage_merges(d, tiling=IN_PLACE)
    assert np.array_equal(d, before)


def test_not_a_number_is_an_error_and_no_endless_loop():
    d = continuous(9, np.random.default_rng(2))
    d[:] = np.nan
    with pytest.raises(NumericalError):
        linkage_merges(d, tiling=IN_PLACE)


def test_a_changed_entry_changes_the_merges():
    d = continuous(17, np.random.default_rng(1))
    first = linkage_merges(d, tiling=IN_PLACE)[2]
    d[3, 11] = d[11, 3] = 1e-6
    assert not np.allclose(first, linkage_merges(d, tiling=IN_PLACE)[2])
