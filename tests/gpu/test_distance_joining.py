"""Exact neighbour joining on the device, next to the sequential reference."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from phloem.engine import gpu_distance_nj
from phloem.engine.gpu_distance_nj import JoiningTiling, joins
from phloem.errors import InputError, NumericalError
from phloem.kernels.reference.nj import neighbour_joining

DROPS = JoiningTiling(block=32, small=4)
KEEPS = JoiningTiling(block=32, small=99)


def symmetric(n: int, seed: int) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).random((n, n)), 1)
    return upper + upper.T


CASES = [
    ("nj", 4, "float32", KEEPS),
    ("nj", 5, "float64", DROPS),
    ("nj", 21, "float32", KEEPS),
    ("nj", 21, "float64", DROPS),
    ("bionj", 17, "float64", KEEPS),
    ("bionj", 17, "float32", DROPS),
    ("unj", 17, "float64", DROPS),
    ("unj", 17, "float32", KEEPS),
]


@pytest.mark.parametrize("method, n, precision, tiling", CASES)
def test_joins_equal_the_reference(method, n, precision, tiling, poisoned):
    d = symmetric(n, n).astype(precision)
    result = joins(d, method, tiling=tiling)
    pairs, lengths, last = neighbour_joining(d, method)
    assert np.array_equal(result.pairs, pairs)
    tolerance = 1e-12 if precision == "float64" else 1e-6
    np.testing.assert_allclose(result.lengths, lengths, atol=tolerance)
    assert np.array_equal(result.last, last[:, 0])
    np.testing.assert_allclose(
        result.last_lengths, last[:, 1], atol=1e-12 if precision == "float64" else 1e-6
    )


def test_fewer_rows_are_read_than_a_full_search_would():
    n = 19
    assert n <= joins(symmetric(n, 5), tiling=KEEPS).rows_read < n * (n - 3) / 2


def test_not_a_number_is_an_error():
    d = symmetric(9, 1)
    d[2, 3] = np.nan
    with pytest.raises(NumericalError):
        joins(d, tiling=KEEPS)


def test_a_changed_entry_changes_the_joins():
    d = symmetric(13, 2)
    first = joins(d, tiling=KEEPS).lengths
    d[3, 11] = d[11, 3] = 0.01
    assert not np.allclose(first, joins(d, tiling=KEEPS).lengths)


def test_too_little_memory_is_said_before_allocation(monkeypatch):
    monkeypatch.setattr(gpu_distance_nj, "free_bytes", lambda device: 9 * 25 * 8)
    d = symmetric(9, 2)
    assert len(joins(d, tiling=KEEPS).pairs) == 6
    with pytest.raises(InputError, match="bionj of 9 taxa"):
        joins(d, "bionj", tiling=KEEPS)
