"""Parts of the data merged while an information criterion falls: which columns share a model.

Greedy: of all pairs the one that lowers the criterion most, again and again (Lanfear, Calcott, Ho and Guindon
2012, Mol. Biol. Evol. 29:1695). Relaxed clustering: of the pairs whose rates are most alike, a share of all
(Lanfear et al. 2014, BMC Evol. Biol. 14:82; the rate is what PartitionFinder compares unless told otherwise).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize

from phloem.density.parameterisation import LENGTHS
from phloem.density.space import Space
from phloem.density.target import Target
from phloem.errors import InputError, ModelError, NumericalError
from phloem.inference.ml.criteria import criteria, free_numbers, idle_lengths
from phloem.inference.ml.kept_fits import plain_values, values_of
from phloem.inference.ml.optimize import fit_parameterisation, refine
from phloem.inference.ml.starts import Start
from phloem.likelihood.term import LikelihoodTerm
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.record import ParameterValue

Lengths = Literal["linked", "proportional", "unlinked"]
Members = tuple[int, ...]  # of a group, numbers of parts, ascending

_LEAST_RATE, _MOST_RATE = 1e-4, 1e4  # times the lengths that are held
_SETTLED = 0.01  # log units
_WALL = 1e8  # as optimize: added to -log L where the model cannot be evaluated


@dataclass(frozen=True)
class MergeSettings:
    """how: of which pairs the best one is sought; percent: of all pairs, under relaxed."""

    how: Literal["greedy", "relaxed"] = "greedy"
    percent: float = 10.0

    def __post_init__(self) -> None:
        if not 0 < self.percent <= 100:
            raise InputError(f"{self.percent:g} percent of the pairs", hint="Give more than 0, at most 100.")


class Fitted(NamedTuple):
    """Of a group of parts under one model: free numbers of the model and rate, and branch lengths where they
    are the group's own. tree_length: in changes per character, at the fit."""

    log_likelihood: float
    n_free: int
    tree_length: float
    parameters: dict[str, ParameterValue]

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        return self._asdict() | {"parameters": plain_values(self.parameters)}

    @staticmethod
    def from_json(record: dict[str, Any]) -> Fitted:
        return Fitted(**record | {"parameters": values_of(record["parameters"])})


class Step(NamedTuple):
    """joined: the two groups, None at the beginning. tried: pairs that were fitted for it. groups: how many
    there are then. n_free and value, the criterion, are of all of them."""

    joined: tuple[Members, Members] | None
    tried: int
    groups: int
    log_likelihood: float
    n_free: int
    value: float


class Merging(NamedTuple):
    """groups: of parts that share a model. steps: first the scheme as given, then every merging that was
    done; refused: the best one that was not, if there was any pair left."""

    groups: tuple[Members, ...]
    steps: tuple[Step, ...]
    refused: Step | None


@dataclass(eq=False)
class Merger:
    """kinds: of every part; only equal ones are merged. fit: of a group. lengths: what they have in common,
    which says what is counted beside the groups: n_lengths once if they are shared, and one rate less than
    groups if they are proportional. n_sites: of all parts."""

    kinds: Sequence[Hashable]
    fit: Callable[[Members], Fitted]
    lengths: Lengths
    n_lengths: int
    n_sites: int
    criterion: Literal["bic", "aicc", "aic"]
    settings: MergeSettings
    so_far: Step | None = field(default=None, init=False)

    def run(self) -> Merging:
        """As long as the criterion falls; so_far is the last merging that was done."""
        self._known: dict[Members, Fitted] = {}
        groups: list[Members] = [(i,) for i in range(len(self.kinds))]
        steps = [self._step(groups, None, 0)]
        self.so_far = steps[-1]
        while pairs := self._pairs(groups):
            before = len(self._known)
            made = [(self._after(groups, pair), pair) for pair in pairs]
            scored = [(self._step(new, pair, 0), new) for new, pair in made]
            best, new = min(scored, key=lambda one: one[0].value)
            best = best._replace(tried=len(self._known) - before)
            if not best.value < steps[-1].value:
                return Merging(tuple(groups), tuple(steps), best)
            groups = new
            steps.append(best)
            self.so_far = best
        return Merging(tuple(groups), tuple(steps), None)

    def _fit(self, members: Members) -> Fitted:
        if members not in self._known:
            self._known[members] = self.fit(members)
        return self._known[members]

    def _pairs(self, groups: Sequence[Members]) -> list[tuple[Members, Members]]:
        """Those that are tried, the most alike first."""
        alike = [(a, b) for a, b in combinations(groups, 2) if self.kinds[a[0]] == self.kinds[b[0]]]
        if self.settings.how == "greedy":
            return alike
        rates = {g: math.log(max(self._fit(g).tree_length, 1e-12)) for g in groups}
        alike.sort(key=lambda pair: abs(rates[pair[0]] - rates[pair[1]]))
        return alike[: math.ceil(len(alike) * self.settings.percent / 100)]

    @staticmethod
    def _after(groups: Sequence[Members], pair: tuple[Members, Members]) -> list[Members]:
        return sorted([g for g in groups if g not in pair] + [tuple(sorted(pair[0] + pair[1]))])

    def _step(self, groups: Sequence[Members], pair: tuple[Members, Members] | None, tried: int) -> Step:
        fits = [self._fit(g) for g in groups]
        value, n_free = sum(f.log_likelihood for f in fits), sum(f.n_free for f in fits)
        n_free += 0 if self.lengths == "unlinked" else self.n_lengths
        n_free -= 1 if self.lengths == "proportional" else 0
        every = criteria(value, n_free, self.n_sites)
        return Step(pair, tried, len(groups), value, n_free, float(getattr(every, self.criterion)))


def fit_group(likelihood: TreeLikelihood, starts: Sequence[Start], lengths: Lengths) -> Fitted:
    """Where the likelihood stands: its own lengths, unless those are shared; these are held, or only
    multiplied by a rate (proportional), as those of all groups are fitted together later."""
    if lengths == "unlinked":
        found = refine(likelihood, starts, _SETTLED)
        length = float(found.branch_lengths.sum())
        return Fitted(found.log_likelihood, found.n_free, length, found.parameters)
    fits = [_held(likelihood, start, lengths == "proportional") for start in starts]
    return max(fits, key=lambda fit: fit.log_likelihood)


def _held(likelihood: TreeLikelihood, start: Start, with_rate: bool) -> Fitted:
    """The model's numbers, and the rate by its logarithm, by L-BFGS-B."""
    names = fit_parameterisation(likelihood)
    space = names.free_space
    target = Target(space, (LikelihoodTerm(likelihood, names),))
    others = Space(tuple(block for block in space.blocks if block.name != LENGTHS))
    held = likelihood.branch_lengths.ravel().copy()

    def point(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = others.from_coordinates(z[1:])
        return x, space.pack(others.unpack(x) | {LENGTHS: held * math.exp(z[0])})

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        x, whole = point(z)
        try:
            value, slope = target.gradient(whole)
        except (NumericalError, ModelError):
            return _WALL, np.zeros_like(z)
        by_name = space.unpack(slope)
        rate = by_name[LENGTHS] @ (held * math.exp(z[0])) if with_rate else 0.0
        rest = others.pull_back(x, others.pack({block.name: by_name[block.name] for block in others.blocks}))
        return -value, -np.concatenate([[rate], rest])

    values = names.block_values([likelihood.parameters | start])
    first = others.to_coordinates(others.inside(others.pack({b.name: values[b.name] for b in others.blocks})))
    room = math.log(_MOST_RATE) if with_rate else 0.0
    bounds = np.concatenate([[[-room, room]], others.coordinate_bounds()])
    begin = np.clip(np.concatenate([[0.0], first]), *bounds.T)
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-10})
    objective(found.x)  # the likelihood stands there then
    lengths = 2 * likelihood.tree.n_tips - 3 - idle_lengths(likelihood, names)
    n_free = free_numbers(likelihood, names) - lengths + with_rate
    length = float(held.sum()) * math.exp(float(found.x[0]))
    return Fitted(-float(found.fun), n_free, length, dict(likelihood.parameters))
