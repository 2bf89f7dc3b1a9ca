"""The sampler's numerical kernels against SciPy and NumPy."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy import special, stats
from scipy.linalg import expm

from phloem.inference.mcmc.compiled.model import (
    discrete_gamma,
    gamma_quantile,
    jacobi,
    make_one_zero,
    regularised_gamma,
    symmetric_eigensystem,
)
from phloem.inference.mcmc.compiled.random import below, gamma, multiplied, normal, shifted, uniform
from phloem.inference.mcmc.compiled.run import chain_prior
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.run import new_run
from phloem.inference.mcmc.settings import ChainSettings, ExponentialPrior, GammaDirichletPrior, Priors
from phloem.inference.mcmc.start import stream
from phloem.inference.mcmc.structure import structure_of_model
from phloem.model.grammar import parse_model
from phloem.model.record import EigenSystem, ProcessNumbers, SiteModel
from phloem.model.site_rates import gamma_rates
from phloem.pruning.cpu.column_classes import number_pairs
from phloem.pruning.cpu.model_numbers import model_numbers
from phloem.pruning.cpu.records import Matrices, Nodes, Scratch
from phloem.pruning.cpu.root import weighted_sum
from phloem.pruning.cpu.storage import shape_of_sizes
from phloem.pruning.cpu.transition import (
    exponentials_less_one,
    logarithms,
    transition_four,
    transition_padded,
)


@pytest.mark.parametrize("a", [1e-3, 0.05, 0.5, 1.0, 3.3, 40.0, 200.0, 1000.0])
def test_gamma_functions(a):
    p = np.array([0.01, 0.25, 0.5, 0.75, 0.99])
    x = special.gammaincinv(a, p)
    good = x > 1e-290
    assert [gamma_quantile(a, q) for q in p[good]] == pytest.approx(x[good], rel=1e-10)
    assert [regularised_gamma(a, v) for v in x[good]] == pytest.approx(p[good], rel=1e-11)


@pytest.mark.parametrize("alpha", [1e-3, 0.03, 0.38, 1.0, 7.0, 200.0, 1000.0])
@pytest.mark.parametrize("median", [0, 1])
@pytest.mark.parametrize("n", [1, 4, 7])
def test_discrete_gamma_is_the_models(alpha, median, n):
    rates = np.empty(n)
    discrete_gamma(alpha, median, n, rates)
    expected = gamma_rates(alpha, n, "median" if median else "mean")
    assert rates == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3e-17, -1.0, -2.0], [0.0, -1.0, -2.0]),
        ([-1.0, -3e-17, -2.0], [-1.0, 0.0, -2.0]),
        ([1e-17, -1.0, 2e-17], [0.0, -1.0, 0.0]),
        ([np.nan, -1.0, 1e-17], [np.nan, -1.0, 0.0]),  # no eigensystem stays none
    ],
)
def test_one_eigenvalue_is_zero_and_none_is_positive(values, expected):
    found = np.array(values)
    assert np.exp(1e45 * np.nanmax(found)) != 1.0  # the control: what rounding makes of a long branch
    make_one_zero(found, 3)
    assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("n", [2, 4, 20, 61])
def test_jacobi_diagonalises(n):
    a = np.random.default_rng(n).normal(size=(n, n))
    a = a + a.T
    d, v = a.copy(), np.empty((n, n))
    jacobi(d, v)
    assert np.allclose(v @ np.diag(np.diag(d)) @ v.T, a, atol=1e-12 * n)
    assert np.allclose(v.T @ v, np.eye(n), atol=1e-13 * n)


def test_lapack_diagonalises():
    @numba.njit
    def diagonalise(a, values):
        return symmetric_eigensystem(a, values)

    a = np.random.default_rng(61).normal(size=(61, 61))
    a = a + a.T
    v, values = a.copy(), np.full(61, np.nan)
    assert diagonalise(v, values) == 0
    assert np.allclose(values, np.linalg.eigvalsh(a), atol=1e-11)
    assert np.allclose(v.T @ np.diag(values) @ v, a, atol=1e-11)
    assert not np.allclose(v @ np.diag(values) @ v.T, a, atol=1.0)  # rows are vectors, columns are not


@pytest.mark.parametrize("n", [4, 20])
def test_transition_matrices(n):
    rng = np.random.default_rng(0)
    pi, r = rng.dirichlet(np.ones(n)), rng.random((n, n))
    q = (r + r.T) * pi
    np.fill_diagonal(q, 0)
    q -= np.diag(q.sum(1))
    values, v = np.linalg.eigh(np.sqrt(pi)[:, None] * q / np.sqrt(pi))
    eigen = EigenSystem(values, v / np.sqrt(pi)[:, None], (v * np.sqrt(pi)[:, None]).T.copy())
    rates = np.array([0.1, 0.7, 2.2])
    model = SiteModel.of_one(ProcessNumbers(q, pi, pi, eigen), rates, np.full(3, 1 / 3))
    shape = shape_of_sizes(n, 3, "float64", lanes=4)
    down = np.full((shape.blocks, shape.matrix), np.nan)
    tip, none = np.array([-1]), np.zeros(1, np.int64)
    nodes = Nodes(tip, tip, tip, none, none, none, none)
    matrices = Matrices(down, down.copy(), np.array([[0.3]]), False)
    room = [np.empty(64 * n) for _ in range(7)]
    scratch = Scratch(*room[:5], none, *room[5:])
    for block in range(shape.blocks):
        kernel = transition_four if n == 4 else transition_padded
        kernel(0, block, nodes, matrices, model_numbers(model, shape), shape, scratch)
    if n == 4:
        p = down.reshape(4, 4, 4).transpose(2, 1, 0)
        assert np.all(p[3] == 0)
    else:
        p = down.reshape(3, -1, shape.padded)[:, :n, :n].swapaxes(1, 2)
    for c in range(3):
        assert np.allclose(p[c], expm(q * 0.3 * rates[c]), atol=1e-13)


def weighted_log_sum(x, exponent, weights) -> float:
    """Σ weights log(x 2**exponent)."""
    logs = np.empty(len(x))
    logarithms(x, exponent, 0, len(x), logs)
    return weighted_sum(logs, weights)


@pytest.mark.parametrize("n", [1, 7, 413])
def test_weighted_log_sum(n):
    rng = np.random.default_rng(n)
    x = np.exp(rng.uniform(-600, 3, n))
    weights, exponent = rng.integers(0, 9, n).astype(float), rng.integers(-50, 0, n)
    expected = np.sum(weights * (np.log(x) + exponent * np.log(2)))
    assert weighted_log_sum(x.copy(), exponent.copy(), weights) == pytest.approx(expected, rel=1e-14)
    x[0], weights[0] = 0.0, 1.0
    assert weighted_log_sum(x, exponent, weights) == -np.inf
    weights[0] = 0.0
    expected = np.sum(weights[1:] * (np.log(x[1:]) + exponent[1:] * np.log(2)))
    assert weighted_log_sum(x, exponent, weights) == pytest.approx(expected, rel=1e-14)


def test_exponentials_less_one():
    rng = np.random.default_rng(1)
    x = np.concatenate([-np.exp(rng.uniform(-45, 6.5, 500)), np.exp(rng.uniform(-45, 6.5, 500)), [0.0, -1e5]])
    found = np.append(x, 7.0)
    exponentials_less_one(found, len(x))
    assert found[:-1] == pytest.approx(np.expm1(x), rel=1e-15, abs=0) and found[-1] == 7.0


def numbered(first, second, repeats, entries):
    """Number of classes, the class of every pattern, and the pair that each class is. entries: of the table,
    which decides whether pairs have places of their own in it."""
    counts, n = (max(first) + 1, max(second) + 1), len(first)
    found = [np.full(n, -1, np.int32) for _ in range(3)]
    pairs = np.array(first, np.int32), np.array(second, np.int32)
    k = number_pairs(*pairs, counts, repeats, np.full(entries, -1, np.int64), 0, *found)
    return k, found[0].tolist(), list(zip(found[1][:k].tolist(), found[2][:k].tolist()))


@pytest.mark.parametrize("entries", [8, 64])
def test_classes_number_pairs_by_first_appearance(entries):
    first, second = [0, 1, 0, 4, 1], [1, 0, 1, 0, 0]
    assert numbered(first, second, True, entries) == (3, [0, 1, 0, 2, 1], [(0, 1), (1, 0), (4, 0)])
    assert numbered(first, second, False, entries) == (5, [0, 1, 2, 3, 4], list(zip(first, second)))


@pytest.mark.parametrize("entries", [16, 64])
def test_classes_of_more_codes_than_patterns_are_told_apart(entries):
    """Codes 0 and 7 beside 2 and 1: keyed over the three patterns alone, 0 · 3 + 7 would be 2 · 3 + 1."""
    assert numbered([0, 2, 0], [7, 1, 7], True, entries) == (2, [0, 1, 0], [(0, 7), (2, 1)])


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


def chain_lengths(prior):
    """log_prior of a chain of five taxa, and its lengths, those of tips' branches first, for several trees:
    the node beside tip 0 is the last of the internal ones in some, and in some not."""
    structure = structure_of_model(parse_model("JC", datatype="dna"))
    chains = ChainSettings(use_data=False, n_chains=8, priors=Priors(branch_lengths=prior))
    codes = np.zeros((5, 1), np.int32)
    run = new_run(0, Observations(tuple("abcde"), codes, np.ones((1, 4)), np.ones(1)), structure, chains)
    rng, beside = np.random.default_rng(1), set()
    for h in range(8):
        own, state = np.arange(8) != sum(run.state.left[h, 0, 8:] + run.state.right[h, 0, 8:]), run.state
        beside.add(int(np.flatnonzero(~own)[0]))
        state.lengths[h, 0, 0, :8] = np.where(own, rng.exponential(0.3, 8), 0.0)
        before = state.lengths.copy()
        found = chain_prior(run.data, state, h, 0)
        assert np.array_equal(state.lengths, before)
        yield found, state.lengths[h, 0, 0, :8][own]
    assert 7 in beside and len(beside) > 1


@pytest.mark.parametrize("numbers", [(1.0, 0.1, 1.0, 1.0), (3.0, 2.0, 1.5, 0.5)])
def test_gamma_dirichlet_density(numbers):
    shape, rate, a, c = numbers
    weights = [a] * 5 + [a * c] * 2
    for found, lengths in chain_lengths(GammaDirichletPrior(*numbers)):
        total = lengths.sum()
        expected = stats.gamma.logpdf(total, shape, scale=1 / rate)
        expected += stats.dirichlet.logpdf(lengths / total, weights) - (len(weights) - 1) * np.log(total)
        assert found == pytest.approx(expected)


def test_exponential_density():
    for found, lengths in chain_lengths(ExponentialPrior(10.0)):
        assert found == pytest.approx(stats.expon.logpdf(lengths, scale=0.1).sum())
