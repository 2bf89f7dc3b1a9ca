"""Deviations that are not normal, and clocks whose rates are handed down: oracles, derivatives, controls."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from phloem.density import autocorrelated_clock, clocks, deviations, local_clocks
from phloem.density.local_clocks import Branches
from phloem.tree.dated import random_dated_tree

RNG = np.random.default_rng(4)
TREE = random_dated_tree(RNG.uniform(0, 4, 9).round(1), RNG, lambda t, pairs: RNG.exponential(5 / pairs))
N, ROOT = 17, 16
BRANCHES = np.flatnonzero(TREE.parent >= 0)


def drawn(kind, seed=1):
    """Deviations and numbers of a clock that are nothing special; members of two nested clades."""
    rng = np.random.default_rng(seed)
    e, member = 0.5 * rng.normal(size=N), np.zeros((0, 9), np.uint8)
    numbers = [0.02] if kind == clocks.RANDOM else [0.02, 0.7]
    if kind == clocks.RANDOM:
        e[rng.permutation(N)[:10]] = 0.0
    if kind in clocks.OF_CLADES:
        inner = TREE.order[TREE.order >= 9]
        below = {int(x): {int(x)} for x in range(9)}
        for x in inner:
            below[int(x)] = below[int(TREE.left[x])] | below[int(TREE.right[x])]
        chain = [x for x in inner[:-1] if len(below[int(x)]) > 1]
        outer = max(chain, key=lambda x: len(below[int(x)]))
        nested = min(chain, key=lambda x: len(below[int(x)]))
        member = np.array([[i in below[int(c)] for i in range(9)] for c in (outer, nested)], np.uint8)
        numbers = [0.02, 3.0, 0.4]
    return e, np.array(numbers), member


# Densities of deviations.


def value_and_slopes(density, e, numbers):
    by_e, by_number = np.zeros(N), np.zeros(len(numbers))
    value = density(TREE.parent, TREE.heights, e, numbers, by_e, np.zeros(N), by_number)
    return value, by_e, by_number


def differences(f, x, step=1e-5):
    eye = step * np.eye(len(x))
    return np.array([(8 * (f(x + h) - f(x - h)) - f(x + 2 * h) + f(x - 2 * h)) / (12 * step) for h in eye])


DENSITIES = {
    clocks.GAMMA: deviations.log_gamma,
    clocks.RANDOM: deviations.spike_and_slab,
    clocks.SHRINKAGE: deviations.bridge,
    clocks.WHITE_NOISE: deviations.white_noise,
}


def slope_error(kind, density):
    e, numbers, _ = drawn(kind)
    there = BRANCHES[e[BRANCHES] != 0.0]
    by_e, by_height, by_number = np.zeros(N), np.zeros(N), np.zeros(len(numbers))
    density(TREE.parent, TREE.heights, e, numbers, by_e, by_height, by_number)

    def at(x):
        moved = e.copy()
        moved[there] = x
        return value_and_slopes(DENSITIES[kind], moved, numbers)[0]

    def at_heights(t):
        room = np.zeros(N), np.zeros(N), np.zeros(len(numbers))
        return DENSITIES[kind](TREE.parent, t, e, numbers, *room)

    by_numbers = differences(lambda x: value_and_slopes(DENSITIES[kind], e, x)[0], numbers)
    found = np.concatenate([by_e[there], by_height, by_number])
    expected = np.concatenate([differences(at, e[there]), differences(at_heights, TREE.heights), by_numbers])
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("kind", DENSITIES)
def test_slopes_of_densities(kind):
    assert slope_error(kind, DENSITIES[kind]) < 1e-8

    def planted(parent, t, e, numbers, by_e, by_height, by_number):
        value = DENSITIES[kind](parent, t, e, numbers, by_e, by_height, by_number)
        by_e *= 1.0 + 1e-4
        by_number *= 1.0 + 1e-4
        return value

    assert slope_error(kind, planted) > 1e-6


@pytest.mark.parametrize("cv", [1e-3, 0.1, 0.7, 3.0])
def test_gamma_rates(cv):
    e, _, _ = drawn(clocks.GAMMA)
    found = value_and_slopes(deviations.log_gamma, e, np.array([1.0, cv]))[0]
    rates = np.exp(cv * e[BRANCHES])
    expected = stats.gamma(1 / cv**2, scale=cv**2).logpdf(rates) + np.log(rates) + np.log(cv)
    assert found == pytest.approx(expected.sum(), rel=1e-8)


@pytest.mark.parametrize("variance", [1e-5, 0.01, 0.7, 30.0])
def test_white_noise(variance):
    """Lengths in substitutions of mean μ τ and variance v μ τ."""
    e, _, _ = drawn(clocks.WHITE_NOISE)
    found = value_and_slopes(deviations.white_noise, e, np.array([0.02, variance]))[0]
    mean = 0.02 * (TREE.heights[TREE.parent] - TREE.heights)[BRANCHES]
    length = mean * np.exp(e[BRANCHES])
    own = stats.gamma(mean / variance, scale=variance)
    np.testing.assert_allclose([own.mean(), own.var()], [mean, variance * mean], rtol=1e-9)
    assert found == pytest.approx((own.logpdf(length) + np.log(length)).sum(), rel=1e-8)


@pytest.mark.parametrize("y", [1e-6, 0.3, 1.0, 9.99, 10.0, 1e5])
def test_digamma(y):
    assert deviations.digamma(y) == pytest.approx(special.digamma(y), rel=1e-12)


def test_the_bridge_is_a_density_of_median_one():
    def one(x):
        parent = np.array([1, -1])
        room = [np.zeros(2) for _ in range(5)]
        return math.exp(deviations.bridge(parent, room[0], np.array([x, 0.0]), np.ones(2), *room[2:]))

    def mass(low, high):  # by y = x^¼, which has no peak
        return integrate.quad(lambda y: 4 * y**3 * one(y**4), low**0.25, high**0.25)[0]

    assert mass(0.0, 1.0) == pytest.approx(0.25, rel=1e-9)
    assert mass(1.0, 1e6) == pytest.approx(0.25, rel=1e-9)


def test_numbers_of_changes_are_poisson():
    e, total = np.zeros(N), 0.0
    cut = stats.poisson(math.log(2)).pmf(np.arange(17)).sum()
    for k in range(17):
        e[BRANCHES[:k]] = 0.3
        own = value_and_slopes(deviations.spike_and_slab, e, np.ones(1))[0]
        slab = stats.gamma(0.5, scale=2.0).logpdf(math.exp(0.3)) + 0.3
        p = math.exp(own - k * slab) * math.comb(16, k)
        assert p == pytest.approx(stats.poisson(math.log(2)).pmf(k) / cut, rel=1e-9)
        total += p
    assert total == pytest.approx(1.0, rel=1e-12)


# Rates that are handed down.

FROM_PARENTS = (clocks.AUTOCORRELATED, clocks.AUTOCORRELATED_LOG)
ALONG = (*clocks.OF_CLADES, clocks.RANDOM, clocks.SHRINKAGE, *FROM_PARENTS)
SET_LENGTHS = dict.fromkeys(ALONG, local_clocks.set_lengths_along)
SET_LENGTHS |= dict.fromkeys(FROM_PARENTS, autocorrelated_clock.set_lengths_autocorrelated)
PULL_BACK = dict.fromkeys(ALONG, local_clocks.pull_back_along)
PULL_BACK |= dict.fromkeys(FROM_PARENTS, autocorrelated_clock.pull_back_autocorrelated)


def branches(kind, t, e, numbers, member):
    return Branches(
        kind, 9, TREE.parent, TREE.left, TREE.right, TREE.order, t, e, numbers, member,
        np.zeros(2 * N, np.int64), np.zeros(2 * N, np.int64), np.zeros(2 * N),
    )  # fmt: skip


def lengths_of(kind, t, e, numbers, member):
    lengths = np.zeros(N)
    assert SET_LENGTHS[kind](branches(kind, t, e, numbers, member), lengths) == 1.0
    return lengths


def walked(kind, t, e, numbers, member):
    """Every branch's way to the root, one factor after the other."""
    log_rate, last = np.zeros(N), t[TREE.parent] - t
    below = [{x} for x in range(9)] + [set()] * 8
    for x in TREE.order[TREE.order >= 9]:
        below[x] = below[TREE.left[x]] | below[TREE.right[x]]
    for x in BRANCHES:
        y = x
        while TREE.parent[y] >= 0:
            step = {clocks.RANDOM: 1.0, clocks.SHRINKAGE: numbers[-1]}
            log_rate[x] += step.get(kind, 0.0) * e[y]
            for c, tips in enumerate(member):
                if below[TREE.parent[y] if kind == clocks.LOCAL_CROWN else y] == set(np.flatnonzero(tips)):
                    log_rate[x] += np.log(numbers[1 + c])
            y = TREE.parent[y]
    rates = np.exp(log_rate)
    mean = 1.0 if kind in clocks.OF_CLADES else (rates * last)[BRANCHES].sum() / last[BRANCHES].sum()
    lengths = numbers[0] * rates * last / mean
    lengths[ROOT] = 0.0
    return lengths


@pytest.mark.parametrize("kind", FROM_PARENTS)
def test_rates_are_drawn_about_those_of_parents(kind):
    """Log-normal of the parent's mean, and of the variance, or the logarithm's, that time gives; a branch has
    the mean of the rates at its ends."""
    e, numbers, member = drawn(kind)
    found = lengths_of(kind, TREE.heights, e, numbers, member)
    rho, rate, variance = {ROOT: 1.0}, *numbers
    for x in TREE.order[-2::-1]:
        above = rho[TREE.parent[x]]
        clock = rate * (TREE.heights[TREE.parent[x]] - TREE.heights[x])
        square = variance * clock
        if kind == clocks.AUTOCORRELATED:
            square = math.log1p(variance * clock / above**2)
        own = stats.lognorm(math.sqrt(square), scale=above * math.exp(-square / 2))
        assert own.mean() == pytest.approx(above, rel=1e-9)
        if kind == clocks.AUTOCORRELATED:
            assert own.var() == pytest.approx(variance * clock, rel=1e-9)
        rho[x] = own.ppf(stats.norm.cdf(e[x]))
        assert found[x] == pytest.approx(0.5 * clock * (above + rho[x]), rel=1e-9)


@pytest.mark.parametrize("kind", [kind for kind in ALONG if kind not in FROM_PARENTS])
def test_rates_are_handed_down(kind):
    e, numbers, member = drawn(kind)
    found = lengths_of(kind, TREE.heights, e, numbers, member)
    expected = walked(kind, TREE.heights, e, numbers, member)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    rates = found[BRANCHES] / (TREE.heights[TREE.parent] - TREE.heights)[BRANCHES]
    assert len(set(rates.round(12))) > 2
    if kind not in clocks.OF_CLADES:  # the mean rate is the clock's
        time = (TREE.heights[TREE.parent] - TREE.heights)[BRANCHES].sum()
        assert found.sum() / time == pytest.approx(numbers[0], rel=1e-12)


@pytest.mark.parametrize("kind", ALONG)
@pytest.mark.parametrize("planted", [False, True])
def test_slopes_along_the_tree(kind, planted):
    e, numbers, member = drawn(kind)
    w = np.random.default_rng(5).normal(size=N)

    def value(t=TREE.heights, e=e, numbers=numbers):
        return w @ np.sin(40 * lengths_of(kind, t, e, numbers, member))

    lengths = lengths_of(kind, TREE.heights, e, numbers, member)
    by_height, by_e, by_number = np.zeros(N), np.zeros(N), np.zeros(len(numbers))
    by_length = 40 * w * np.cos(40 * lengths)
    b = branches(kind, TREE.heights, e, numbers, member)
    PULL_BACK[kind](b, lengths, by_length, by_height, by_e, by_number)
    expected = [
        differences(lambda t: value(t=t), TREE.heights),
        differences(lambda x: value(e=x), e),
        differences(lambda x: value(numbers=x), numbers, 1e-6),
    ]
    if planted:
        by_height[ROOT] *= 1.001
        by_number[0] *= 1.001
    found, expected = np.concatenate([by_height, by_e, by_number]), np.concatenate(expected)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error > 1e-5 if planted else error < 1e-8


@pytest.mark.parametrize("kind", FROM_PARENTS)
def test_a_branch_that_lasts_no_time_has_its_parents_rate(kind):
    """A tip that is an ancestor: its deviation says nothing, and all other slopes are those without it."""
    e, numbers, member = drawn(kind)
    t, w = TREE.heights.copy(), np.random.default_rng(5).normal(size=N)
    siblings = TREE.left[TREE.parent] + TREE.right[TREE.parent] - np.arange(N)
    tip = next(x for x in range(9) if t[siblings[x]] < t[x])
    t[TREE.parent[tip]] = t[tip]

    def value(e=e, numbers=numbers):
        return w @ np.sin(40 * lengths_of(kind, t, e, numbers, member))

    lengths = lengths_of(kind, t, e, numbers, member)
    assert lengths[tip] == 0.0 and (np.delete(lengths, [tip, ROOT]) > 0).all()
    by_height, by_e, by_number = np.zeros(N), np.zeros(N), np.zeros(len(numbers))
    by_length = 40 * w * np.cos(40 * lengths)
    b = branches(kind, t, e, numbers, member)
    PULL_BACK[kind](b, lengths, by_length, by_height, by_e, by_number)
    assert by_e[tip] == 0.0
    np.testing.assert_allclose(by_e, differences(lambda x: value(e=x), e), atol=1e-6)
    np.testing.assert_allclose(by_number, differences(lambda x: value(numbers=x), numbers, 1e-6), rtol=1e-6)


@pytest.mark.parametrize("kind", [kind for kind in ALONG if kind not in FROM_PARENTS])
def test_a_branch_that_lasts_no_time_is_told(kind):
    e, numbers, member = drawn(kind)
    t = TREE.heights.copy()
    assert SET_LENGTHS[kind](branches(kind, t, e, numbers, member), np.zeros(N)) == 1.0
    t[0] = t[TREE.parent[0]]
    assert SET_LENGTHS[kind](branches(kind, t, e, numbers, member), np.zeros(N)) == 0.0
