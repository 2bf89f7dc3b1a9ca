"""Exact neighbour joining on the device, next to the sequential reference."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

import torch

from phloem.clustering.gpu import nj as gpu_distance_nj
from phloem.clustering.gpu.kernels.nj_records import BEGIN
from phloem.clustering.gpu.nj import JoiningStages, JoiningTiling, joins, stages
from phloem.clustering.reference.joining import neighbour_joining
from phloem.errors import InputError, NumericalError
from phloem.hardware.gpu_device import find_device

DROPS = JoiningTiling(lanes=8, blocks=((8, 16), (99, 32)), small=4)
KEEPS = JoiningTiling(lanes=8, blocks=((99, 32),), small=99)


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


@pytest.mark.parametrize("programs", [1, 128])
def test_dropping_columns_changes_nothing(programs):
    """Nor which rows are read, where one program has them all: each of several may read its lowest row early,
    and dropping columns hands rows to other programs."""
    d = symmetric(23, 6)
    drops, keeps = (joins(d, tiling=replace(tiling, programs=programs)) for tiling in (DROPS, KEEPS))
    assert np.array_equal(drops.pairs, keeps.pairs)
    np.testing.assert_allclose(drops.lengths, keeps.lengths, atol=1e-14)
    assert drops.rows_read == keeps.rows_read or programs > 1
    d[2, 7] = d[7, 2] = 1e-3  # negative control
    assert not np.array_equal(joins(d, tiling=DROPS).pairs, keeps.pairs)


@pytest.mark.parametrize("small", [4, 6, 7, 100])
def test_every_launch_joins_and_the_last_leaves_four(small):
    for n in range(4, 200):
        steps = stages(n, small)
        assert steps[0][0] == n and steps[-1][1] == 4
        assert all(before[1] == after[0] > 4 for before, after in pairwise(steps))
        assert all(left < clusters for clusters, left in steps) or n == 4


@pytest.mark.parametrize("n", [4, 5, 12, 13])
def test_one_row_answers_for_each_pair_and_rows_are_equally_long(n):
    work = torch.zeros((n, 16), device=find_device())
    begin = JoiningStages(work, n, "nj", KEEPS).state[BEGIN.value, :n].cpu().numpy()[:, None]
    i, j = np.arange(n)[:, None], np.arange(n)
    answers = np.where(begin > i, (j < i) | (j >= begin), (j < i) & (j >= begin))
    assert np.array_equal(answers ^ answers.T, ~np.eye(n, dtype=bool))
    assert np.ptp(answers.sum(axis=1)) <= 1


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
