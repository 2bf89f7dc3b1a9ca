"""The sampler's numerical kernels against SciPy and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats
from scipy.linalg import expm

from phloem.inference.mcmc.compiled.classes import number_classes
from phloem.inference.mcmc.compiled.eigen import jacobi
from phloem.inference.mcmc.compiled.gamma_rates import discrete_gamma, gamma_quantile, regularised_gamma
from phloem.inference.mcmc.compiled.logarithm import weighted_log_sum
from phloem.inference.mcmc.compiled.prior import log_length_prior
from phloem.inference.mcmc.compiled.random import below, gamma, normal, uniform
from phloem.inference.mcmc.compiled.reflect import multiplied, shifted
from phloem.inference.mcmc.compiled.transition import set_transition, set_transition_4
from phloem.inference.mcmc.records import EXPONENTIAL, GAMMA_DIRICHLET
from phloem.inference.mcmc.seeds import stream
from phloem.model.site_rates import gamma_rates


@pytest.mark.parametrize("a", [1e-3, 0.05, 0.5, 1.0, 3.3, 40.0, 200.0])
def test_gamma_functions(a):
    p = np.array([0.01, 0.25, 0.5, 0.75, 0.99])
    x = special.gammaincinv(a, p)
    good = x > 1e-290
    assert [gamma_quantile(a, q) for q in p[good]] == pytest.approx(x[good], rel=1e-10)
    assert [regularised_gamma(a, v) for v in x[good]] == pytest.approx(p[good], rel=1e-11)


@pytest.mark.parametrize("alpha", [1e-3, 0.03, 0.38, 1.0, 7.0, 200.0])
@pytest.mark.parametrize("median", [0, 1])
@pytest.mark.parametrize("n", [1, 4, 7])
def test_discrete_gamma_is_the_models(alpha, median, n):
    rates = np.empty(n)
    discrete_gamma(alpha, median, n, rates)
    expected = gamma_rates(alpha, n, "median" if median else "mean")
    assert rates == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("n", [2, 4, 20, 61])
def test_jacobi_diagonalises(n):
    a = np.random.default_rng(n).normal(size=(n, n))
    a = a + a.T
    d, v = a.copy(), np.empty((n, n))
    jacobi(d, v)
    assert np.allclose(v @ np.diag(np.diag(d)) @ v.T, a, atol=1e-12 * n)
    assert np.allclose(v.T @ v, np.eye(n), atol=1e-13 * n)


@pytest.mark.parametrize("n", [4, 20])
def test_transition_matrices(n):
    rng = np.random.default_rng(0)
    pi, r = rng.dirichlet(np.ones(n)), rng.random((n, n))
    q = (r + r.T) * pi
    np.fill_diagonal(q, 0)
    q -= np.diag(q.sum(1))
    values, v = np.linalg.eigh(np.sqrt(pi)[:, None] * q / np.sqrt(pi))
    right, left = v / np.sqrt(pi)[:, None], (v * np.sqrt(pi)[:, None]).T.copy()
    rates = np.array([0.1, 0.7, 2.2])
    if n == 4:
        out = np.full(64, np.nan)
        set_transition_4(0.3, 3, values, right, left, rates, out)
        p = out.reshape(2, 4, 2, 4).transpose(3, 0, 2, 1).reshape(4, 4, 4)
        assert np.all(p[3] == 0)
    else:
        out = np.full(3 * n * n, np.nan)
        set_transition(0.3, 3, values, right, left, rates, out)
        p = out.reshape(3, n, n).swapaxes(1, 2)
    for c in range(3):
        assert np.allclose(p[c], expm(q * 0.3 * rates[c]), atol=1e-13)


@pytest.mark.parametrize("n", [1, 7, 413])
def test_weighted_log_sum(n):
    rng = np.random.default_rng(n)
    x = np.exp(rng.uniform(-600, 3, n))
    weights, exponent = rng.integers(0, 9, n).astype(float), rng.integers(-50, 0, n).astype(np.int32)
    expected = np.sum(weights * (np.log(x) + exponent * np.log(2)))
    assert weighted_log_sum(x.copy(), exponent.copy(), weights) == pytest.approx(expected, rel=1e-14)
    x[0], weights[0] = 0.0, 1.0
    assert weighted_log_sum(x, exponent, weights) == -np.inf


def test_classes_number_pairs_by_first_appearance():
    left, right = np.array([0, 1, 0, 2, 1], np.int32), np.array([1, 0, 1, 0, 0], np.int32)
    out, first = np.empty(5, np.int32), np.empty(5, np.int32)
    key, value = np.empty(16, np.int64), np.empty(16, np.int32)
    assert number_classes(left, right, 3, 1, out, first, key, value) == 3
    assert out.tolist() == [0, 1, 0, 2, 1] and first[:3].tolist() == [0, 1, 3]
    assert number_classes(left, right, 3, 0, out, first, key, value) == 5


def test_classes_of_more_codes_than_patterns_are_told_apart():
    """Codes 0 and 7 beside 2 and 1: keyed over the three patterns alone, 0 · 3 + 7 would be 2 · 3 + 1."""
    left, right = np.array([0, 2, 0], np.int32), np.array([7, 1, 7], np.int32)
    out, first = np.empty(3, np.int32), np.empty(3, np.int32)
    key, value = np.empty(8, np.int64), np.empty(8, np.int32)
    assert number_classes(left, right, 8, 1, out, first, key, value) == 2
    assert out.tolist() == [0, 1, 0]


@pytest.mark.parametrize("draw", ["uniform", "normal", "gamma 0.3", "gamma 4"])
def test_random_numbers_follow_their_distributions(draw):
    s = stream(3, 0, 0)
    name, _, shape = draw.partition(" ")
    a = float(shape or 1)
    function = {"uniform": lambda: uniform(s), "normal": lambda: normal(s), "gamma": lambda: gamma(s, a)}[
        name
    ]
    distribution = {"uniform": stats.uniform(), "normal": stats.norm(), "gamma": stats.gamma(a)}[name]
    assert stats.kstest([function() for _ in range(20000)], distribution.cdf).pvalue > 1e-3


def test_streams_differ_and_repeat():
    words = {tuple(stream(seed, run, chain)) for seed in range(5) for run in range(3) for chain in range(4)}
    assert len(words) == 60
    assert tuple(stream(1, 2, 3)) == tuple(stream(1, 2, 3))
    s = stream(1, 0, 0)
    assert np.bincount([below(s, 3) for _ in range(3000)], minlength=3).min() > 900


def test_reflection_keeps_bounds():
    for step in np.linspace(-30, 30, 61):
        assert 1e-8 <= multiplied(0.3, step, 1e-8, 100.0) <= 100.0 + 1e-12
        assert 0.2 <= shifted(0.3, step, 0.2, 0.9) <= 0.9
    assert multiplied(0.3, 0.5, 1e-8, 100.0) == pytest.approx(0.3 * np.exp(0.5))


@pytest.mark.parametrize("numbers", [(1.0, 0.1, 1.0, 1.0), (3.0, 2.0, 1.5, 0.5)])
def test_gamma_dirichlet_density(numbers):
    shape, rate, a, c = numbers
    left = np.array([5, -1, -1, -1, -1, 6, 7, 3], np.int32)
    length = np.random.default_rng(1).exponential(0.3, 8)
    length[0] = 0.0
    external = [1, 2, 3, 4, 5]  # the branch of tip 0 belongs to node 5
    weights = [a if x in external else a * c for x in range(1, 8)]
    total = length.sum()
    expected = stats.gamma.logpdf(total, shape, scale=1 / rate)
    expected += stats.dirichlet.logpdf(length[1:] / total, weights) - (len(weights) - 1) * np.log(total)
    assert log_length_prior(GAMMA_DIRICHLET, np.array(numbers), left, length) == pytest.approx(expected)


def test_exponential_density():
    length = np.array([0.0, 0.1, 0.2, 0.7])
    expected = stats.expon.logpdf(length[1:], scale=0.1).sum()
    prior = np.array([10.0, 0, 0, 0])
    assert log_length_prior(EXPONENTIAL, prior, np.zeros(4, np.int32), length) == pytest.approx(expected)
