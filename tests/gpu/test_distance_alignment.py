"""Distances from one-hot products, next to the formulas of the reference applied to counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from phloem.engine.gpu_distance_alignment import (  # noqa: E402
    DistanceTiling,
    EncodedSequences,
    Formula,
    distance_matrix,
    fill_host_triangle,
)
from phloem.kernels.reference.distance import nucleotide_distance, nucleotide_terms, protein_distance  # noqa: E402

FREQUENCIES = np.array([0.3, 0.2, 0.27, 0.23])
FOUR = DistanceTiling(rows=64, columns=32, block=64)
STATES = DistanceTiling(rows=64, columns=64, block=64)


def sequences(n: int, sites: int, states: int, seed: int) -> np.ndarray:
    """Related sequences with a tenth of the characters unobserved and two of them identical."""
    rng = np.random.default_rng(seed)
    codes = np.where(
        rng.random((n, sites)) < 0.3, rng.integers(0, states, (n, sites)), rng.integers(0, states, sites)
    )
    codes[rng.random((n, sites)) < 0.1] = states + 1
    codes[-1] = codes[0]
    return codes.astype(np.uint8)


def joint_counts(x: np.ndarray, y: np.ndarray, states: int) -> np.ndarray:
    counts = np.zeros((states, states))
    both = (x < states) & (y < states)
    np.add.at(counts, (x[both], y[both]), 1)
    return counts


def expected(codes: np.ndarray, states: int, distance, longest: float = 5.0) -> np.ndarray:
    n = len(codes)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            value = distance(joint_counts(codes[i], codes[j], states))
            d[i, j] = d[j, i] = value if value <= longest else longest
    return d


def formula(method: str, shape: float | None) -> Formula:
    terms = None if method in ("p", "logdet") else nucleotide_terms(method, FREQUENCIES)
    return Formula(terms=terms, logdet=method == "logdet", shape=shape or 0.0)


@pytest.mark.parametrize(
    ("method", "shape"),
    [("p", None), ("jc69", 0.5), ("k80", None), ("f84", None), ("tn93", 0.7), ("logdet", None)],
)
def test_nucleotide_distances(method, shape, poisoned):
    codes = sequences(67, 131, 4, 1)
    values, status = distance_matrix(
        EncodedSequences(codes, 4, True, FOUR), formula(method, shape), torch.float64
    )
    right = expected(codes, 4, lambda c: nucleotide_distance(c, method, FREQUENCIES, shape))
    np.testing.assert_allclose(values.cpu().numpy(), right, atol=1e-12)
    assert status[0] == np.sum(np.tril(right, -1) == 5.0) and status[1] == 0


@pytest.mark.parametrize("method", ["p", "poisson", "kimura"])
def test_protein_distances(method, poisoned):
    codes = sequences(41, 50, 20, 2)
    how = Formula(corrected=method != "p", quadratic=0.2 if method == "kimura" else 0.0)
    values, _ = distance_matrix(EncodedSequences(codes, 20, False, STATES), how, torch.float64)
    np.testing.assert_allclose(
        values.cpu().numpy(), expected(codes, 20, lambda c: protein_distance(c, method)), atol=1e-12
    )


def test_streamed_rows_are_the_same_matrix():
    encoded = EncodedSequences(sequences(131, 70, 4, 3), 4, True, FOUR)
    values, _ = distance_matrix(encoded, formula("jc69", None), torch.float32)
    host = np.zeros((131, 131), np.float32)
    fill_host_triangle(encoded, formula("jc69", None), host, rows=64)
    assert np.array_equal(np.tril(host, -1), np.tril(values.cpu().numpy(), -1))


def test_saturated_and_empty_pairs_are_counted():
    codes = np.array([[0, 0, 0, 0], [2, 2, 2, 2], [9, 9, 9, 9]], np.uint8)
    values, status = distance_matrix(
        EncodedSequences(codes, 4, True, FOUR), formula("jc69", None), torch.float64
    )
    assert values[1, 0] == 5.0
    assert status[1] == 2 and status[2] in (2 << 32, (2 << 32) + 1)
    assert status[0] >= 1


def test_an_unobserved_character_matters():
    codes = sequences(9, 40, 4, 4)
    first, _ = distance_matrix(EncodedSequences(codes, 4, True, FOUR), formula("k80", None), torch.float64)
    codes[codes == 5] = 0
    second, _ = distance_matrix(EncodedSequences(codes, 4, True, FOUR), formula("k80", None), torch.float64)
    assert not np.allclose(first.cpu().numpy(), second.cpu().numpy())
