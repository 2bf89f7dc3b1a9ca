"""Nearest neighbours of a shrinking triangle, and which rows threads may write at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from phloem.clustering import linkage_rounds
from phloem.clustering.linkage_rounds import LinkageState, _stretches
from phloem.errors import InputError, NumericalError


def square(n, values=None):
    rng = np.random.default_rng(n)
    upper = np.triu(rng.random((n, n)) if values is None else rng.integers(0, values, (n, n)) * 0.3, 1)
    return upper + upper.T


def state_of(d, method="upgma", threads=2):
    entries = d[np.tril_indices(len(d), -1)]
    return LinkageState(entries, len(d), method, ThreadPoolExecutor(threads), threads)


def check_neighbours(state, d):
    full = d + np.diag(np.full(len(d), np.inf))
    np.testing.assert_array_equal(state.nearest, full.argmin(axis=1))
    np.testing.assert_array_equal(state.nearest_bits.view(d.dtype), full.min(axis=1))
    for i in range(1, len(d)):
        assert state.before[i] == full[i, :i].argmin()
        assert state.before_bits[i : i + 1].view(d.dtype) == full[i, :i].min()


@pytest.mark.parametrize("values", [None, 4, 40])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_first_nearest_neighbours_before_and_after_a_round(values, threads, monkeypatch):
    monkeypatch.setattr(linkage_rounds, "LAG", 2)
    d = square(170, values) + 0.1 * (1 - np.eye(170))
    state = state_of(d, "complete", threads)
    check_neighbours(state, d)
    pairs = state.reciprocal_pairs()
    assert len(pairs) >= 3
    for a, b in pairs:
        d[a] = d[:, a] = np.maximum(d[a], d[b])
    keep = np.delete(np.arange(170), pairs[:, 1])
    d = d[np.ix_(keep, keep)]
    np.fill_diagonal(d, 0)
    state.merge_round(pairs)
    np.testing.assert_array_equal(state.names, keep)
    np.testing.assert_array_equal(
        state.triangle[: len(d) * (len(d) - 1) // 2], d[np.tril_indices(len(d), -1)]
    )
    check_neighbours(state, d)


@pytest.mark.parametrize("dead", [0, 1, 30, 300])
def test_threads_never_write_what_others_read(dead, monkeypatch):
    monkeypatch.setattr(linkage_rounds, "LAG", 8)
    keep = np.delete(np.arange(1000), np.random.default_rng(dead).integers(0, 1000, dead))
    covered = []
    for edges in _stretches(keep, 2):
        covered += list(range(edges[0], edges[-1]))
        if len(edges) > 2:
            assert edges[-1] <= keep[edges[0]]
    assert covered == list(range(len(keep)))
    parallel = sum(len(edges) > 2 for edges in _stretches(keep, 2))
    assert (parallel > 0) == (len(np.unique(keep)) < 1000 - 8)
    assert [len(edges) for edges in _stretches(keep, 1)] == [2]


def test_what_is_no_distance():
    d = square(12)
    d[5, 2] = -1
    with pytest.raises(InputError, match="negative"):
        state_of(d)
    for value in (np.nan, np.inf):
        d[5, 2] = value
        with pytest.raises(NumericalError, match="not finite"):
            state_of(d)
