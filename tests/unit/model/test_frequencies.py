"""Frequencies counted in data, ambiguous characters included."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.errors import ModelError
from phloem.model.frequencies import (
    CodonTable,
    PositionFrequencies,
    codon_position_counts,
    empirical_frequencies,
)

SETS = np.vstack([np.eye(4), np.ones((1, 4)), [[1, 0, 1, 0], [0, 1, 0, 1]]]).astype(bool)


def test_counts_with_weights() -> None:
    codes = np.array([[0, 1], [2, 3]])
    found = empirical_frequencies(codes, SETS, np.array([3.0, 1.0]))
    assert found == pytest.approx([3 / 8, 1 / 8, 3 / 8, 1 / 8])


def test_missing_characters_do_not_count() -> None:
    codes = np.array([[0, 4, 4], [1, 4, 4]])
    assert empirical_frequencies(codes, SETS, np.ones(3)) == pytest.approx([0.5, 0.5, 0, 0])
    with pytest.raises(ModelError, match="missing"):
        empirical_frequencies(np.full((2, 3), 4), SETS, np.ones(3))


def test_ambiguous_characters_are_shared_in_proportion() -> None:
    """Three A, one G and one R: the estimate solves p_A = (3 + p_A / (p_A + p_G)) / 5, so p_A = 3/4."""
    codes = np.array([[0, 0, 0, 2, 5]])
    found = empirical_frequencies(codes, SETS, np.ones(5))
    assert found == pytest.approx([0.75, 0, 0.25, 0], abs=1e-10)


def test_it_is_the_likelihood_s_maximum() -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 7, (6, 40))
    weights = rng.integers(1, 5, 40).astype(float)

    def log_likelihood(p: np.ndarray) -> float:
        return float(np.sum(np.log(SETS[codes] @ p) * weights))

    best = empirical_frequencies(codes, SETS, weights)
    for _ in range(50):
        other = best * np.exp(rng.normal(0, 0.02, 4))
        assert log_likelihood(other / other.sum()) < log_likelihood(best)


def test_codon_position_counts() -> None:
    table = CodonTable(("AAA", "ACG", "TTG"), "KTL")
    sets = np.vstack([np.eye(3), np.ones((1, 3))]).astype(bool)
    counts = codon_position_counts(np.array([[0, 1, 3], [1, 2, 2]]), sets, np.array([1.0, 2.0, 1.0]), table)
    assert counts.tolist() == [[4, 0, 0, 3], [1, 3, 0, 3], [1, 0, 6, 0]]
    f3 = PositionFrequencies(table, 3).evaluate(
        {f"frequencies_{k + 1}": row / row.sum() for k, row in enumerate(counts)}
    )
    expected = np.array([4 * 1 * 1, 4 * 3 * 6, 3 * 3 * 6], float)
    assert f3 == pytest.approx(expected / expected.sum())
    pooled = counts.sum(0)
    f1 = PositionFrequencies(table, 1).evaluate({"frequencies": pooled / pooled.sum()})
    expected = np.array([pooled[0] ** 3, pooled[0] * pooled[1] * pooled[2], pooled[3] ** 2 * pooled[2]])
    assert f1 == pytest.approx(expected / expected.sum())
