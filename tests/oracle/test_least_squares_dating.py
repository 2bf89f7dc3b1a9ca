"""Dating by least squares against a dense quadratic programme; the root against all branches in turn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls

from phloem.data.dates import TipDates
from phloem.dating.interior_point import TimeProblem, solve_times
from phloem.dating.least_squares import DatingSettings, _bounds, _rooted, _Scale, date_tree
from phloem.errors import InputError
from phloem.tree.random import uniform_rooted
from phloem.tree.reroot import root_at_branch, unroot


def dense(p: TimeProblem) -> tuple[np.ndarray, float]:
    """The programme min |E x − f|² with G x ≥ h as one of least distance, by non-negative least squares
    (Lawson & Hanson 1974, chapter 23). x: undated nodes, the rate, the stretch of the root's branch."""
    n, t = len(p.parent), len(p.lower)
    exact = p.lower == p.upper
    free = [x for x in range(n) if x >= t or not exact[x]]
    column = {x: i for i, x in enumerate(free)}
    unit = np.eye(len(free) + 1 + (p.split >= 0))
    rate = unit[len(free)]

    def at(x: int) -> np.ndarray:
        return unit[column[x]] if x in column else rate * p.lower[x]

    rows, wanted, allowed, least = [], [], [rate, -rate], [p.rates[0], -min(p.rates[1], 1e3)]
    for x in range(n - 1):
        d, root = at(x) - at(p.parent[x]), np.sqrt(p.weights[x])
        if x == p.split:
            u = unit[-1]
            rows.append(root * u)
            wanted.append(0.0)
            allowed += [u + d, u - d, u]
            least += [-p.lengths[x], -p.lengths[x], 0.0]
        else:
            rows.append(root * d)
            wanted.append(root * p.lengths[x])
            allowed.append(d)
            least.append(0.0)
    for x in np.flatnonzero(~exact):
        if np.isfinite(p.lower[x]):
            allowed.append(at(x) - rate * p.lower[x])
            least.append(0.0)
        if np.isfinite(p.upper[x]):
            allowed.append(rate * p.upper[x] - at(x))
            least.append(0.0)
    q, r = np.linalg.qr(np.array(rows))
    if np.linalg.cond(r) > 1e8:
        raise np.linalg.LinAlgError
    inverse, target = np.linalg.inv(r), q.T @ np.array(wanted)
    g = np.array(allowed) @ inverse
    h = np.array(least) - g @ target
    system, unit_end = np.vstack([g.T, h]), np.eye(len(r) + 1)[-1]
    duals, _ = nnls(system, unit_end, maxiter=10_000)
    residual = system @ duals - unit_end
    x = inverse @ (target - residual[:-1] / residual[-1])
    return np.array([at(k) @ x for k in range(n)]), float(rate @ x)


def problem(seed: int, split: bool, uncertain: float = 0.3, zeros: float = 0.3) -> TimeProblem:
    rng = np.random.default_rng(seed)
    tree = uniform_rooted(int(rng.integers(5, 15)), rng)
    n, parent = tree.n_nodes, tree.parent.copy()
    lower = rng.uniform(-1, 0, tree.n_tips)
    open_ended = rng.random(tree.n_tips) < uncertain
    upper = lower + np.where(open_ended, rng.uniform(0.05, 0.3, tree.n_tips), 0.0)
    at = -1
    if split:
        at = int(tree.children(n - 1).min())
        n, parent = n - 1, parent[:-1]
        parent[at], parent[-1] = n - 1, -1
    lengths = rng.exponential(1, n - 1) * (rng.random(n - 1) >= zeros)
    weights = 1 / (lengths + 0.05)
    bounds = (1e-3, 0.5 if seed % 3 == 0 else np.inf)
    return TimeProblem(parent, lengths, weights / weights.mean(), lower, upper, at, bounds)


def cost(p: TimeProblem, place: np.ndarray) -> float:
    durations = place[:-1] - place[p.parent[:-1]]
    misfit = durations - p.lengths
    if p.split >= 0:
        misfit[p.split] = max(0.0, abs(durations[p.split]) - p.lengths[p.split])
    return float(p.weights @ misfit**2)


def violation(p: TimeProblem, place: np.ndarray, rate: float) -> float:
    """By how much the worst constraint is broken."""
    durations, tips = place[:-1] - place[p.parent[:-1]], place[: len(p.lower)]
    low, high = rate * p.lower, rate * p.upper
    inner = np.delete(durations, p.split) if p.split >= 0 else durations
    return float(
        max(-inner.min(), (low - tips).max(), (tips - high).max(), p.rates[0] - rate, rate - p.rates[1])
    )


@pytest.mark.parametrize("uncertain, exactness", [(0.0, 1e-9), (0.3, 1e-7)])
@pytest.mark.parametrize("split", [False, True])
def test_times_are_those_of_a_dense_quadratic_programme(split, uncertain, exactness):
    """A tip that just reaches the end of its range is known to the root of the cost's rounding only."""
    active = compared = 0
    for seed in range(24):
        p = problem(seed, split, uncertain)
        try:
            wanted, rate = dense(p)
        except np.linalg.LinAlgError:  # places that cost nothing to move have no one answer
            continue
        place, found = solve_times(p)
        assert violation(p, place, found) <= 1e-12
        assert cost(p, place) == pytest.approx(cost(p, wanted), rel=1e-12)
        assert found == pytest.approx(rate, rel=1e-8, abs=1e-9)
        assert np.allclose(place, wanted, rtol=0, atol=exactness)
        active += int((np.delete(place[:-1] - place[p.parent[:-1]], max(p.split, 0)) < 1e-9).sum())
        compared += 1
    assert compared >= 12 and active >= compared  # constraints did hold


def test_a_planted_error_is_seen():
    p = problem(2, False)
    place, _ = solve_times(p)
    weights = p.weights.copy()
    weights[0] *= 1.001
    assert not np.allclose(place, dense(replace(p, weights=weights))[0], rtol=0, atol=1e-9)
    assert not np.allclose(
        place, dense(replace(p, upper=p.upper + (p.upper > p.lower)))[0], rtol=0, atol=1e-9
    )


def case(seed: int, tips: int = 9) -> tuple:
    rng = np.random.default_rng(seed)
    tree = uniform_rooted(tips, rng, mean_length=0.05)
    lower = 2000 + rng.uniform(0, 10, tips)
    return tree, TipDates(tree.taxa, lower, lower + (rng.random(tips) < 0.2) * 0.5)


@pytest.mark.parametrize("seed", range(6))
def test_the_root_is_the_best_of_all_branches(seed):
    tree, dates = case(seed)
    settings = DatingSettings(sites=500, rates=(1e-4, np.inf))
    found = date_tree(tree, dates, settings)
    free = unroot(tree)
    scale = _Scale(tree, dates, settings)
    costs = [_rooted(root_at_branch(free, x), scale, free=True).cost for x in range(free.n_nodes - 1)]
    assert found.proven and found.cost == pytest.approx(min(costs), rel=1e-8)
    bounds = _bounds(free, scale)
    assert np.all(bounds <= np.array(costs) * (1 + 1e-9)) and bounds.max() > bounds.min()


def test_bounds_are_the_costs_where_no_constraint_holds():
    tree, dates = case(1)
    clock = 1e-3 * (dates.lower + 0.25 * (dates.upper - dates.lower))
    exact = TipDates(tree.taxa, dates.lower, dates.lower)
    heights = np.zeros(tree.n_nodes)
    heights[: tree.n_tips] = 1e-3 * dates.lower
    for x in range(tree.n_nodes - 1):  # a clock-like tree, then a little noise
        p = tree.parent[x]
        heights[p] = min(heights[p] or np.inf, heights[x] - 0.01)
    noise = np.random.default_rng(5).normal(0, 2e-4, tree.n_nodes - 1)
    lengths = np.append(heights[:-1] - heights[tree.parent[:-1]] + noise, 0.0)
    tree = replace(tree, lengths=lengths)
    assert clock.min() > 0 and lengths[:-1].min() > 0
    settings = DatingSettings(sites=500)
    scale, free = _Scale(tree, exact, settings), unroot(tree)
    found = date_tree(tree, exact, settings)
    bounds = _bounds(free, scale)
    assert found.tried == 1 and found.cost == pytest.approx(bounds.min(), rel=1e-9)
    assert found.rate == pytest.approx(1e-3, rel=0.3)


def test_absurd_inputs_end_in_dates_or_in_errors_of_the_user():
    """Lengths, years and rates of any size, open ranges: order and ranges hold, all numbers are finite."""
    rng, dated = np.random.default_rng(7), 0
    for _ in range(30):
        tips = int(rng.choice([3, 4, 8, 20]))
        tree = uniform_rooted(tips, rng)
        lengths = rng.exponential(10.0 ** rng.uniform(-6, 1), tree.n_nodes)
        lengths *= rng.random(tree.n_nodes) > 0.3
        span = 10.0 ** rng.uniform(-3, 5)
        lower = 2000 - span * rng.random(tips)
        upper = lower + span * rng.exponential(1, tips) * (rng.random(tips) < rng.choice([0, 0.3, 1]))
        lower[rng.random(tips) < 0.1], upper[rng.random(tips) < 0.1] = -np.inf, np.inf
        given = {} if rng.random() < 0.5 else {"rate": 10.0 ** rng.uniform(-8, 0)}
        sites = int(10 ** rng.uniform(0, 6))
        try:
            dates = TipDates(tree.taxa, lower, upper)
            found = date_tree(replace(tree, lengths=lengths), dates, DatingSettings(sites=sites, **given))
        except InputError:
            continue
        dated += 1
        years, dates = found.years, dates.of(found.tree.taxa)
        slip = 1e-7 * max(1.0, float(np.ptp(years)))
        assert np.isfinite(years).all() and (years[:-1] >= years[found.tree.parent[:-1]]).all()
        assert (dates.lower - years[:tips]).max() <= slip and (years[:tips] - dates.upper).max() <= slip
    assert dated > 12
