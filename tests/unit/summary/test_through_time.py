"""Lineages and population sizes through time, beside what counting by hand says."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.density.tree_priors import skygrid, skygrid_linear, skyline
from phloem.density.tree_priors.tree_prior import Genealogy
from phloem.summary.through_time import ages_of, grid_sizes, skyline_sizes, through_time

RNG = np.random.default_rng(2)


def drawn(n: int) -> np.ndarray:
    """(n, 9) heights of five dated tips and four joinings older than all of them."""
    tips = np.tile([0.0, 0.0, 0.5, 1.0, 2.0], (n, 1))
    return np.concatenate([tips, 2.0 + np.cumsum(RNG.exponential(1.0, (n, 4)), axis=1)], axis=1)


def test_lineages_are_counted():
    heights = drawn(1)
    found = through_time(heights, None, 50)
    for age, (middle, low, high) in zip(found.ages, found.lineages):
        expected = (heights[0, :5] <= age).sum() - (heights[0, 5:] <= age).sum()
        assert middle == low == high == expected
    assert found.sizes is None and found.root == pytest.approx([heights[0, -1]] * 3)


def test_intervals_are_quantiles_of_draws_whose_root_is_older():
    heights = drawn(400)
    sizes = RNG.exponential(1.0, (400, 30))
    found = through_time(heights, sizes, 30, mass=0.8)
    older = heights[:, -1] > found.ages[20]
    assert 0 < older.sum() < 400
    assert found.sizes[20] == pytest.approx(np.quantile(sizes[older, 20], [0.5, 0.1, 0.9]))
    assert found.sizes[20] != pytest.approx(np.quantile(sizes[:, 20], [0.5, 0.1, 0.9]))  # the control
    assert found.ages[-1] == pytest.approx(np.quantile(heights[:, -1], 0.9))


@pytest.mark.parametrize("prior", ["skyline", "skygrid", "skygrid-linear"])
def test_sizes_are_those_of_the_tree_prior(prior):
    """Its log density has -log N(t) of every joining and an integral of 1 / N: both from sizes on a fine
    grid, beside the density of the tree prior without its smoothing."""
    heights, sizes, groups = drawn(1), np.array([[3.0, 0.7, 2.0]]), np.array([[1, 2, 1]])
    ages = np.linspace(0.0, heights[0, -1], 200_001)
    order = np.argsort(heights[0], kind="stable")
    g = Genealogy(heights[0], order, 5, groups[0], np.zeros(0, np.int64))

    def log_density(values: np.ndarray) -> float:
        at = values[np.searchsorted(ages, heights[0, 5:-1]) - 1]
        k = (heights[0, :5] <= ages[:, None]).sum(1) - (heights[0, 5:] <= ages[:, None]).sum(1)
        return float(-np.log([*at, values[-2]]).sum() - np.trapezoid(0.5 * k * (k - 1) / values, ages))

    if prior == "skyline":
        found = skyline_sizes(heights, sizes, groups, ages)[0]
        smoothing = -np.log(sizes[0]).sum() + np.log(sizes[0, -1] / sizes[0, 0])
        expected = skyline.log_density(g, sizes[0], np.zeros(1))
        expected -= smoothing - (sizes[0, 1:] / sizes[0, :-1]).sum()
        wrong = skyline_sizes(heights, sizes, groups[:, ::-1] * 0 + np.array([2, 1, 1]), ages)[0]
    else:
        module, linear = (skygrid_linear, True) if prior == "skygrid-linear" else (skygrid, False)
        found = grid_sizes(sizes, 2.0, ages, linear)[0]
        x = np.append(sizes[0], 1.5)
        expected = module.log_density(g, x, np.array([2.0, 0.0])) - skygrid.smoothing(x, 0.0)
        wrong = grid_sizes(sizes, 2.0, ages, not linear)[0]
    assert log_density(found) == pytest.approx(expected, rel=1e-4)
    assert log_density(wrong) != pytest.approx(expected, rel=1e-3)


def test_ages_end_where_the_root_does():
    assert ages_of(np.array([[0.0, 0.0, 3.0], [0.0, 0.0, 5.0]]), 3, 0.5).tolist() == [0.0, 2.25, 4.5]


def test_a_root_that_never_moved_has_sizes_up_to_its_age():
    heights = np.repeat(drawn(1), 7, axis=0)
    sizes = np.full((7, 50), 3.0)
    found = through_time(heights, sizes, 50)
    assert found.sizes is not None and (found.sizes == 3.0).all() and found.ages[-1] == heights[0, -1]
