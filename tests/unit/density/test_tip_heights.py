"""Heights of tips within limits as free numbers: round trips, Jacobians and slopes against differences, of
tips and nodes together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.density import heights, tip_heights
from phloem.tree.dated import random_dated_tree

LOW = np.array([0.0, 0.0, 2.5, 1.0, 0.0, 1.5, 0.3, 2.0, 0.0])
BOUNDS = np.stack([LOW, LOW + [1.0, 3.0, 0.0, 0.2, 0.0, 2.5, 3.2, 1.0, 0.9]], axis=1)
N_TIPS = len(BOUNDS)
N = 2 * N_TIPS - 1


def drawn(seed):
    """A tree whose tips' heights are within BOUNDS."""
    rng = np.random.default_rng(seed)
    tips = BOUNDS[:, 0] + rng.uniform(0.1, 0.9, N_TIPS) * np.ptp(BOUNDS, axis=1)
    return random_dated_tree(tips, rng, lambda t, pairs: rng.exponential(4.0 / pairs))


def with_ancestor(tree):
    """The oldest tip below some node is as old as this."""
    t = tree.heights.copy()
    for tip in np.argsort(t[:N_TIPS])[::-1]:
        above = tree.parent[tip]
        sibling = tree.left[above] + tree.right[above] - tip
        if BOUNDS[tip, 0] < BOUNDS[tip, 1] and t[sibling] < t[tip] and tree.parent[above] >= 0:
            t[above] = t[tip]
            order = tree.order[np.argsort(t[tree.order], kind="stable")]
            return replace(tree, heights=t, order=order)
    raise AssertionError("no tip is the older of two sisters")


class Coordinates:
    """Those of a tree; nodes: of limited ages, least and most."""

    def __init__(self, tree, nodes=(), least=(), most=()):
        self.tree, self.nodes = tree, np.array(nodes, np.int64)
        self.least, self.most = np.array(least, float), np.array(most, float)
        self.anchors, self.tops, self.z = np.zeros((3, N))
        self.oldest, self.limits = np.zeros(N, np.int64), np.zeros((N_TIPS, 2))
        self.set_anchors(tree.heights)
        tip_heights.set_tip_limits(tree.parent, tree.heights, BOUNDS, self.tops, self.limits)
        heights.to_ratios(tree.left, tree.parent, tree.heights, self.anchors, self.tops, self.z)
        tip_heights.to_shares(self.limits, tree.heights, self.z)
        tips = self.limits[:, 0] < self.limits[:, 1]
        self.free = np.flatnonzero(np.append(tips, self.z[N_TIPS:] > -np.inf))

    def set_anchors(self, t):
        tree = self.tree
        heights.set_anchors(tree.left, tree.right, tree.order, t, self.anchors)
        heights.set_limits(tree.parent, self.nodes, self.least, self.most, self.anchors, self.tops)
        own = tree.left, tree.right, tree.order
        tip_heights.set_oldest(*own, self.limits, self.anchors, self.oldest)

    def heights_at(self, z):
        """(N,) and the log Jacobian."""
        tree, t = self.tree, self.tree.heights.copy()
        total = tip_heights.from_shares(self.limits, z, t)
        self.set_anchors(t)
        own = tree.left, tree.parent, tree.order
        return t, total + heights.from_ratios(*own, self.anchors, self.tops, z, t)

    def slope_error(self, planted=None):
        """Largest, relative, of something smooth of the heights as a density of the coordinates."""
        weights = np.random.default_rng(7).normal(size=N)

        def density(z):
            t, log_jacobian = self.heights_at(z)
            return weights @ np.sin(t) + log_jacobian

        tree, t = self.tree, self.heights_at(self.z)[0]
        slope, own = weights * np.cos(t), (tree.left, tree.parent, tree.order, self.anchors, self.tops)
        heights.pull_back(*own, t, self.oldest if planted is None else planted(self), slope)
        tip_heights.pull_back_shares(self.limits, t, slope)
        steps = 1e-6 * np.eye(N)[self.free]
        expected = [(density(self.z + e) - density(self.z - e)) / 2e-6 for e in steps]
        return np.abs(slope[self.free] - expected).max() / np.abs(expected).max()


def plain(seed):
    return Coordinates(drawn(seed))


def limited(seed):
    """A root that can be no older than a little more, and no younger; and another node."""
    tree = drawn(seed)
    nodes, t = tree.order[[-1, -3]], tree.heights
    return Coordinates(tree, nodes, t[nodes] - np.array([1e-3, 0.5]), t[nodes] + np.array([0.2, 0.3]))


def ancestral(seed):
    return Coordinates(with_ancestor(drawn(seed)))


def held(seed):
    """The age of the node above two tips is fixed, and theirs end there."""
    tree = drawn(seed)
    node = next(x for x in tree.order[N_TIPS - 1 :] if tree.left[x] >= 0)
    return Coordinates(tree, [node], tree.heights[[node]], tree.heights[[node]])


cases = pytest.mark.parametrize("case", [plain, limited, ancestral, held])
seeds = pytest.mark.parametrize("seed", range(6))


@cases
@seeds
def test_round_trip_and_jacobian(case, seed):
    own = case(seed)
    t, log_jacobian = own.heights_at(own.z)
    np.testing.assert_allclose(t, own.tree.heights, rtol=1e-12, atol=1e-12)
    steps = 1e-6 * np.eye(N)[own.free]
    ends = [[own.heights_at(own.z + sign * e)[0][own.free] for sign in (1, -1)] for e in steps]
    square = np.array([(a - b) / 2e-6 for a, b in ends])
    assert log_jacobian == pytest.approx(np.linalg.slogdet(square)[1], rel=1e-6, abs=1e-6)


@cases
@seeds
def test_slopes(case, seed):
    assert case(seed).slope_error() < 1e-7


@cases
def test_tips_that_nodes_do_not_follow_are_seen(case):
    """Slopes as if anchors stayed where they are."""
    assert max(case(seed).slope_error(lambda own: np.full(N, -1)) for seed in range(6)) > 1e-2


@seeds
def test_wherever_coordinates_are_tips_stay_within_limits_and_below_their_parents(seed):
    own, rng = limited(seed), np.random.default_rng(seed)
    for _ in range(50):
        t, log_jacobian = own.heights_at(own.z + 3.0 * rng.normal(size=N))
        assert np.isfinite(log_jacobian)
        assert ((own.limits[:, 0] <= t[:N_TIPS]) & (t[:N_TIPS] <= own.limits[:, 1])).all()
        assert (t[own.tree.parent[:-1]] > t[:-1]).all()


def test_a_fixed_age_bounds_the_tips_below_and_a_tip_at_an_end_stays():
    own = held(1)
    node = int(own.nodes[0])
    below = [x for x in range(N_TIPS) if own.tree.parent[x] == node]
    assert below and (own.limits[below, 1] <= own.tree.heights[node]).all()
    tree = drawn(2)
    t = tree.heights.copy()
    t[0] = BOUNDS[0, 1]
    assert t[tree.parent[0]] > t[0]
    ended = Coordinates(replace(tree, heights=t))
    assert ended.limits[0].tolist() == [1.0, 1.0] and 0 not in ended.free
    assert tip_heights.from_shares(own.limits, np.full(N, 800.0), own.tree.heights.copy()) == -np.inf
