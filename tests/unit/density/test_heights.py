"""Heights as free numbers and clocks: round trips, Jacobians and derivatives against finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.density import clocks, heights
from phloem.errors import InputError
from phloem.tree.dated import dated_tree, random_dated_tree, with_tip_heights
from phloem.tree.random import caterpillar

RNG = np.random.default_rng(3)


def random_tree(n, rng):
    return random_dated_tree(rng.uniform(0, 4, n).round(1), rng, lambda t, pairs: rng.exponential(5 / pairs))


def chain():
    """A caterpillar whose tips have ties, its root's child a tip."""
    return with_tip_heights(caterpillar(6, 1.0), np.array([0.0, 2.0, 2.0, 2.0, 0.5, 1.0]), 0.3)


TREES = [random_tree(2, RNG), random_tree(3, RNG), random_tree(12, RNG), random_tree(40, RNG), chain()]
DATED = np.zeros(0, np.int64)  # tips whose heights stay
every_tree = pytest.mark.parametrize("tree", TREES, ids=lambda tree: str(tree.n_tips))


def limits_of(tree, least=(), most=()):
    """Anchors and tops, where nodes have ages between ((node, age), …) of each."""
    anchors, tops = np.zeros((2, len(tree.heights)))
    heights.set_anchors(tree.left, tree.right, tree.order, tree.heights, anchors)
    nodes = np.array([x for x, _ in (*least, *most)], np.int64)
    low = np.array([age for _, age in least] + [-np.inf] * len(most))
    high = np.array([np.inf] * len(least) + [age for _, age in most])
    heights.set_limits(tree.parent, nodes, low, high, anchors, tops)
    return anchors, tops


def coordinates(tree, limits):
    z = np.zeros(len(tree.heights))
    heights.to_ratios(tree.left, tree.parent, tree.heights, *limits, z)
    return z


def from_coordinates(tree, limits, z):
    t = tree.heights.copy()
    return t, heights.from_ratios(tree.left, tree.parent, tree.order, *limits, z, t)


def require_jacobian(tree, limits, free):
    """Heights come back, and the log |dt/dz| of the nodes that are free is that of differences."""
    z = coordinates(tree, limits)
    t, log_jacobian = from_coordinates(tree, limits, z)
    np.testing.assert_allclose(t, tree.heights, rtol=1e-13, atol=1e-13)
    steps = 1e-6 * np.eye(len(t))[free]
    ends = [[from_coordinates(tree, limits, z + sign * e)[0][free] for sign in (1, -1)] for e in steps]
    square = np.array([(a - b) / 2e-6 for a, b in ends])
    assert log_jacobian == pytest.approx(np.linalg.slogdet(square)[1], rel=1e-6, abs=1e-6)


@every_tree
def test_round_trip_and_jacobian(tree):
    require_jacobian(tree, limits_of(tree), np.arange(tree.n_tips, len(tree.heights)))


def with_ancestors(tree):
    """Of twelve tips three that are as old as their parents: those have no coordinate."""
    t, done = tree.heights.copy(), []
    for tip in np.argsort(t[: tree.n_tips])[::-1]:
        above = tree.parent[tip]
        sibling = tree.left[above] + tree.right[above] - tip
        if len(done) < 3 and t[sibling] < t[tip] and tree.parent[above] >= 0:
            t[above] = t[tip]
            done.append(int(above))
    assert len(done) == 3
    order = tree.order[np.argsort(t[tree.order], kind="stable")]
    return replace(tree, heights=t, order=order), done


def with_fixed(tree):
    """Three nodes whose heights are fixed, the root one of them, and one below another."""
    inner = np.arange(tree.n_tips, len(tree.heights))
    low = next(x for x in inner if tree.left[x] >= tree.n_tips and tree.parent[x] >= 0)
    return tree, [int(low), int(tree.parent[tree.parent[low]]), int(tree.order[-1])]


def between(tree):
    """Limits of the ages of the root, of a node whose parent is the higher and of one whose parent is not."""
    inner = [x for x in tree.order if tree.left[x] >= 0 and tree.parent[x] >= 0]
    high, low = int(inner[-1]), int(inner[3])
    t, (anchors, _) = tree.heights, limits_of(tree)
    assert tree.parent[low] != high
    least = [(high, 0.5 * (anchors[high] + t[high]))]
    most = [(x, f * t[x]) for x, f in ((high, 1.0 + 1e-4), (low, 50.0), (int(tree.order[-1]), 1.2))]
    assert most[0][1] < t[tree.parent[high]] and most[1][1] > t[tree.parent[low]]
    return least, most


def test_an_age_with_limits_stays_between_them():
    """Whatever its coordinate; the nodes around it, too, come back to where they were."""
    tree = TREES[3]
    least, most = between(tree)
    limits = limits_of(tree, least, most)
    require_jacobian(tree, limits, np.arange(tree.n_tips, len(tree.heights)))
    z, free = coordinates(tree, limits), limits_of(tree)
    for limit, end, is_out in ((least, -20.0, np.less), (most, 20.0, np.greater)):
        far = z.copy()
        for x, _ in limit:
            far[x] = end
        nodes, ages = (list(one) for one in zip(*limit))
        assert not is_out(from_coordinates(tree, limits, far)[0][nodes], ages).any()
        assert is_out(from_coordinates(tree, free, far)[0][nodes], ages).any(), "the control"


@pytest.mark.parametrize(("case", "fixed"), [(with_ancestors, False), (with_fixed, True)])
def test_a_node_as_old_as_a_tip_below_it_or_of_a_fixed_age_has_no_coordinate(case, fixed):
    tree, held = case(TREES[3])
    ages = [(x, tree.heights[x]) for x in held] if fixed else []
    limits = limits_of(tree, ages, ages)
    assert len(set(held)) == 3
    z = coordinates(tree, limits)
    assert (z[held] == -np.inf).all() and np.isfinite(np.delete(z, held)).all()
    t = from_coordinates(tree, limits, z)[0]
    assert (t[held] == tree.heights[held]).all()
    free = np.setdiff1d(np.arange(tree.n_tips, len(t)), held)
    require_jacobian(tree, limits, free)
    slope, steps = weights(tree) * np.cos(tree.heights), 1e-6 * np.eye(len(t))[free]
    heights.pull_back(tree.left, tree.parent, tree.order, *limits, tree.heights, DATED, slope)
    assert (slope[held] == 0.0).all()
    w = np.where(np.isin(np.arange(len(t)), held), 0.0, weights(tree))

    def density(z):
        own, log = from_coordinates(tree, limits, z)
        return w @ np.sin(own) + log

    numeric = [(density(z + e) - density(z - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(slope[free], numeric, rtol=1e-6, atol=1e-6)


def test_only_tips_that_may_be_ancestors_last_no_time():
    tree, _ = with_ancestors(TREES[3])
    n = tree.n_tips
    assert clocks.branches_last(TREES[3].parent, TREES[3].heights, 0)
    assert clocks.branches_last(tree.parent, tree.heights, n) and not clocks.branches_last(
        tree.parent, tree.heights, 0
    )
    inner, tip = TREES[3].heights.copy(), TREES[3].heights.copy()
    inner[n] = inner[tree.parent[n]]
    tip[0] = tip[tree.parent[0]] + 0.1
    for t in (inner, tip):
        assert not clocks.branches_last(tree.parent, t, n)


def weights(tree):
    return np.random.default_rng(7).normal(size=len(tree.heights))


def density_of(tree, limits, z):
    """Something smooth of the heights, as a density of the coordinates."""
    t, log_jacobian = from_coordinates(tree, limits, z)
    return weights(tree) @ np.sin(t) + log_jacobian


def slope_error(tree, pull_back, limits=None):
    limits = limits or limits_of(tree)
    z, slope = coordinates(tree, limits), weights(tree) * np.cos(tree.heights)
    pull_back(tree.left, tree.parent, tree.order, *limits, tree.heights, DATED, slope)
    steps = 1e-6 * np.eye(len(z))[tree.n_tips :]
    numeric = [(density_of(tree, limits, z + e) - density_of(tree, limits, z - e)) / 2e-6 for e in steps]
    return np.abs(slope[tree.n_tips :] - numeric).max() / np.abs(numeric).max()


@every_tree
def test_derivatives(tree):
    assert slope_error(tree, heights.pull_back) < 1e-7


def test_derivatives_where_ages_have_limits():
    tree = TREES[3]
    limits = limits_of(tree, *between(tree))

    def planted(left, parent, order, anchors, tops, t, oldest, slope):  # as if parents bounded all
        free = np.where(parent < 0, tops, np.inf)
        heights.pull_back(left, parent, order, anchors, free, t, oldest, slope)

    assert slope_error(tree, heights.pull_back, limits) < 1e-7
    assert slope_error(tree, planted, limits) > 1e-2


def test_derivatives_without_the_terms_of_the_jacobian_are_seen():
    def planted(left, parent, order, anchors, tops, t, oldest, slope):
        for x in range(len(t)):
            if left[x] >= 0 and parent[x] >= 0:  # drop 1 / (t_parent - a)
                slope[parent[x]] -= 1.0 / (t[parent[x]] - anchors[x])
        heights.pull_back(left, parent, order, anchors, tops, t, oldest, slope)

    assert slope_error(TREES[2], planted) > 1e-2


KINDS = [
    (clocks.STRICT, 0.0), (clocks.BY_CV, 0.7), (clocks.BY_LOG, 0.4), (clocks.BY_LOG_MEDIAN, 0.4),
    (clocks.GAMMA, 0.7),
]  # fmt: skip


def lengths_of(kind, rate, spread, tree, t, e):
    lengths = np.zeros(len(t))
    clocks.set_lengths(kind, rate, clocks.log_spread(kind, spread), tree.parent, t, e, lengths)
    return lengths


def differences(f, x, step=1e-6):
    return np.array([(f(x + h) - f(x - h)) / (2 * step) for h in step * np.eye(len(x))])


@pytest.mark.parametrize("kind, spread", KINDS)
def test_clocks(kind, spread):
    tree, rng, rate, log_rate = TREES[2], np.random.default_rng(5), 0.02, np.log(0.02)
    e, w = rng.normal(size=len(tree.parent)), rng.normal(size=len(tree.parent))

    def value(t=tree.heights, e=e, log_rate=log_rate, spread=spread):
        return w @ np.sin(40 * lengths_of(kind, np.exp(log_rate), spread, tree, t, e))

    lengths, s = lengths_of(kind, rate, spread, tree, tree.heights, e), clocks.log_spread(kind, spread)
    slope = w * 40 * np.cos(40 * lengths)
    by_height, by_e = np.zeros(len(e)), np.zeros(len(e))
    by_rate, by_s = clocks.pull_back_lengths(
        kind, rate, s, tree.parent, tree.heights, e, slope, by_height, by_e
    )
    np.testing.assert_allclose(by_height, differences(lambda t: value(t=t), tree.heights), atol=1e-7)
    np.testing.assert_allclose(by_e, differences(lambda x: value(e=x), e), atol=1e-7)
    numeric = differences(lambda y: value(log_rate=y[0]), np.array([log_rate]))[0]
    assert by_rate == pytest.approx(numeric, abs=1e-7)
    if kind != clocks.STRICT:
        numeric = differences(lambda y: value(spread=y[0]), np.array([spread]))[0]
        assert by_s * clocks.spread_slope(kind, spread, s) == pytest.approx(numeric, abs=1e-7)


def test_what_a_rate_and_a_spread_are_of():
    tree, rng = TREES[2], np.random.default_rng(9)
    branches = np.flatnonzero(tree.parent >= 0)
    lasts = tree.heights[tree.parent[branches]] - tree.heights[branches]

    def rates(kind, spread):
        draws = [
            lengths_of(kind, 0.02, spread, tree, tree.heights, rng.normal(size=len(tree.parent)))[branches]
            for _ in range(4_000)
        ]
        found = np.concatenate([lengths / lasts for lengths in draws])
        return found.mean() / 0.02, np.median(found) / 0.02, found.std() / found.mean(), np.log(found).std()

    mean, _, cv, _ = rates(clocks.BY_CV, 0.6)
    assert (mean, cv) == pytest.approx((1.0, 0.6), abs=0.02)
    mean, _, _, sd = rates(clocks.BY_LOG, 0.6)
    assert (mean, sd) == pytest.approx((1.0, 0.6), abs=0.02)
    _, median, _, sd = rates(clocks.BY_LOG_MEDIAN, 0.6)
    assert (median, sd) == pytest.approx((1.0, 0.6), abs=0.02)


@pytest.mark.parametrize("kind, spread", KINDS[1:])
def test_deviations_at_held_distances(kind, spread):
    tree, rng, rate, log_rate = TREES[2], np.random.default_rng(6), 0.02, np.log(0.02)
    e = rng.normal(size=len(tree.parent))
    s, branches = clocks.log_spread(kind, spread), tree.parent >= 0
    lengths = lengths_of(kind, rate, spread, tree, tree.heights, e)

    def value(t=tree.heights, log_rate=log_rate, s=s):
        found = np.zeros(len(e))
        clocks.set_deviations(kind, np.exp(log_rate), s, tree.parent, t, lengths, found)
        return -branches.sum() * np.log(s) - 0.5 * (found[branches] ** 2).sum()

    back = np.zeros(len(e))
    clocks.set_deviations(kind, rate, s, tree.parent, tree.heights, lengths, back)
    np.testing.assert_allclose(back[branches], e[branches], rtol=1e-10, atol=1e-12)
    by_height = np.zeros(len(e))
    total, by_rate, by_s = clocks.held_by_distances(kind, s, tree.parent, tree.heights, e, -e, by_height)
    assert total - 0.5 * (e[branches] ** 2).sum() == pytest.approx(value(), rel=1e-12)
    scale = np.abs(by_height).max()
    np.testing.assert_allclose(by_height, differences(lambda t: value(t=t), tree.heights), atol=1e-6 * scale)
    numeric = differences(lambda y: value(log_rate=y[0], s=y[1]), np.array([np.log(rate), s]))
    np.testing.assert_allclose([by_rate, by_s], numeric, rtol=1e-6)


def test_trees_of_dates():
    with pytest.raises(InputError, match="not older than its children"):
        dated_tree(np.array([2, 2, -1]), np.array([0.0, 2.0, 1.0]))
    tree = TREES[3]
    again, heights_, own = tree.sorted()
    np.testing.assert_array_equal(heights_, tree.heights[own])
    assert (again[:-1] > np.arange(len(again) - 1)).all() and again[-1] == -1
    np.testing.assert_allclose(tree.tree([f"t{i}" for i in range(40)]).lengths[:-1].min() > 0, True)


def test_random_trees_keep_clades_together():
    rng = np.random.default_rng(1)
    inner, outer = np.zeros(12, bool), np.zeros(12, bool)
    inner[[2, 5, 7]], outer[[2, 5, 7, 9, 11]] = True, True
    for _ in range(20):
        tree = random_dated_tree(
            rng.uniform(0, 3, 12), rng, lambda t, pairs: rng.exponential(1 / pairs), [inner, outer]
        )
        below = [np.arange(12) == x for x in range(12)] + [np.zeros(12, bool)] * 11
        for x in tree.order[tree.order >= 12]:
            below[x] = below[tree.left[x]] | below[tree.right[x]]
        assert any((b == inner).all() for b in below) and any((b == outer).all() for b in below)
