"""Summaries of traces whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.summary.trace import digits_text, mixing, trace_summary


def autoregressive(rho: float, n: int, runs: int = 2, seed: int = 0) -> np.ndarray:
    rng, x = np.random.default_rng(seed), np.zeros((runs, n))
    for i in range(1, n):
        x[:, i] = rho * x[:, i - 1] + np.sqrt(1 - rho**2) * rng.normal(size=runs)
    return x


def test_mean_sd_and_hpd_of_a_normal():
    draws = np.random.default_rng(0).normal(2.0, 0.5, (2, 20_000, 1))
    s = trace_summary(("x",), draws)
    assert s.mean[0] == pytest.approx(2.0, abs=0.01) and s.sd[0] == pytest.approx(0.5, abs=0.01)
    assert (s.hpd_low[0], s.hpd_high[0]) == pytest.approx((2 - 0.98, 2 + 0.98), abs=0.03)
    assert s.mcse[0] == pytest.approx(s.sd[0] / np.sqrt(s.ess[0]))


@pytest.mark.parametrize(
    "value, sd, text",
    [
        (2015.95543, 0.0233, "2015.955"), (-18141.93, 5.15, "-18141.9"), (0.00107851, 1e-4, "0.0010785"),
        (3.14159265, 2.0, "3.1416"), (5.0, 0.0, "5"), (np.nan, 1.0, "nan"), (2016.0, 1e-14, "2016"),
    ],
)  # fmt: skip
def test_digits_go_down_to_the_spread(value, sd, text):
    assert digits_text(value, sd) == text


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(rho):
    """ESS = n (1 - ρ) / (1 + ρ)."""
    draws = autoregressive(rho, 20_000)[:, :, None]
    ess, r_hat = mixing(draws)
    assert ess[0] == pytest.approx(40_000 * (1 - rho) / (1 + rho), rel=0.15)
    assert r_hat[0] < 1.01


def test_a_single_run_is_compared_with_itself():
    rng = np.random.default_rng(3)
    steady, drifting = rng.normal(size=901), rng.normal(size=901) + np.linspace(0.0, 3.0, 901)
    r_hat = mixing(np.stack([steady, drifting], axis=1)[None])[1]
    assert r_hat[0] < 1.01
    assert r_hat[1] > 1.2


def test_a_number_that_is_held_is_its_own_mean():
    found = trace_summary(("held",), np.full((2, 1000, 1), 7.9e-4))
    assert (found.mean[0], found.sd[0]) == (7.9e-4, 0.0)
    assert found.texts(0) == ("0.00079", "0.00079", "0.00079")


def test_runs_in_different_places_have_a_large_r_hat():
    draws = np.random.default_rng(1).normal(size=(2, 500, 1)) + np.array([0.0, 3.0])[:, None, None]
    assert mixing(draws)[1][0] > 1.5


def test_what_never_changed_has_no_ess():
    draws = np.ones((2, 50, 2))
    draws[:, :, 1] = np.random.default_rng(0).normal(size=(2, 50))
    s = trace_summary(("a", "b"), draws)
    assert np.isnan(s.ess[0]) and np.isfinite(s.ess[1]) and s.mean[0] == 1


def test_too_few_draws_are_an_error():
    with pytest.raises(InputError, match="only 3 samples"):
        trace_summary(("a",), np.zeros((2, 3, 1)))
    with pytest.raises(InputError, match="shape"):
        trace_summary(("a", "b"), np.zeros((2, 30, 1)))
