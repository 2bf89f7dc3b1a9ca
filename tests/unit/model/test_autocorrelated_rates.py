"""+AG: classes of neighbours, by quadrature and finite differences; what the grammar takes and refuses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

from phloem.errors import ModelError
from phloem.model.autocorrelated_rates import bivariate_normal, neighbours_of, neighbours_slope
from phloem.model.grammar import parse_model

CORRELATIONS = [-0.99, -0.4, 0.0, 0.2, 0.6, 0.99, 0.9999]


def by_quadrature(rho: float, n: int) -> np.ndarray:
    """∫ φ(x) P(y in its interval | x) dx over every interval of x, times n."""
    edges, root = ndtri(np.arange(n + 1) / n), np.sqrt(1 - rho * rho)
    found = np.empty((n, n))
    for i in range(n):
        for j in range(n):

            def density(x: float, low: float = edges[j], high: float = edges[j + 1]) -> float:
                inside = ndtr((high - rho * x) / root) - ndtr((low - rho * x) / root)
                return float(np.exp(-x * x / 2) / np.sqrt(2 * np.pi) * inside)

            low, high = max(edges[i], -9.0), min(edges[i + 1], 9.0)
            turns = [e / rho for e in edges[[j, j + 1]] if rho and low < e / rho < high]
            found[i, j] = n * quad(density, low, high, points=turns or None, epsabs=1e-14, limit=300)[0]
    return found


@pytest.mark.parametrize("n", [2, 3, 4, 7])
@pytest.mark.parametrize("rho", CORRELATIONS)
def test_the_matrix_is_that_of_two_normal_numbers(rho: float, n: int) -> None:
    found = neighbours_of(rho, n)
    assert found == pytest.approx(by_quadrature(rho, n), abs=1e-13)
    assert (found >= 0).all()
    assert found.sum(1) == pytest.approx(np.ones(n), abs=1e-14)
    assert found.sum(0) == pytest.approx(np.ones(n), abs=1e-13)  # every class stays equally likely
    assert found == pytest.approx(found.T, abs=1e-14)  # neither direction is the right one
    if rho:
        assert np.abs(found - by_quadrature(-rho, n)).max() > 1e-3  # the check sees another matrix


def test_without_correlation_every_class_is_as_likely() -> None:
    assert neighbours_of(0.0, 4) == pytest.approx(np.full((4, 4), 0.25), abs=1e-15)


def test_the_integral_is_scipys() -> None:
    for a, b, rho in (
        (0.3, -1.2, 0.5),
        (-0.7, -0.2, -0.8),
        (0.0, 1.1, 0.3),
        (0.0, 0.0, -0.6),
        (2.0, 0.0, 0.9),
    ):
        expected = multivariate_normal.cdf([a, b], cov=[[1.0, rho], [rho, 1.0]])
        assert float(bivariate_normal(np.array(a), np.array(b), rho)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.3, 0.97])
def test_its_slope(rho: float, n: int) -> None:
    step = 1e-6
    expected = (neighbours_of(rho + step, n) - neighbours_of(rho - step, n)) / (2 * step)
    assert neighbours_slope(rho, n) == pytest.approx(expected, abs=2e-8)


def test_what_a_model_string_says() -> None:
    model = parse_model("HKY{2}+FQ+AG4{0.5,0.3}", datatype="dna")
    assert model.text() == "HKY{2.0}+FQ+AG4{0.5,0.3}"
    numbers, plain = model.evaluate(), parse_model("HKY{2}+FQ+G4{0.5}", datatype="dna").evaluate()
    assert np.array_equal(numbers.rates, plain.rates)
    assert np.array_equal(numbers.weights, plain.weights)
    assert numbers.neighbours == pytest.approx(neighbours_of(0.3, 4), abs=1e-15)
    assert plain.neighbours is None
    free = parse_model("JC+AG", datatype="dna")
    assert (free.name, [p.name for p in free.free]) == ("JC+AG4", ["alpha", "rho"])
    medians = parse_model("JC+AG5a{0.5,-0.1}", datatype="dna").evaluate().rates
    assert np.array_equal(medians, parse_model("JC+G5a{0.5}", datatype="dna").evaluate().rates)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("JC+AG4+I", "invariable"),
        ("JC+AG4+ASC", "ASC"),
        ("JC+COV+AG4", "hidden"),
        ("MIX{JC,K80}+AG4", "several processes"),
        ("JC+AG1", "Use 2 to 256"),
        ("JC+G4+AG4", "both set the rate categories"),
    ],
)
def test_what_it_is_not_combined_with(text: str, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        parse_model(text, datatype="dna")


@pytest.mark.parametrize("rho", ["1", "-1", "1.5"])
def test_a_correlation_is_between_minus_one_and_one(rho: str) -> None:
    with pytest.raises(ModelError, match="Give a number between -1 and 1"):
        parse_model(f"JC+AG4{{0.5,{rho}}}", datatype="dna").evaluate()
