"""Population sizes drawn all at once: the approximation that they come from, and that draws balance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from phloem.density.tree_priors import skygrid
from phloem.density.tree_priors.tree_prior import LEVEL, Genealogy, Scale, registered
from phloem.inference.mcmc.start import stream
from phloem.inference.time.compiled import by_address, field
from phloem.inference.time.field import Field
from phloem.inference.time.move_table import registered as registered_moves
from phloem.inference.time.moves import size_field
from phloem.tree.dated import random_dated_tree
from unit.inference.time.test_moves import TIPS, draws, proposal

FIELDS = [name for name, prior in registered().items() if prior.field]
SPACING, LEVEL_SPREAD, SHAPE, RATE = 2.0, 0.5, 4.0, 2.0


def genealogy(tree):
    return Genealogy(tree.heights, tree.order, tree.n_tips, np.zeros(0, np.int64), tree.parent)


def room_of(name, n_sizes, settings, precise=1):
    n = n_sizes + 1
    return Field(
        by_address.TREE_PRIOR.address(registered()[name].density), settings, n_sizes, precise, np.ones(n),
        np.zeros(n), np.zeros(9), np.zeros((7, n_sizes)), 0.0, np.zeros(9, np.int64), np.zeros((4, 9)), 0,
    )  # fmt: skip


def case_of(name):
    """A tree, a room and numbers: sizes and precision."""
    tree = random_dated_tree(TIPS, np.random.default_rng(2), lambda t, pairs: 3.0 / pairs)
    parameters = registered()[name].parameters(Scale(6.0, 5, 4), {LEVEL: True})
    n = parameters.blocks[0].size
    x = np.append(np.random.default_rng(3).lognormal(1.0, 0.5, n), 1.7)
    return tree, room_of(name, n, np.append(parameters.settings, 0.0)), x


@pytest.mark.parametrize("power", [1.0, 0.6])
@pytest.mark.parametrize("first, end", [(0, 4), (1, 3), (2, 3)])
@pytest.mark.parametrize("name", FIELDS)
def test_mode_and_curvature_are_those_of_the_density(name, first, end, power):
    tree, room, x = case_of(name)
    prior, settings, g = registered()[name], room.settings, genealogy(tree)
    room.x[:] = x
    assert field.fit(room, g, power, first, end)

    def energy(theta):
        y = x.copy()
        y[first:end] = np.exp(theta)
        return -power * prior.log_density(g, y, settings) - theta.sum()

    found = optimize.minimize(energy, np.log(x[first:end]), method="BFGS", options={"gtol": 1e-7})
    mode = room.rows[field.MODE, first:end]
    np.testing.assert_allclose(mode, found.x, atol=1e-5)
    lower = np.eye(end - first) + np.diag(room.rows[field.BELOW, first : end - 1], -1)
    curvature = lower @ np.diag(room.rows[field.DIAGONAL, first:end]) @ lower.T
    h, own = 1e-4, np.eye(end - first)

    def difference(a, b):
        rises = energy(mode + h * (a + b)) - energy(mode + h * (a - b))
        return (rises - energy(mode - h * (a - b)) + energy(mode - h * (a + b))) / (4 * h * h)

    expected = [[difference(a, b) for a in own] for b in own]
    np.testing.assert_allclose(curvature, expected, rtol=2e-3, atol=2e-3)


def test_draws_have_the_density_that_is_said_of_them():
    """Σ over draws of 1 / density is a volume: the mean of exp(other - own) over draws is 1."""
    tree, room, x = case_of("skygrid")
    room.x[:] = x
    assert field.fit(room, genealogy(tree), 1.0, 0, 4)
    rng, sizes, ratios = stream(1, 0, 0), x[:4].copy(), []
    mode, wide = room.rows[field.MODE].copy(), np.full(4, 0.5)
    d = room.rows[field.DIAGONAL]
    constant = 4 * (
        math.lgamma(0.5 * field.DEGREES + 0.5)
        - math.lgamma(0.5 * field.DEGREES)
        - 0.5 * math.log(field.DEGREES * math.pi)
    )
    for _ in range(20_000):
        field.draw(room, rng, sizes, 0, 4)
        own = constant + field.log_density(room, sizes, 0, 4)
        theta = np.log(sizes)
        other = -0.5 * (((theta - mode) / (wide / np.sqrt(d))) ** 2).sum() - theta.sum()
        ratios.append(math.exp(other - np.log(wide / np.sqrt(d)).sum() - 2 * math.log(2 * math.pi) - own))
    z = (np.mean(ratios) - 1) / (np.std(ratios) / math.sqrt(len(ratios)))
    assert abs(z) < 4
    assert np.std(ratios) < 3


SETTINGS = np.array([SPACING, 1.0, 0.0])


def grid_draws(n, seed):
    """Trees of five dated tips with the sizes of three cells, and the precision of their steps."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        precision = rng.gamma(SHAPE) / RATE
        theta = 1.0 + LEVEL_SPREAD * rng.normal() + np.cumsum([0.0, *rng.normal(size=2) / precision**0.5])
        sizes = np.exp(theta)
        found.append((random_dated_tree(TIPS, rng, waiting_in(sizes, rng)), np.append(sizes, precision)))
    return found


def waiting_in(sizes, rng):
    """How long pairs wait from a time on, by the cells that they wait in."""

    def waiting(t, pairs):
        left, begin = rng.exponential() / pairs, t
        while True:
            m = min(int(t / SPACING), len(sizes) - 1)
            room = np.inf if m == len(sizes) - 1 else (m + 1) * SPACING - t
            if left * sizes[m] <= room:
                return t + left * sizes[m] - begin
            left -= room / sizes[m]
            t = (m + 1) * SPACING

    return waiting


def grid_density(tree, x):
    level = -0.5 * ((math.log(x[0]) - 1.0) / LEVEL_SPREAD) ** 2 - math.log(x[0])
    precise = (SHAPE - 1) * math.log(x[3]) - RATE * x[3]
    return skygrid.log_density(genealogy(tree), x, SETTINGS) + level + precise


def largest_flow(points, propose):
    """Largest |z| of the mean changes of logarithms over one step from every point."""
    decide, changes = np.random.default_rng(9), []
    rng, room = stream(5, 0, 0), room_of("skygrid", 3, SETTINGS)
    for tree, x in points:
        like = draws()[0]
        p = proposal(like, 2.0, rng)._replace(
            parent=tree.parent, heights=tree.heights, order=tree.order, values=x.copy(), tree_first=0,
            field=room, groups=np.zeros(0, np.int64), power=np.ones(2),
        )  # fmt: skip
        ratio, change = propose(p), np.zeros(4)
        if ratio > -math.inf:
            gain = grid_density(tree, p.values) - grid_density(tree, x) + ratio
            if np.log(decide.uniform()) < gain:
                change = np.tanh(np.log(p.values)) - np.tanh(np.log(x))
        changes.append(change)
    changes = np.array(changes)
    assert (changes != 0).mean() > 0.2
    return np.abs(changes.mean(axis=0) / changes.std(axis=0)).max() * math.sqrt(len(points))


def test_the_move_leaves_sizes_and_precision_as_they_are():
    points = grid_draws(6000, 1)
    assert largest_flow(points, registered_moves()["size_field"].propose) < 4.2


@pytest.mark.parametrize("error", ["no way back", "precision without its factor"])
def test_a_wrong_hastings_ratio_is_seen(error, monkeypatch):
    points, move = grid_draws(6000, 1), registered_moves()["size_field"]
    if error == "no way back":
        monkeypatch.setattr(size_field, "log_density", lambda *_: 0.0)
        assert largest_flow(points, move.propose) > 5.0
        return

    def without(p):
        before = p.values[3]
        return move.propose(p) - math.log(p.values[3] / before)

    assert largest_flow(points, without) > 5.0
