"""What a move of dated trees is, which ones there are, and which of them a chain uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np

from phloem.density import clocks
from phloem.errors import InputError
from phloem.inference.mcmc.moves import (
    choice_jump,
    multiplier,
    simplex_dirichlet,
    simplex_slider,
    slider,
    tied_dirichlet,
    tied_slider,
    tied_split_merge,
)
from phloem.inference.time import moves, route_moves, traits
from phloem.inference.time.records import (
    OF_ANCESTORS,
    OF_DATES,
    OF_HAMILTON,
    OF_MODEL,
    OF_NUMBERS,
    OF_TREE,
    SITE_RATES,
    STATES,
    WALKS,
    MoveTable,
)
from phloem.inference.time.structure import TimeModel, of_clocks


@dataclass(frozen=True)
class Move:
    """A way to change a dated tree. A file of the folder `moves` that defines MOVE is all it takes.

    propose: a plain function of a Proposal (compiled/dispatch.py), which it changes, → log Hastings ratio by
    heights, deviations and numbers, -inf for an impossible proposal. A move of deviations is there once for
    every clock. weight: relative. tuning, target, bounds: as in mcmc.move_table.Move. needs: words for what
    must be there: "rates" (deviations of branches with a density everywhere), "spread" (a factor of them, not
    fixed), "jumps" (deviations most of which are 0), "inherited" (by branches below), "peaked" (at 0), "rate"
    (of a clock, not fixed), "root", "ages" (the root's, all clades', not fixed), "dates" (tips of uncertain
    ones), "fossils" (samples that may be ancestors), "groups" (of joinings), "field" (sizes, smooth in time),
    "characters" (that parsimony can tell trees by), "ancestors" (sequences, sampled), "categories" (of sites,
    several), "walks" (what ancestors/walk.py can do). holds: whether distances may be held in its stead
    (compiled/run.py). free: the likelihood never changes. pins: whether it changes which tips are ancestors.
    """

    name: str
    propose: Callable[[Any], float]
    weight: float
    tuning: float = 1.0
    target: float = 0.0
    bounds: tuple[float, float] = (0.0, 0.0)
    needs: str = ""
    holds: bool = False
    free: bool = False
    narrows: bool = False
    pins: bool = False

    @property
    def of_one_clock(self) -> bool:
        """Whether it changes the deviations of one clock."""
        return not OF_ONE_CLOCK.isdisjoint(self.needs.split())


OF_SPREADS = {"spread", "noise", "autocorrelated"}
OF_ONE_CLOCK = {"rates", "jumps", "inherited", "peaked", *OF_SPREADS}  # words of Move.needs


@dataclass(frozen=True)
class Costs:
    """Microseconds, roughly, of a proposal's likelihood, of its gradient, and of a move that leaves it
    alone."""

    likelihood: float
    gradient: float
    prior: float

    @property
    def of_free(self) -> float:
        """How much more often free moves are made: the more the others cost, the less they are noticed."""
        return min(30.0, max(1.0, 0.5 * self.likelihood / self.prior))

    @property
    def of_dates(self) -> float:
        """The same of trajectories that ask for no likelihood, of several hundred steps each."""
        return min(4.0, max(1.0, 0.003 * self.gradient / self.prior))

    @property
    def of_joint(self) -> float:
        """The same of trajectories that ask for its gradient."""
        return min(1.0, max(0.4, 10.0 * self.likelihood / self.gradient))


@dataclass(frozen=True)
class ChainMove:
    """A move as a chain uses it: kind, its number in the compiled dispatch; on, one of records.OF_…; block:
    of numbers, or the clock whose deviations it changes."""

    name: str
    kind: int
    on: int
    move: Move
    block: int = 0


OF_SUPPORT = {
    "positive": (multiplier.MOVE,),
    "unit": (slider.MOVE,),
    "interval": (slider.MOVE,),
    "real": (slider.MOVE,),
    "simplex": (simplex_dirichlet.MOVE, simplex_slider.MOVE),
    "tied": (tied_dirichlet.MOVE, tied_slider.MOVE, tied_split_merge.MOVE),
    "choice": (choice_jump.MOVE,),
}
OF_ROUTES = {traits.ROUTES: route_moves.OF_SET, traits.RATES: route_moves.OF_RATES}
"""Where routes come and go."""
NUMBER_MOVES: tuple[Any, ...] = tuple(
    dict.fromkeys(move for own in (*OF_SUPPORT.values(), *OF_ROUTES.values()) for move in own)
)
"""Moves of blocks of numbers, which all samplers share; in compiled code they come after the tree's."""
JOINT_MOVE = Move("hamilton", lambda p: 0.0, 1.5)
DATES_MOVE = Move("hamilton_dates", lambda p: 0.0, 1.5, needs="rates")
OFTEN = {"clock_scale": 16.0, traits.CLOCK: 16.0, traits.RATES: 2.0, traits.ROUTES: 3.0}
"""Of what no Hamiltonian step moves."""
OF_MODELS = 4.0  # factor of weights, likewise, of which model holds
MODEL_MOVE = Move("hamilton_model", lambda p: 0.0, 0.2, needs="model")
ANCESTORS_MOVE = Move("ancestral_states", lambda p: 0.0, 1.0, needs="ancestors")
JOINT_WITH_ANCESTORS = 0.15  # of the weight of joint trajectories
RATES_MOVE = Move("site_rates", lambda p: 0.0, 0.5, needs="ancestors categories")
WALK_MOVE = Move("local_walk", lambda p: 0.0, 230.0, 1.0, 0.0, (1e-9, 1e9), needs="ancestors walks")
WALKED = {
    "narrow_exchange": 0.2, "subtree_slide": 0.2, "subtree_leap": 0.2, "fixed_height_spr": 0.2,
    "node_height": 0.2, "hamilton": 0.3, "ancestral_states": 0.4, "parsimony_spr": 2.0, "wide_exchange": 0.3,
    "wilson_balding": 0.3, "up_down": 0.3, "tree_scaler": 0.3, "root_height": 0.5,
}  # fmt: skip
"""Factors of weights where walks do the same at a fifth of the price; they are of whole trees' many steps."""
OF_PLACES = "parsimony_spr", "learnt_spr"
"""Moves that choose among all places of a subtree."""
SELDOM = 0.05  # of numbers that have Hamiltonian moves of their own
_HELD = 0.5  # how often distances are held, of moves for which that may be


@cache
def registered() -> Mapping[str, Move]:
    """Name of its file → move, in the order of the names."""
    names = sorted(module.name for module in iter_modules(moves.__path__))
    return {name: import_module(f"{moves.__name__}.{name}").MOVE for name in names}


def chosen_moves(
    model: TimeModel,
    there: Mapping[str, bool],
    weights: Mapping[str, float] | None,
    costs: Costs,
) -> tuple[list[ChainMove], list[float]]:
    """The moves of a chain and their weights, by what they cost: all that can change something, or those that
    weights names. there: what moves may need (Move.needs)."""
    found = [
        ChainMove(name, kind, OF_TREE, move, clock)
        for kind, move in enumerate(registered().values())
        if all(there[need] for need in move.needs.split())
        for clock, name in _of_clocks(move, model)
    ]
    found += [ChainMove("hamilton", 0, OF_HAMILTON, JOINT_MOVE)]
    if there["held"]:
        found += [ChainMove("hamilton_dates", 0, OF_DATES, DATES_MOVE)]
    if there["model"]:
        found += [ChainMove("hamilton_model", 0, OF_MODEL, MODEL_MOVE)]
    if there["ancestors"]:
        found += [ChainMove("ancestral_states", STATES, OF_ANCESTORS, ANCESTORS_MOVE)]
    if there["walks"]:
        found += [ChainMove("local_walk", WALKS, OF_ANCESTORS, WALK_MOVE)]
    if there["ancestors"] and there["categories"]:
        found += [ChainMove("site_rates", SITE_RATES, OF_ANCESTORS, RATES_MOVE)]
    for number, block in enumerate(model.space.blocks):
        of_routes = OF_ROUTES.get(block.name) if model.trait and model.trait.few else None
        own_moves = of_routes or OF_SUPPORT[block.support]
        if of_routes and traits.CLOCK in model.fixed:
            own_moves = tuple(m for m in of_routes if m not in route_moves.ALONE)
        for m in own_moves if block.name not in model.fixed else ():
            kind = len(registered()) + NUMBER_MOVES.index(m)
            width = 0.2 * max(float(np.abs(block.start).max()), 1.0) if block.support == "real" else m.tuning
            often = OF_MODELS if block.support in ("tied", "choice") and not of_routes else 1.0
            weight = 0.5 * block.size**0.5 * OFTEN.get(block.name.partition("{")[0], often)
            own = Move(m.name, m.propose, weight, width, m.target, m.bounds, narrows=m.narrows)
            if block.support == "real":
                own = Move(m.name, m.propose, 0.5, width, m.target, (1e-9, 1e9))
            found.append(ChainMove(f"{block.name}_{m.name}", kind, OF_NUMBERS, own, number))
    if weights is None:
        return found, [_weight(m, model, there, costs) for m in found]
    names = [m.name for m in found]
    for name in weights:
        if name not in names:
            raise InputError(f"no move '{name}' here", hint=f"Choose among {', '.join(names)}.")
    kept = [m for m in found if weights.get(m.name, 0.0) > 0.0]
    return kept, [weights[m.name] for m in kept]


def _of_clocks(move: Move, model: TimeModel) -> list[tuple[int, str]]:
    """The clocks that a move is made for, by number, and what it is called then: of one that changes no
    deviations the first, which stands for all."""
    if not move.of_one_clock:
        return [(0, move.name)]
    names = list(enumerate(of_clocks(move.name, model.clock_names)))
    spreads = not OF_SPREADS.isdisjoint(move.needs.split())
    fixed = spreads and [name in model.fixed for name in model.spread_names]
    return [(k, name) for k, name in names if not (fixed and fixed[k])]


def _weight(m: ChainMove, model: TimeModel, there: Mapping[str, bool], costs: Costs) -> float:
    """Of a move, by what it costs."""
    if m.on == OF_NUMBERS:
        name = model.space.blocks[m.block].name
        if name in [block.name for block in model.parameters.blocks]:
            return m.move.weight * costs.of_free
        moved = there["model"] and name in model.of_substitution and model.space.blocks[m.block].n_coordinates
        often = SELDOM if moved else 1.0
        return m.move.weight * often * (0.5 if there["walks"] else 1.0)
    if m.name in OF_PLACES:
        most = 0.4 if there["ancestors"] else 3.0  # all else is cheap where ancestors are known
        return m.move.weight * min(most, model.n_tips / 50)  # a place or two of each subtree's many
    if m.move.needs == "dates":
        n_moving = int((model.tip_bounds[:, 0] < model.tip_bounds[:, 1]).sum())
        return m.move.weight * n_moving**0.5
    # heights mix by few trajectories, topologies of very many taxa by very many moves, which cost little
    joint = JOINT_WITH_ANCESTORS if there["ancestors"] else costs.of_joint
    factor = {OF_DATES: costs.of_dates, OF_HAMILTON: joint}
    weight = m.move.weight * (costs.of_free if m.move.free else factor.get(m.on, 1.0))
    if m.name == "local_walk":
        return weight / model.n_tips
    return weight * (WALKED.get(m.name, 1.0) if there["walks"] else 1.0)


def move_arrays(chosen: Sequence[ChainMove], weights: Sequence[float], clock: int) -> MoveTable:
    """The moves as the compiled loop reads them."""
    cumulative = np.cumsum(weights)
    cumulative = cumulative / cumulative[-1]
    cumulative[-1] = 1.0
    held = [_HELD if m.move.holds and clock in clocks.INDEPENDENT else 0.0 for m in chosen]
    return MoveTable(
        kind=np.array([m.kind for m in chosen], np.int64),
        on=np.array([m.on for m in chosen], np.int64),
        block=np.array([m.block for m in chosen], np.int64),
        cumulative=cumulative,
        target=np.array([m.move.target for m in chosen], np.float64),
        bounds=np.array([m.move.bounds for m in chosen], np.float64),
        narrows=np.array([m.move.narrows for m in chosen], np.uint8),
        held=np.array(held),
        pins=np.array([m.move.pins for m in chosen], np.uint8),
    )
