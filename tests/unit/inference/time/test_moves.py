"""Every move of dated trees leaves the prior as it is: from independent draws of it, one Metropolis step
flows up as often as down, whatever is looked at. Moves run as plain Python here; planted errors are seen.

The table is made by looking into the folder: a move joins by existing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from phloem.density import clocks, deviations
from phloem.density.tree_priors import constant, skyline
from phloem.density.tree_priors.tree_prior import Genealogy
from phloem.inference.mcmc.start import stream
from phloem.inference.time.compiled import edit
from phloem.inference.time.compiled.dispatch import Proposal
from phloem.inference.time.compiled.groups import Grouped, follow, groups_follow, one_exchanged
from phloem.inference.time.compiled.known_places import entry, place_key
from phloem.inference.time.field import Field
from phloem.inference.time.move_table import registered
from phloem.inference.time.moves import learnt_spr, parsimony_spr, tip_date
from phloem.inference.time.records import KnownPlaces
from phloem.tree.dated import dated_tree, random_dated_tree
from unit.inference.mcmc.test_walks import characters

TIPS = np.array([0.0, 0.0, 1.0, 2.5, 4.0])
SIZE, SPREAD_RATE = 3.0, 2.0
DRAWS = 2500
ROOM = characters(5)
_X, _I = np.zeros(0), np.zeros(0, np.int64)


def known_places():
    """Two in three of all pairs of clades of five tips as if they had been beside each other, at all ages."""
    rng = np.random.default_rng(8)
    keys = np.append(rng.integers(1, 2**63, 5).astype(np.uint64), np.zeros(4, np.uint64))
    of = [keys[:5][[members >> k & 1 == 1 for k in range(5)]].sum() for members in range(32)]
    table, ages = np.zeros(1009, np.uint64), np.zeros((1009, 3))
    for a, b in product(range(1, 32), repeat=2):
        if a & b == 0 and rng.uniform() < 2 / 3:
            key = np.uint64(place_key(of[a], of[b]))
            at, looks = entry(table, key), rng.integers(1, 30)
            table[at] = key
            mean = rng.uniform(3.0, 9.0)
            ages[at] = looks, mean, looks * (mean * rng.uniform(0.1, 0.6)) ** 2
    return KnownPlaces(keys, np.zeros(9, np.uint64), table, ages, np.array([30.0]))


KNOWN = known_places()
NO_FIELD = Field(0, _X, 0, 0, _X, _X, _X, np.zeros((7, 0)), 0.0, _I, np.zeros((4, 0)), 0)
TUNING = {"subtree_slide": 1.5, "subtree_leap": 1.5, "tree_scaler": 0.4, "up_down": 0.6, "root_height": 1.5}


BOUNDS = np.array([[0.0, 0.0], [0.0, 0.0], [0.5, 3.0], [2.5, 2.5], [4.0, 4.0]])
WIDER = np.array([[0.0, 0.0], [0.0, 2.0], [0.5, 3.0], [2.0, 3.5], [4.0, 4.0]])


@dataclass
class Point:
    """A draw of tree, rates and deviations."""

    tree: object
    values: np.ndarray  # rate, spread of every clock
    deviations: np.ndarray  # of the last one
    free: np.ndarray | None = None  # whose rate is not fixed, None: all
    bounds: np.ndarray = field(default_factory=BOUNDS.copy)  # of tips' heights
    known: dict = field(init=False, default_factory=dict)  # by density: as_it_is, which every move asks for


def normal(parent, t, e, numbers, by_e, by_t, by_number):
    return -0.5 * (e[:8] ** 2).sum()


def changes(rng, *_):
    """Deviations as spike_and_slab has them."""
    e, k = np.zeros(9), 9
    while k > 8:
        k = rng.poisson(np.log(2))
    e[rng.permutation(8)[:k]] = np.log(rng.gamma(0.5, 2.0, k))
    return e


def log_of_gamma(rng, shape):
    """Of mean 1, also where that is too small for a float."""
    return np.log(rng.gamma(1 + shape) / shape) + np.log(rng.uniform(size=len(shape))) / shape


def noise(rng, tree, values):
    lasts = tree.heights[tree.parent] - tree.heights
    lasts[8] = 1.0  # the root's own is not used
    return log_of_gamma(rng, values[0] * lasts / values[1])


DEVIATIONS = {
    "normal": (clocks.BY_CV, normal, lambda rng, *_: rng.normal(size=9)),
    "log": (clocks.BY_LOG, normal, lambda rng, *_: rng.normal(size=9)),
    "log, median": (clocks.BY_LOG_MEDIAN, normal, lambda rng, *_: rng.normal(size=9)),
    "autocorrelated": (clocks.AUTOCORRELATED, normal, lambda rng, *_: rng.normal(size=9)),
    "autocorrelated, log": (clocks.AUTOCORRELATED_LOG, normal, lambda rng, *_: rng.normal(size=9)),
    "noise": (clocks.WHITE_NOISE, deviations.white_noise, noise),
    "gamma": (
        clocks.GAMMA,
        deviations.log_gamma,
        lambda rng, tree, x: log_of_gamma(rng, np.full(9, x[1] ** -2)) / x[1],
    ),
    "changes": (clocks.RANDOM, deviations.spike_and_slab, changes),
    "bridge": (
        clocks.SHRINKAGE,
        deviations.bridge,
        lambda rng, *_: rng.choice([-1, 1], 9) * rng.gamma(4.0, size=9) ** 4 / deviations.MEDIAN,
    ),
}
"""The clock, the density of its deviations, and draws from it."""


def prior_draws(n, seed, uncertain=False, kind="normal", bounds=BOUNDS):
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        tips = TIPS.copy()
        if uncertain:
            moving = bounds[:, 0] < bounds[:, 1]
            tips[moving] = rng.uniform(*bounds[moving].T)
        tree = random_dated_tree(tips, rng, lambda t, pairs: rng.exponential(SIZE / pairs))
        values = np.array([rng.lognormal(), rng.exponential(1 / SPREAD_RATE)])
        found.append(Point(tree, values, DEVIATIONS[kind][2](rng, tree, values), bounds=bounds))
    return found


def log_density(tree, values, e, kind="normal"):
    g = Genealogy(tree.heights, tree.order, 5, np.zeros(0, np.int64), tree.parent)
    rates, spreads = values[::2], values[1::2]
    if spreads.min() <= 0:
        return -np.inf
    numbers = (-0.5 * np.log(rates) ** 2 - np.log(rates) - SPREAD_RATE * spreads).sum()
    own = DEVIATIONS[kind][1](
        tree.parent, tree.heights, e, values[-2:], np.zeros(9), np.zeros(9), np.zeros(2)
    )
    return constant.log_density(g, np.array([SIZE]), np.zeros(0)) + numbers + own


def proposal(point, tuning, rng, kind=clocks.BY_CV, groups=(2, 2)):
    tree = point.tree
    k, empty = 2 if len(point.values) == 4 else 1, np.zeros(0)
    free = np.ones(k, np.uint8) if point.free is None else point.free
    room = ROOM._replace(per_length=np.repeat(ROOM.per_length / k, k))
    return Proposal(
        5, rng, tuning, 0.0, 0.0, empty, 0, np.zeros(8), tree.parent.copy(), tree.left.copy(),
        tree.right.copy(), tree.heights.copy(), tree.order.copy(), *with_row(point), point.values.copy(),
        np.arange(0, 2 * k, 2), np.arange(1, 2 * k, 2), free, k - 1, kind, 0, np.array(groups),
        point.bounds, np.flatnonzero(point.bounds[:, 0] < point.bounds[:, 1]),
        np.zeros(20, np.int64), np.zeros(20, np.int64), np.zeros(20), room, NO_FIELD, KNOWN, np.ones(2),
    )  # fmt: skip


def with_row(point):
    """Deviations, and as the only row of all clocks'."""
    own = point.deviations.copy()[None]
    return own[0], own


def looked_at(tree, values, deviations):
    """Bounded functions of a state: height of the root, of the youngest joining, tree length, three clades,
    rate, spread, deviations, how many are 0."""
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
        [
            *np.tanh(numbers),
            *clades,
            np.tanh(deviations[0]),
            np.tanh(deviations[:5].sum()),
            np.tanh((deviations[:8] ** 2).sum() / 16),
            (deviations[:8] == 0).sum(),
            (deviations[:5] == 0).sum(),
        ]
    )


def as_it_is(point, kind):
    """Log density and what is looked at."""
    if kind not in point.known:
        of = point.tree, point.values, point.deviations
        point.known[kind] = log_density(*of, kind), looked_at(*of)
    return point.known[kind]


def largest_flow(move, points, propose, kind="normal"):
    """Largest |z| of the mean changes of what is looked at over one step from every point."""
    rng, decide, changes = stream(5, 0, 0), np.random.default_rng(9), []
    tuning = TUNING.get(move.name, move.tuning)
    for point in points:
        p = proposal(point, tuning, rng, DEVIATIONS[kind][0])
        ratio = propose(p)
        old, before = as_it_is(point, kind)
        change = np.zeros(len(before))
        if ratio > -math.inf and (p.heights[p.parent[:-1]] > p.heights[:-1]).all():
            assert p.parent[8] == -1
            tree = dated_tree(p.parent, p.heights)
            new = log_density(tree, p.values, p.deviations, kind)
            if np.log(decide.uniform()) < new - old + ratio:
                change = looked_at(tree, p.values, p.deviations) - before
        changes.append(change)
    changes = np.array(changes)
    spread = changes.std(axis=0)
    moved = spread > 0
    assert moved.any()
    return np.abs(changes[:, moved].mean(axis=0) / spread[moved]).max() * math.sqrt(len(points))


@cache
def draws(uncertain: bool = False) -> list[Point]:
    """From the prior; uncertain: when a tip lived."""
    return prior_draws(DRAWS, 1 + uncertain, uncertain=uncertain)


@cache
def of_wider_dates() -> list[Point]:
    return prior_draws(DRAWS, 3, uncertain=True, bounds=WIDER)


WITH_RATIO = (
    "learnt_spr",
    "parsimony_spr",
    "root_height",
    "sampled_ancestor",
    "subtree_leap",
    "subtree_slide",
    "tree_scaler",
    "up_down",
    "wilson_balding",
)


OWN = {
    "jump_flip": "changes",
    "jump_walk": "changes",
    "jump_swap": "changes",
    "deviation_scaler": "bridge",
    "noise_variance": "noise",
    "autocorrelated_variance": "autocorrelated",
}
"""Moves of other deviations than normal ones."""
ALSO = {"jump_swap": "bridge", "autocorrelated_variance": "autocorrelated, log"}
OF_SIZES = ("group_size", "skyline_boundary", "size_field")
"""Moves of a tree prior's own numbers; the last one's test is test_size_field.py."""


@cache
def of_clock(kind: str) -> list[Point]:
    """The draws, their deviations those of a clock."""
    rng = np.random.default_rng(4)
    return [replace(p, deviations=DEVIATIONS[kind][2](rng, p.tree, p.values)) for p in draws()]


@cache
def of_two_clocks() -> list[Point]:
    """Deviations are those of the second."""
    pairs = zip(draws(), draws(uncertain=True))
    return [replace(p, values=np.append(q.values, p.values)) for p, q in pairs]


@pytest.mark.parametrize("name", OWN)
def test_a_move_of_a_clock_leaves_its_prior_as_it_is(name):
    kind, move = OWN[name], registered()[name]
    assert largest_flow(move, of_clock(kind), move.propose, kind) < 4.2
    if name in ALSO:
        assert largest_flow(move, of_clock(ALSO[name]), move.propose, ALSO[name]) < 4.2


@pytest.mark.parametrize("name", [name for name in OWN if name != "jump_walk"])
def test_a_move_of_a_clock_without_its_hastings_ratio_is_seen(name):
    kind, move = OWN[name], registered()[name]
    points = of_clock(kind)
    if name in ("jump_swap", "deviation_scaler", "autocorrelated_variance"):
        points = [p for p in points if p.deviations[:8].any()] * 3
    assert largest_flow(move, points, lambda p: min(move.propose(p), 0.0) * 0.0, kind) > 5.0


@pytest.mark.parametrize("name", [name for name in registered() if name not in (*OF_SIZES, *OWN)])
def test_a_move_leaves_the_prior_as_it_is(name):
    move = registered()[name]
    dates = move.needs == "dates"
    assert largest_flow(move, draws(uncertain=dates), move.propose) < 4.2
    if dates:
        assert largest_flow(move, of_wider_dates(), move.propose) < 4.2
    if name in ("spread_centred", "parsimony_spr"):  # these read what kind of clock it is
        assert largest_flow(move, draws(), move.propose, "log") < 4.2
        for kind in ("bridge", "gamma", "noise"):
            assert largest_flow(move, of_clock(kind), move.propose, kind) < 4.2


def test_a_date_that_only_gets_older_is_seen(monkeypatch):
    right = tip_date.shifted
    monkeypatch.setattr(tip_date, "shifted", lambda value, by, low, high: right(value, abs(by), low, high))
    assert largest_flow(tip_date.MOVE, of_wider_dates(), tip_date.MOVE.propose) > 10


@pytest.mark.parametrize("module", [parsimony_spr, learnt_spr])
def test_places_below_a_cut_leave_the_prior_as_it_is(module, monkeypatch):
    """As of very many taxa; planted: a cut that depends on where the subtree was has no way back."""
    move = module.MOVE
    monkeypatch.setattr(module, "top_of_places", edit.top_of_places.py_func)
    monkeypatch.setattr(edit, "MANY", 5)
    assert largest_flow(move, draws(), move.propose) < 4.2
    monkeypatch.setattr(edit, "NEARBY", 1.0)
    assert largest_flow(move, draws(), move.propose) < 4.2

    def at_the_old_place(p, x, height):
        return x if p.heights[x] < height else -1

    monkeypatch.setattr(edit, "below_cut", at_the_old_place)
    assert largest_flow(move, draws() * 2, move.propose) > 5.0


@pytest.mark.parametrize("name", ["branch_deviation", "parsimony_spr", "spread_centred", "up_down"])
def test_a_move_beside_another_clock_leaves_the_prior_as_it_is(name):
    move = registered()[name]
    assert largest_flow(move, of_two_clocks(), move.propose) < 4.2


def test_up_down_counts_the_rates_that_it_changes():
    move = registered()["up_down"]
    held = [replace(p, free=np.array([0, 1], np.uint8)) for p in of_two_clocks()]
    assert largest_flow(move, held, move.propose) < 4.2
    p = proposal(held[0], 0.5, stream(1, 0, 0))
    move.propose(p)
    assert (p.values == held[0].values).tolist() == [True, True, False, True]
    as_of_one = 3 / 2  # planted: T - 2 where it is T - 3
    assert largest_flow(move, of_two_clocks() * 7, lambda p: as_of_one * move.propose(p)) > 5.0


@pytest.mark.parametrize("name", [*WITH_RATIO, "spread_centred"])
def test_a_move_without_its_hastings_ratio_is_seen(name):
    move, points = registered()[name], draws()
    if name == "subtree_slide":  # its ratio is seldom far from 0
        points = points + prior_draws(4 * DRAWS, 3)
    assert largest_flow(move, points, lambda p: min(move.propose(p), 0.0) * 0.0) > 5.0


def test_an_exchange_with_the_root_s_sibling_is_seen():
    """An uncle that may be older than the parent: then heights no longer fit, and flows do not balance."""
    move = registered()["fixed_height_spr"]

    def younger_only(p):
        ratio = move.propose(p)
        return -math.inf if p.parent[0] != p.parent[1] else ratio

    assert largest_flow(move, draws(), younger_only) > 5.0


def test_group_sizes_are_exchanged_evenly():
    move, rng, counts = registered()["group_size"], stream(1, 0, 0), {}
    for groups in ((1, 3), (2, 2), (3, 1)):
        for _ in range(3000):
            p = proposal(draws()[0], 1.0, rng, groups=groups)
            if move.propose(p) > -math.inf:
                assert p.groups.sum() == 4 and p.groups.min() >= 1
                counts[groups, tuple(p.groups.tolist())] = (
                    counts.get((groups, tuple(p.groups.tolist())), 0) + 1
                )
    for (a, b), n in counts.items():
        assert abs(n - counts[b, a]) < 5 * math.sqrt(n + counts[b, a])


@cache
def skyline_draws(n, seed):
    """Trees of five dated tips with sizes (3,) and groups (3,) of their four joinings."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        sizes = [rng.lognormal(1.0, 0.5)]
        for _ in range(2):
            sizes.append(rng.exponential(sizes[-1]))
        groups = np.array([(1, 1, 2), (1, 2, 1), (2, 1, 1)][rng.integers(3)])
        of_joining = np.repeat(sizes, groups)

        def waiting(t, pairs, of_joining=of_joining):
            """Of as many pairs, the joinings so far are told by which tips have arrived."""
            lineages = (1 + math.isqrt(1 + 8 * pairs)) // 2
            return rng.exponential(of_joining[int((t >= TIPS).sum()) - lineages] / pairs)

        tree = random_dated_tree(TIPS, rng, waiting)
        found.append((tree, np.array(sizes), groups))
    return found


def skyline_density(tree, sizes, groups):
    g = Genealogy(tree.heights, tree.order, 5, groups, tree.parent)
    return skyline.log_density(g, sizes, np.ones(1)) - np.log(sizes[0]) - 2 * (np.log(sizes[0]) - 1) ** 2


def skyline_flow(propose):
    move, rng, decide = registered()["skyline_boundary"], stream(5, 0, 0), np.random.default_rng(9)
    steps = []
    for tree, sizes, groups in skyline_draws(DRAWS, 6):
        p = proposal(Point(tree, sizes, np.zeros(9)), 1.0, rng, groups=groups)
        ratio = propose(move, p)
        assert p.groups.sum() == 4 and p.groups.min() >= 1
        change = np.zeros(9)
        new, old = skyline_density(tree, p.values, p.groups), skyline_density(tree, sizes, groups)
        if np.log(decide.uniform()) < new - old + ratio:
            looked = [np.tanh(np.append(x / 4, np.log(x))) for x in (p.values, sizes)]
            change = np.append(looked[0] - looked[1], p.groups - groups)
        steps.append(change)
    changes_ = np.array(steps)
    assert (changes_[:, -3:] != 0).any(axis=1).mean() > 0.05
    return np.abs(changes_.mean(axis=0) / changes_.std(axis=0)).max() * math.sqrt(len(changes_))


def test_boundaries_of_groups_leave_the_prior_as_it_is():
    assert skyline_flow(lambda move, p: move.propose(p)) < 4.2
    assert skyline_flow(lambda move, p: min(move.propose(p), 0.0) * 0.0) > 5.0


def groups_flow(move, following):
    """Largest |z| of mean changes over one step, where groups and sizes follow what a move took away."""
    rng, decide, steps = stream(5, 0, 0), np.random.default_rng(9), []
    for tree, sizes, groups in skyline_draws(2 * DRAWS, 6):
        p = proposal(Point(tree, sizes, np.zeros(9)), TUNING.get(move.name, move.tuning), rng, groups=groups)
        ratio, change = move.propose(p), np.zeros(8)
        if ratio > -math.inf and (p.heights[p.parent[:-1]] > p.heights[:-1]).all():
            new, own = dated_tree(p.parent, p.heights), sizes.copy()
            before = Grouped(tree.order, tree.heights, groups, sizes)
            ratio += following(rng, before, Grouped(new.order, new.heights, p.groups, own))
            assert not ratio > -math.inf or (p.groups.sum() == 4 and p.groups.min() >= 1)
            difference = skyline_density(new, own, p.groups) - skyline_density(tree, sizes, groups)
            if np.log(decide.uniform()) < difference + ratio:
                heights = [np.array([t.heights[8] / 12, t.heights[5:].min() / 6]) for t in (new, tree)]
                looked = [np.tanh(np.append(h, np.log(x))) for h, x in zip(heights, (own, sizes))]
                change = np.append(looked[0] - looked[1], p.groups - groups)
        steps.append(change)
    found = np.array(steps)
    found = found[:, found.std(axis=0) > 0]
    assert ((found != 0).mean(axis=0) > 0.005).all() and found.shape[1] >= 2
    return np.abs(found.mean(axis=0) / found.std(axis=0)).max() * math.sqrt(len(found))


@pytest.mark.parametrize("name", ["wilson_balding", "subtree_leap", "root_height"])
def test_groups_and_sizes_that_follow_a_joining_leave_the_prior_as_it_is(name):
    assert groups_flow(registered()[name], follow) < 4.2


def test_sizes_that_are_drawn_anew_without_their_ratio_are_seen():
    move = registered()["root_height"]
    assert groups_flow(move, lambda *args: min(follow(*args), 0.0) * 0.0) > 5.0


def grouped(heights, groups):
    return Grouped(np.argsort(heights, kind="stable"), heights, np.array(groups), np.ones(len(groups)))


def shares(groups, gone, came):
    """Groups → how often they come of these, and the log Hastings ratio."""
    rng, found = stream(2, 0, 0), {}
    for _ in range(400):
        own = np.array(groups)
        ratio, _ = groups_follow(rng, own, gone, came)
        if ratio > -math.inf:
            n, _ = found.get(tuple(own), (0, 0.0))
            found[tuple(own)] = n + 1 / 400, ratio
    return found


def test_the_way_back_of_groups_is_as_likely_as_their_ratio_says():
    ratios = set()
    for gone, came in np.ndindex(7, 7):
        for groups in ((2, 2, 3), (1, 2, 4), (3, 3, 1)):
            for after, (forward, ratio) in shares(groups, gone, came).items():
                back, other = shares(after, came, gone)[groups]
                assert ratio == pytest.approx(-other)
                assert math.log(round(2 * back) / round(2 * forward)) == pytest.approx(ratio)
                ratios.add(round(ratio, 6))
    assert len(ratios) == 3  # control: it is not always 0


def test_which_joining_went_elsewhere_is_found():
    """Seven joinings in groups of 2, 2 and 3; one goes from the first group's time into the last one's."""
    heights = np.append(np.zeros(8), np.arange(1.0, 8.0))
    moved, twice, rng = heights.copy(), heights.copy(), stream(1, 0, 0)
    moved[8], twice[8], twice[9] = 5.5, 5.5, 6.5
    start = grouped(heights, (2, 2, 3))
    assert one_exchanged(start, grouped(moved, (2, 2, 3))) == (0, 4)
    assert one_exchanged(start, grouped(twice, (2, 2, 3))) == (-1, -1)
    assert one_exchanged(start, start) == (-1, -1)
    groups = np.array([2, 2, 3])
    assert groups_follow(rng, groups, 0, 4) == (0.0, 2)
    assert groups.tolist() == [1, 2, 4]
    assert groups_follow(rng, np.array([1, 3, 3]), 0, 4)[0] == -math.inf
    kept = grouped(twice, (2, 2, 3))
    assert follow(rng, start, kept) == 0.0 and kept.groups.tolist() == [2, 2, 3]
