"""Rates across sites: known values, means of 1, derivatives of the incomplete gamma function."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln, psi
from scipy.stats import lognorm

from phloem.errors import ModelError
from phloem.model.grammar import parse_model
from phloem.model.site_rates import MOST_ALPHA, gamma_rates, gammainc_derivative


def test_yang_1994_table() -> None:
    """Four categories, alpha 0.5, means: Yang 1994 and PAML's manual."""
    assert gamma_rates(0.5, 4, "mean") == pytest.approx(
        [0.03338775, 0.25191592, 0.82026848, 2.89442785], abs=1e-8
    )


def test_the_largest_shape_of_a_fit() -> None:
    """mpmath with 40 digits."""
    expected = [0.9600949285752522371, 0.98944942948958607164, 1.0099790418401728225, 1.0404766000949888688]
    assert gamma_rates(MOST_ALPHA, 4, "mean") == pytest.approx(expected, rel=1e-14)
    assert MOST_ALPHA == 1000.0


@pytest.mark.parametrize("kind", ["mean", "median"])
@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5, 1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("k", [1, 2, 4, 16])
def test_mean_is_one(alpha: float, k: int, kind: str) -> None:
    rates = gamma_rates(alpha, k, kind)
    assert rates.mean() == pytest.approx(1, rel=1e-13)
    assert (rates >= 0).all() and (np.diff(rates) >= 0).all()


@pytest.mark.parametrize("a", [0.02, 0.5, 1.0, 3.7, 30.0, 100.0, 1000.0])
@pytest.mark.parametrize("relative", [0.05, 0.5, 1.0, 1.5])
def test_incomplete_gamma_derivative_by_quadrature(a: float, relative: float) -> None:
    """∂P/∂a = ∫_0^x p_a(t) (ln t - ψ(a)) dt, with t = e^s so that the integrand is smooth."""
    x = a * relative
    lower = min(np.log(x) - 40 / min(a, 1.0), -40.0)

    def integrand(s: float) -> float:
        return np.exp(a * s - np.exp(s) - gammaln(a)) * (s - psi(a))

    points = np.linspace(lower, np.log(x), 60)
    expected = sum(quad(integrand, u, v, epsabs=1e-15, epsrel=1e-13)[0] for u, v in pairwise(points))
    assert gammainc_derivative(a, np.array([x]))[0] == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize(
    "suffix", ["+I{0.3}", "+G4{0.5}", "+I{0.3}+G4{0.5}", "+R2{0.4,1,0.6,5}", "+I{0.2}+LN5{0.7}", ""]
)
def test_expected_rate_over_all_sites_is_one(suffix: str) -> None:
    m = parse_model("JC" + suffix, datatype="dna").evaluate()
    assert m.weights @ m.rates == pytest.approx(1, rel=1e-13)
    assert m.weights.sum() + m.invariant == pytest.approx(1, rel=1e-13)


def test_mean_and_median_by_option_and_by_name() -> None:
    mean = parse_model("JC+G4{0.5}", datatype="dna").evaluate().rates
    assert np.array_equal(mean, parse_model("JC+G4m{0.5}", datatype="dna", gamma="median").evaluate().rates)
    median = parse_model("JC+G4{0.5}", datatype="dna", gamma="median").evaluate().rates
    assert np.array_equal(median, parse_model("JC+G4a{0.5}", datatype="dna").evaluate().rates)
    assert np.array_equal(median, parse_model("JC+GA4{0.5}", datatype="dna").evaluate().rates)
    assert np.abs(mean - median).max() > 0.01


@pytest.mark.parametrize("sigma", [0.0, 1e-3, 0.7, 30.0])
def test_log_normal_rates_are_medians_of_their_classes(sigma: float) -> None:
    rates = parse_model(f"JC+LN4{{{sigma}}}", datatype="dna").evaluate().rates
    medians = lognorm.ppf([1 / 8, 3 / 8, 5 / 8, 7 / 8], s=max(np.sqrt(sigma), 1e-12))
    assert rates == pytest.approx(medians / medians.mean(), rel=1e-11)


def test_impossible_rates() -> None:
    with pytest.raises(ModelError, match="sigma"):
        parse_model("JC+LN4{1e9}", datatype="dna").evaluate()
    with pytest.raises(ModelError, match="above 0"):
        parse_model("JC+R2{0.5,0,0.5,2}", datatype="dna").evaluate()
    with pytest.raises(ModelError, match="below 1"):
        parse_model("JC+I{1}", datatype="dna")
    with pytest.raises(ModelError, match="alpha"):
        parse_model("JC+G4{0}", datatype="dna").evaluate()
