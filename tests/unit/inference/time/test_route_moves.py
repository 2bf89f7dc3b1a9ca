"""Moves of a trait's routes and their rates leave the prior as it is; without their ratios, or with rates
left behind, they do not."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from phloem.inference.mcmc.start import stream
from phloem.inference.time.route_moves import OF_RATES, OF_SET

MOVES = {move.name: move.propose for move in (*OF_SET, *OF_RATES)}
ROUTES, POINTS = 4, 30_000


class Numbers(NamedTuple):
    """What of a Proposal these moves read."""

    values: np.ndarray
    numbers: np.ndarray
    first: int
    rng: np.ndarray
    tuning: float = 2.0
    low: float = 1e-6
    high: float = 1e6


def proposal(name, values, rng):
    """values: one number, rates, routes, and maybe another number."""
    n = (len(values) - 1) // 2
    first = 1 if name.startswith("of_") else 1 + n
    return Numbers(values, values[first : first + n], first, rng)


def largest_flow(name, propose):
    """Largest |z| of the mean changes of bounded functions of what is drawn, over one step from draws of the
    prior: clock and rates exponential(1), all sets of routes alike, so that the probability of one is ½."""
    draw, rng, changes = np.random.default_rng(1), stream(2, 0, 0), []
    for _ in range(POINTS):
        values = np.concatenate([draw.exponential(size=1 + ROUTES), draw.integers(0, 2, ROUTES), [1.0]])
        before = values.copy()
        ratio = propose(proposal(name, values, rng))
        gained = before[: 1 + ROUTES].sum() - values[: 1 + ROUTES].sum() + ratio
        taken = gained > -math.inf and math.log(draw.uniform()) < gained
        changes.append(looked_at(values) - looked_at(before) if taken else np.zeros(6))
        assert values[-1] == 1.0 and (name.endswith("_alone") or values[0] == before[0])
    changes = np.array(changes)
    spread = changes.std(axis=0)
    assert (spread > 0).any()
    return np.abs(changes.mean(axis=0)[spread > 0] / spread[spread > 0]).max() * math.sqrt(POINTS)


def looked_at(values):
    rates, there = values[1 : 1 + ROUTES], values[1 + ROUTES : 1 + 2 * ROUTES]
    both = np.tanh([rates @ there, rates @ (1 - there), rates[0], rates[0] * there[0] - rates[1] * there[1]])
    return np.array([*both, there[0], np.tanh(values[0])])


@pytest.mark.parametrize("name", MOVES)
def test_a_move_leaves_the_prior_as_it_is(name):
    assert largest_flow(name, MOVES[name]) < 4.2


@pytest.mark.parametrize("name", ["of_routes", "of_others", "of_routes_alone", "flip_alone"])
def test_a_move_without_its_hastings_ratio_is_seen(name):
    assert largest_flow(name, lambda p: 0.0 * MOVES[name](p)) > 5.0


def test_a_rate_that_stays_with_both_routes_is_seen():
    def planted(p):
        before = p.values.copy()
        ratio, gone = MOVES["swap"](p), 0
        for i in range(ROUTES):
            if before[p.first + i] > p.numbers[i]:
                gone = i
        p.values[1 + gone] = before[1 + gone]
        return ratio

    assert largest_flow("swap", planted) > 5.0


def test_there_may_be_no_such_route():
    none, all_of = ("of_routes", "of_routes_alone", "flip_alone", "swap"), ("of_others", "swap")
    for there, names in ((0.0, none), (1.0, all_of)):
        for name in names:
            values = np.array([5.0, 1.0, 2.0, there, there])
            assert MOVES[name](proposal(name, values, stream(1, 0, 0))) == -math.inf
            assert name == "flip_alone" or values.tolist() == [5.0, 1.0, 2.0, there, there]


@pytest.mark.parametrize("name", ["of_routes_alone", "flip_alone"])
def test_all_other_routes_are_as_fast_as_before(name):
    rng = stream(3, 0, 0)
    for _ in range(20):
        values = np.array([5.0, 1.0, 2.0, 0.5, 1.0, 1.0, 0.0])
        before, ratio = values.copy(), MOVES[name](proposal(name, values, rng))
        speeds = [v[0] * v[1:4] * v[4:] / (v[1:4] @ v[4:]) for v in (before, values)]
        assert (np.abs(speeds[0] - speeds[1]) > 1e-12).sum() == 1 and ratio != 0.0
