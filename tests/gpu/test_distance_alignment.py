"""Distances from encoded sequences, next to the formulas of the reference applied to counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from gpu.random_sequences import FREQUENCIES, formula, measured, sequences  # noqa: E402
from phloem.clustering.formula import Formula  # noqa: E402
from phloem.clustering.gpu.alignment import DistanceTiling  # noqa: E402
from phloem.clustering.reference.distances import (  # noqa: E402
    joint_counts,
    nucleotide_distance,
    protein_distance,
)

LONG = DistanceTiling(rows=16, columns=16, block=1024, stages=1)  # many sites a step


def expected(codes: np.ndarray, states: int, distance, longest: float = 5.0) -> np.ndarray:
    n, weights = len(codes), np.eye(int(codes.max()) + 1, states)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            value = distance(joint_counts(codes[i], codes[j], weights))
            d[i, j] = d[j, i] = value if value <= longest else longest
    return d


@pytest.mark.parametrize(
    ("method", "shape"),
    [("p", None), ("jc69", 0.5), ("k80", None), ("f84", None), ("tn93", 0.7), ("logdet", None)],
)
def test_nucleotide_distances(method, shape, poisoned):
    codes = sequences(67, 131, 4, 1)
    values, status = measured(codes, 4, formula(method, shape))
    right = expected(codes, 4, lambda c: nucleotide_distance(c, method, FREQUENCIES, shape))
    np.testing.assert_allclose(values, right, atol=1e-12)
    assert status[0] == np.sum(np.tril(right, -1) == 5.0) and status[1] == 0


@pytest.mark.parametrize("method", ["p", "poisson", "kimura"])
def test_protein_distances(method, poisoned):
    codes = sequences(41, 50, 20, 2)
    how = Formula(corrected=method != "p", quadratic=0.2 if method == "kimura" else 0.0)
    right = expected(codes, 20, lambda c: protein_distance(c, method))
    np.testing.assert_allclose(measured(codes, 20, how)[0], right, atol=1e-12)


@pytest.mark.parametrize("states", [4, 20])
def test_drawn_columns(states, poisoned):
    codes, columns = sequences(12, 90, states, 5), np.random.default_rng(1).integers(0, 90, 70)
    how = formula("k80") if states == 4 else Formula(corrected=True)
    drawn = measured(codes, states, how, columns)[0]
    assert np.array_equal(drawn, measured(np.ascontiguousarray(codes[:, columns]), states, how)[0])
    assert not np.allclose(drawn, measured(codes, states, how)[0], atol=1e-3)


def test_saturated_and_empty_pairs_are_counted():
    codes = np.array([[0, 0, 0, 0], [2, 2, 2, 2], [9, 9, 9, 9]], np.uint8)
    values, status = measured(codes, 4, formula("jc69"))
    assert values[1, 0] == 5.0
    assert status[1] == 2 and status[2] in (2 << 32, (2 << 32) + 1)
    assert status[0] >= 1


def test_an_unobserved_character_matters():
    codes = sequences(9, 40, 4, 4)
    first, _ = measured(codes, 4, formula("k80"))
    codes[codes == 5] = 0
    assert not np.allclose(first, measured(codes, 4, formula("k80"))[0])


def test_counts_whose_products_exceed_32_bits():
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 4, (1, 200_000)).astype(np.uint8).repeat(3, axis=0)
    changed = rng.random(codes.shape) < 0.1
    codes[changed] = rng.integers(0, 4, int(changed.sum()))
    values, _ = measured(codes, 4, formula("logdet"), tiling=LONG)
    right = expected(codes, 4, lambda c: nucleotide_distance(c, "logdet", FREQUENCIES))
    np.testing.assert_allclose(values, right, atol=1e-12)
