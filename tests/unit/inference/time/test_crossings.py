"""Joinings that Hamiltonian motion carries across the cells of a skygrid: energy, the way back, volumes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from phloem.density import heights, tip_heights
from phloem.inference.time.compiled import crossings, tree_coordinates
from phloem.inference.time.field import Field
from phloem.tree.dated import random_dated_tree

TIPS = np.array([0.0, 0.0, 1.0, 2.5, 4.0, 0.3])
LATER = np.array([0.0, 0.9, 0.0, 0.8, 0.7, 0.4])  # how much older than that or younger tips may be, some
N, SPACING, SIZES = 11, 0.7, 5
LOG_SIZES = np.array([0.5, -0.4, 0.8, 0.1, 1.1])


@pytest.fixture(autouse=True)
def as_python(monkeypatch):
    """The functions themselves, on records of any kind."""
    own = "cell_of", "set_cells", "drift", "_crossing", "_way_up", "_height", "_refract"
    for name in (*own, "_move_anchors", "_slope_of_tip"):
        monkeypatch.setattr(crossings, name, getattr(crossings, name).py_func)
    monkeypatch.setattr(crossings, "set_anchors_by", tree_coordinates.set_anchors_by.py_func)
    for name in ("set_anchors", "set_limits", "from_ratios"):
        for module in (crossings, tree_coordinates):
            monkeypatch.setattr(module, name, getattr(heights, name), raising=False)
    monkeypatch.setattr(tree_coordinates, "set_oldest", tip_heights.set_oldest)
    monkeypatch.setattr(crossings, "from_shares", tip_heights.from_shares)


def case_of(seed, speed=1.0, limited=False, uncertain=False):
    """A tree and momenta of its joinings and of one number beside the sizes, which rest. limited: the ages of
    its root and of a node below can be no more than a little above what they are. uncertain: tips move."""
    rng = np.random.default_rng(seed)
    tree = random_dated_tree(TIPS, rng, lambda t, pairs: rng.exponential(4.0 / pairs))
    room = Field(
        0, np.zeros(1), SIZES, 1, *[np.zeros(0)] * 3, np.zeros((7, 0)), SPACING, np.zeros(N, np.int64),
        np.zeros((7, N)), 0,
    )  # fmt: skip
    anchors, tops, z = np.zeros((3, N))
    heights.set_anchors(tree.left, tree.right, tree.order, tree.heights, anchors)
    nodes = tree.order[-2:] if limited else tree.order[:0]
    most = tree.heights[nodes] + 0.9
    heights.set_limits(tree.parent, nodes, np.full(len(nodes), -np.inf), most, anchors, tops)
    heights.to_ratios(tree.left, tree.parent, tree.heights, anchors, tops, z)
    bounds = np.stack([np.maximum(TIPS - LATER, 0.0), TIPS + LATER], axis=1) if uncertain else None
    tip_limits, oldest = np.zeros((len(TIPS), 2)), np.zeros(N * uncertain, np.int64)
    if uncertain:
        tip_heights.set_tip_limits(tree.parent, tree.heights, bounds, tops, tip_limits)
        tip_heights.to_shares(tip_limits, tree.heights, z)
    moving = np.flatnonzero(tip_limits[:, 0] < tip_limits[:, 1])
    moves = np.append(tree.left >= 0, [False] * SIZES + [True])
    moves[moving] = True
    state = SimpleNamespace(
        slot=[0], parent=tree.parent[None], left=tree.left[None], right=tree.right[None],
        order=tree.order[None], heights=tree.heights[None], usual=np.ones(1),
    )  # fmt: skip
    scratch = SimpleNamespace(
        field=room, y=np.concatenate([z, LOG_SIZES, [0.3]]), anchors=anchors, tops=tops,
        tip_limits=tip_limits, oldest=oldest, ancestors=nodes,
        power=np.array([1.0, 0.8]), stack=np.zeros(2 * N, np.int64),
        momentum=speed * rng.normal(size=len(moves)) * moves, scale=rng.uniform(0.5, 2.0, len(moves)) * moves,
    )  # fmt: skip
    known = SimpleNamespace(least=np.full(len(nodes), -np.inf), most=most)
    data = SimpleNamespace(n_tips=len(TIPS), tree_first=0, moving=moving, calibrations=known)
    crossings.set_cells(data, state, scratch)
    return data, state, scratch


def heights_of(state, scratch):
    found = state.heights[0].copy()
    tip_heights.from_shares(scratch.tip_limits, scratch.y, found)
    heights.set_anchors(state.left[0], state.right[0], state.order[0], found, scratch.anchors)
    tree, limits = (state.left[0], state.parent[0], state.order[0]), (scratch.anchors, scratch.tops)
    heights.from_ratios(*tree, *limits, scratch.y[:N], found)
    return found


def cells_of(state, scratch):
    at = np.minimum((heights_of(state, scratch) / SPACING).astype(int), SIZES - 1)
    return at[len(TIPS) :]


def energy(state, scratch):
    jumps = LOG_SIZES[cells_of(state, scratch)].sum()
    return 0.5 * (scratch.momentum**2).sum() + 0.8 * jumps


@pytest.mark.parametrize("uncertain", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_energy_stays_and_the_way_back_leads_home(seed, uncertain):
    data, state, scratch = case_of(seed, 2.0, seed >= 8, uncertain)
    y, momentum, before = scratch.y.copy(), scratch.momentum.copy(), cells_of(state, scratch)
    begun = energy(state, scratch)
    assert crossings.drift(data, state, scratch, 1.0)
    np.testing.assert_allclose(energy(state, scratch), begun, rtol=1e-9)
    np.testing.assert_array_equal(scratch.field.cell[len(TIPS) :], cells_of(state, scratch))
    assert scratch.y[-1] == pytest.approx(0.3 + momentum[-1] * scratch.scale[-1])
    scratch.momentum *= -1
    assert crossings.drift(data, state, scratch, 1.0)
    np.testing.assert_allclose(scratch.y, y, atol=1e-7)
    np.testing.assert_allclose(scratch.momentum, -momentum, atol=1e-7)
    np.testing.assert_array_equal(cells_of(state, scratch), before)


def test_joinings_cross_and_turn_back(monkeypatch):
    """The cases above have both; and where momenta did not change, energy would not stay."""
    crossed, turned, refract = 0, 0, crossings._refract

    def counted(data, state, scratch, x, upwards):
        nonlocal crossed, turned
        before = scratch.field.cell[x]
        refract(data, state, scratch, x, upwards)
        crossed += scratch.field.cell[x] != before
        turned += scratch.field.cell[x] == before

    def planted(data, state, scratch, x, upwards):
        scratch.field.cell[x] += 1 if upwards else -1

    monkeypatch.setattr(crossings, "_refract", counted)
    for seed in range(12):
        crossings.drift(*case_of(seed, 2.0), 1.0)
    assert crossed > 20 and turned > 5
    monkeypatch.setattr(crossings, "_refract", planted)
    off = []
    for seed in range(12):
        data, state, scratch = case_of(seed, 2.0)
        begun = energy(state, scratch)
        assert crossings.drift(data, state, scratch, 1.0)
        off.append(abs(energy(state, scratch) - begun))
    assert max(off) > 0.5


def volume(seed, uncertain):
    """The determinant of the map from coordinates and momenta to those a while later."""
    own = np.flatnonzero(case_of(seed, uncertain=uncertain)[2].scale)

    def after(point):
        data, state, scratch = case_of(seed, 1.0, seed >= 4, uncertain)
        scratch.y[own], scratch.momentum[own] = np.split(point, 2)
        assert crossings.drift(data, state, scratch, 0.5)
        return np.concatenate([scratch.y[own], scratch.momentum[own]])

    start = case_of(seed, 1.0, seed >= 4, uncertain)[2]
    here, h = np.concatenate([start.y[own], start.momentum[own]]), 1e-6
    columns = [(after(here + h * e) - after(here - h * e)) / (2 * h) for e in np.eye(len(here))]
    return np.linalg.det(np.array(columns))


@pytest.mark.parametrize("uncertain", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_volumes_stay(seed, uncertain):
    assert volume(seed, uncertain) == pytest.approx(1.0, abs=2e-4)


def test_tips_that_are_left_out_of_a_crossing_are_seen(monkeypatch):
    monkeypatch.setattr(crossings, "_slope_of_tip", lambda scratch, tip: 0.0)
    assert max(abs(volume(seed, True) - 1.0) for seed in range(4)) > 1e-2


def test_endless_crossings_end(monkeypatch):
    monkeypatch.setattr(crossings, "MOST", 1)
    found = [crossings.drift(*case_of(seed, 2.0), 1.0) for seed in range(12)]
    assert not all(found)
