"""Node times and the rate of a rooted tree by least squares (To et al. 2016, Syst. Biol. 65:82).

With θ = rate × time the sum Σ w (b − (θ_child − θ_parent))² is quadratic in all θ and the rate at once, and
"no node is older than its parent", "a tip lies within its range" and bounds of the rate are linear: a convex
quadratic programme whose every Newton step is a least-squares problem on the tree (cpu/tree_squares.py), so
that a step costs time linear in the number of nodes. Mehrotra's (1992) predictor-corrector takes 10 to 25.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phloem.dating.cpu.tree_squares import A, B, R, S, T, settle
from phloem.errors import NumericalError

_STEPS = 200
# Of complementarity, where lengths and weights are about 1: enough; so small that rounding comes next; the
# largest that is accepted, beside the cost.
_GAP, _SMALL_GAP, _LARGE_GAP = 1e-20, 1e-12, 1e-8
_PATIENCE = 25  # steps without halving the gap
_FEASIBLE = 1e-9
_BOUNDARY = 0.995


@dataclass(frozen=True, eq=False)
class TimeProblem:
    """A tree of dated tips; numbers are scaled so that lengths, weights and years are about 1.

    parent: (N,) int32, the root last. lengths, weights: (N-1,). lower, upper: (T,) years of the tips, equal
    where exact, perhaps infinite. split: the node whose branch holds the root at a place that is free, in a
    tree that hangs from that branch's upper end; -1 where the last node is the root. rates: the least, more
    than 0, and the most, perhaps infinite.
    """

    parent: np.ndarray
    lengths: np.ndarray
    weights: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    split: int
    rates: tuple[float, float]


@dataclass(frozen=True, eq=False)
class _Point:
    """place: (N,) θ of the nodes. rate. stretch: by how much the branch of the root is longer than it was."""

    place: np.ndarray
    rate: float
    stretch: float = 0.0


class _Constraints:
    """The linear functions of a point that must not be negative, and the springs that stand for them."""

    def __init__(self, problem: TimeProblem) -> None:
        p = self.problem = problem
        n, t = len(p.parent), len(p.lower)
        exact = p.lower == p.upper
        self.years = np.full(n, np.nan)
        self.years[:t][exact] = p.lower[exact]
        self.edges = np.setdiff1d(np.arange(n - 1), [p.split])
        self.lower = np.flatnonzero(~exact & np.isfinite(p.lower))
        self.upper = np.flatnonzero(~exact & np.isfinite(p.upper))
        self.fixed_rate = p.rates[0] == p.rates[1]
        sizes = (
            len(self.edges), len(self.lower), len(self.upper), 3 * (p.split >= 0), 
            0 if self.fixed_rate else 1 + int(np.isfinite(p.rates[1])),
        )  # fmt: skip
        self.ends = np.cumsum(sizes)

    def values(self, point: _Point) -> np.ndarray:
        """(m,) all at least 0 where the point is allowed."""
        p, place = self.problem, point.place
        found = [
            place[self.edges] - place[p.parent[self.edges]],
            place[self.lower] - point.rate * p.lower[self.lower],
            point.rate * p.upper[self.upper] - place[self.upper],
        ]
        if p.split >= 0:
            difference = place[p.split] - place[p.parent[p.split]]
            room = p.lengths[p.split] + point.stretch
            found.append(np.array([room + difference, room - difference, point.stretch]))
        if not self.fixed_rate:
            both = np.array([point.rate - p.rates[0], p.rates[1] - point.rate])
            found.append(both[np.isfinite(p.rates)])
        return np.concatenate(found)

    def cost(self, point: _Point) -> float:
        """The sum of squares."""
        p, place = self.problem, point.place
        misfit = place[self.edges] - place[p.parent[self.edges]] - p.lengths[self.edges]
        stretched = p.weights[p.split] * point.stretch**2 if p.split >= 0 else 0.0
        return float(p.weights[self.edges] @ misfit**2) + stretched

    def pulled(self, stiffness: np.ndarray, wanted: np.ndarray) -> _Point:
        """The point of least squares with every constraint's value drawn to the wanted one."""
        p, n = self.problem, len(self.problem.parent)
        k, y = np.split(stiffness, self.ends[:-1]), np.split(wanted, self.ends[:-1])
        springs, offsets, grounds = np.zeros(n), np.zeros(n), np.zeros((n, 6))
        own = p.weights[self.edges]
        springs[self.edges] = own + k[0]
        offsets[self.edges] = (own * p.lengths[self.edges] + k[0] * y[0]) / springs[self.edges]
        _tie(grounds, self.lower, k[1], p.lower[self.lower], y[1])
        _tie(grounds, self.upper, k[2], p.upper[self.upper], -y[2])
        if p.split >= 0:
            springs[p.split], offsets[p.split] = self._root_spring(k[3], y[3])
        rate = p.rates[0]
        if not self.fixed_rate:
            rate = -1.0
            grounds[-1, A] += k[4].sum()
            grounds[-1, B] += k[4][0] * (p.rates[0] + y[4][0])
            if len(k[4]) == 2:
                grounds[-1, B] += k[4][1] * (p.rates[1] - y[4][1])
        place, rate = settle(p.parent, springs, offsets, self.years, grounds, rate)
        stretch = 0.0
        if p.split >= 0:
            d, length = place[p.split] - place[p.parent[p.split]], p.lengths[p.split]
            ends = k[3] @ (y[3] - np.array([length + d, length - d, 0.0]))
            stretch = ends / (k[3].sum() + p.weights[p.split])
        return _Point(place, rate, stretch)

    def _root_spring(self, k: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        """The branch of the root as one spring, its stretch eliminated: it costs nothing while its ends are
        no further apart than it is long, since the root may be anywhere on it."""
        p = self.problem
        a, b, c = y[0] - p.lengths[p.split], y[1] - p.lengths[p.split], y[2]
        w = p.weights[p.split]
        springs = 4 * k[0] * k[1] + (k[0] + k[1]) * (k[2] + w)
        forces = 2 * k[0] * k[1] * (a - b) + k[0] * (k[2] * (a - c) + w * a) - k[1] * (k[2] * (b - c) + w * b)
        return springs / (k.sum() + w), forces / springs


def _tie(grounds: np.ndarray, nodes: np.ndarray, k: np.ndarray, years: np.ndarray, shift: np.ndarray) -> None:
    """Draw nodes to rate · years + shift with stiffness k."""
    before, total = grounds[nodes, S], grounds[nodes, S] + k
    dt, dr, both = grounds[nodes, T] - years, grounds[nodes, R] - shift, before * k / total
    grounds[nodes, A] += both * dt * dt
    grounds[nodes, B] -= both * dt * dr
    grounds[nodes, T] -= k / total * dt
    grounds[nodes, R] -= k / total * dr
    grounds[nodes, S] = total


def solve_times(problem: TimeProblem) -> tuple[np.ndarray, float]:
    """θ of every node (N,) and the rate; no child before its parent, but for rounding.

    Raises NumericalError where no point is found that keeps the constraints.
    """
    constraints = _Constraints(problem)
    m = constraints.ends[-1]
    point = constraints.pulled(np.full(m, 1.0), np.full(m, 1.0))
    slack = np.maximum(constraints.values(point), 1.0)
    force = np.ones(m)
    best, found, since = np.inf, point, 0
    for _ in range(_STEPS):
        gap = float(slack @ force) / m
        kept = np.abs(constraints.values(point) - slack).max() <= _FEASIBLE * (1.0 + slack.max())
        since = 0 if kept and gap <= 0.5 * best else since + 1
        if kept and gap < best:
            best, found = gap, point
        small = best <= _SMALL_GAP or (since > _PATIENCE and best <= _LARGE_GAP)
        if best <= _GAP or (small and since):
            break
        _, by, pull = _direction(constraints, point, slack, force, np.zeros(m))
        reach = min(_reach(slack, by), _reach(force, pull))
        centre = (float((slack + reach * by) @ (force + reach * pull)) / m / gap) ** 3
        target = centre * gap - by * pull
        towards, by, pull = _direction(constraints, point, slack, force, target)
        far = _BOUNDARY * min(_reach(slack, by), _reach(force, pull))
        point = _Point(
            point.place + far * (towards.place - point.place),
            point.rate + far * (towards.rate - point.rate),
            point.stretch + far * (towards.stretch - point.stretch),
        )
        slack, force = slack + far * by, force + far * pull
    if best <= _LARGE_GAP * (1.0 + constraints.cost(found)):
        return found.place, found.rate
    raise NumericalError("no dates were found that keep all bounds; are rates or dates in conflict?")


def _direction(
    constraints: _Constraints, point: _Point, slack: np.ndarray, force: np.ndarray, target: np.ndarray
) -> tuple[_Point, np.ndarray, np.ndarray]:
    """Newton's step to slack × force = target: where to, and the changes of slack and force."""
    stiffness = force / slack
    towards = constraints.pulled(stiffness, slack + target / force)
    by = constraints.values(towards) - slack
    return towards, by, target / slack - force - stiffness * by


def _reach(values: np.ndarray, by: np.ndarray) -> float:
    """The largest step up to 1 at which no value is negative."""
    down = by < 0
    return float(min(1.0, (values[down] / -by[down]).min())) if down.any() else 1.0
