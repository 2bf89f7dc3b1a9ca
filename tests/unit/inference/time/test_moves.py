"""Every move of dated trees leaves the prior as it is: from independent draws of it, one Metropolis step
flows up as often as down, whatever is looked at. Moves run as plain Python here; planted errors are seen.

The table is made by looking into the folder: a move joins by existing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from phloem.density import clocks
from phloem.density.tree_priors import constant
from phloem.density.tree_priors.tree_prior import Genealogy
from phloem.inference.mcmc.start import stream
from phloem.inference.time.compiled.dispatch import Proposal
from phloem.inference.time.move_table import registered
from phloem.tree.dated import dated_tree, random_dated_tree

TIPS = np.array([0.0, 0.0, 1.0, 2.5, 4.0])
SIZE, SPREAD_RATE = 3.0, 2.0
DRAWS = 2500
TUNING = {"subtree_slide": 1.5, "subtree_leap": 1.5, "tree_scaler": 0.4, "up_down": 0.6, "root_height": 1.5}


@dataclass
class Point:
    """A draw of tree, rates and deviations."""

    tree: object
    values: np.ndarray  # rate, spread
    deviations: np.ndarray


def prior_draws(n, seed, uncertain=False):
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        tips = TIPS.copy()
        if uncertain:
            tips[2] = rng.uniform(0.5, 3.0)
        tree = random_dated_tree(tips, rng, lambda t, pairs: rng.exponential(SIZE / pairs))
        values = np.array([rng.lognormal(), rng.exponential(1 / SPREAD_RATE)])
        found.append(Point(tree, values, rng.normal(size=9)))
    return found


def log_density(tree, values, deviations):
    g = Genealogy(tree.heights, tree.order, 5, np.zeros(0, np.int64))
    rate, spread = values
    if spread <= 0:
        return -np.inf
    numbers = -0.5 * np.log(rate) ** 2 - np.log(rate) - SPREAD_RATE * spread
    return (
        constant.log_density(g, np.array([SIZE]), np.zeros(0)) + numbers - 0.5 * (deviations[:8] ** 2).sum()
    )


def proposal(point, tuning, rng, kind=clocks.BY_CV, groups=(2, 2)):
    tree = point.tree
    empty = np.zeros(0)
    return Proposal(
        5, rng, tuning, 0.0, 0.0, empty, np.zeros(8), tree.parent.copy(), tree.left.copy(), tree.right.copy(),
        tree.heights.copy(), point.deviations.copy(), point.values.copy(), 0, 1, kind, np.array(groups),
        np.array([[0.0, 0.0], [0.0, 0.0], [0.5, 3.0], [2.5, 2.5], [4.0, 4.0]]), np.array([2]),
        np.zeros(20, np.int64), np.zeros(20, np.int64), np.zeros(20),
    )  # fmt: skip


def looked_at(tree, values, deviations):
    """Bounded functions of a state: height of the root, of the youngest joining, tree length, three clades,
    rate, spread, deviations."""
    heights = tree.heights
    length = (heights[tree.parent[:-1]] - heights[:-1]).sum()
    clades = [tree.parent[0] == tree.parent[1], tree.parent[2] == tree.parent[3], tree.parent[4] == 8]
    numbers = [
        heights[8] / 12,
        heights[5:].min() / 6,
        length / 40,
        *values,
        heights[2],
        heights[5:8].sum() / 20,
    ]
    return np.array(
        [*np.tanh(numbers), *clades, np.tanh(deviations[0]), np.tanh((deviations[:8] ** 2).sum() / 16)]
    )


def largest_flow(move, points, propose, kind=clocks.BY_CV):
    """Largest |z| of the mean changes of what is looked at over one step from every point."""
    rng, decide, changes = stream(5, 0, 0), np.random.default_rng(9), []
    tuning = TUNING.get(move.name, move.tuning)
    for point in points:
        p = proposal(point, tuning, rng, kind)
        ratio = propose(p)
        before = looked_at(point.tree, point.values, point.deviations)
        change = np.zeros(len(before))
        if ratio > -math.inf and (p.heights[p.parent[:-1]] > p.heights[:-1]).all():
            assert p.parent[8] == -1
            tree = dated_tree(p.parent, p.heights)
            new = log_density(tree, p.values, p.deviations)
            old = log_density(point.tree, point.values, point.deviations)
            if np.log(decide.uniform()) < new - old + ratio:
                change = looked_at(tree, p.values, p.deviations) - before
        changes.append(change)
    changes = np.array(changes)
    spread = changes.std(axis=0)
    moved = spread > 0
    assert moved.any()
    return np.abs(changes[:, moved].mean(axis=0) / spread[moved]).max() * math.sqrt(len(points))


POINTS = prior_draws(DRAWS, 1)
DATED = prior_draws(DRAWS, 2, uncertain=True)
WITH_RATIO = ("root_height", "subtree_leap", "subtree_slide", "tree_scaler", "up_down", "wilson_balding")


@pytest.mark.parametrize("name", [name for name in registered() if name != "group_size"])
def test_a_move_leaves_the_prior_as_it_is(name):
    move = registered()[name]
    assert largest_flow(move, DATED if name == "tip_date" else POINTS, move.propose) < 4.2
    if name == "spread_centred":
        assert largest_flow(move, POINTS, move.propose, clocks.BY_LOG) < 4.2


@pytest.mark.parametrize("name", [*WITH_RATIO, "spread_centred"])
def test_a_move_without_its_hastings_ratio_is_seen(name):
    move, points = registered()[name], POINTS
    if name == "subtree_slide":  # its ratio is seldom far from 0
        points = points + prior_draws(4 * DRAWS, 3)
    assert largest_flow(move, points, lambda p: min(move.propose(p), 0.0) * 0.0) > 5.0


def test_an_exchange_with_the_root_s_sibling_is_seen():
    """An uncle that may be older than the parent: then heights no longer fit, and flows do not balance."""
    move = registered()["fixed_height_spr"]

    def younger_only(p):
        ratio = move.propose(p)
        return -math.inf if p.parent[0] != p.parent[1] else ratio

    assert largest_flow(move, POINTS, younger_only) > 5.0


def test_group_sizes_are_exchanged_evenly():
    move, rng, counts = registered()["group_size"], stream(1, 0, 0), {}
    for groups in ((1, 3), (2, 2), (3, 1)):
        for _ in range(3000):
            p = proposal(POINTS[0], 1.0, rng, groups=groups)
            if move.propose(p) > -math.inf:
                assert p.groups.sum() == 4 and p.groups.min() >= 1
                counts[groups, tuple(p.groups.tolist())] = (
                    counts.get((groups, tuple(p.groups.tolist())), 0) + 1
                )
    for (a, b), n in counts.items():
        assert abs(n - counts[b, a]) < 5 * math.sqrt(n + counts[b, a])
