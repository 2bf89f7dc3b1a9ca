"""A working distribution of dated trees fitted to draws, and what cannot have one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from phloem.density import clocks
from phloem.density.autocorrelated_clock import deviations_of
from phloem.density.calibrations import age_limits
from phloem.density.parameterisation import PARTITION_RATES
from phloem.density.terms.beta import Beta
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.normal import Normal
from phloem.errors import InputError
from phloem.inference.mcmc.samples import Samples
from phloem.inference.mcmc.working_fit import (
    LEAST_DRAWS,
    NARROWEST,
    beta_of,
    chosen_draws,
    densities_of_numbers,
    gamma_of,
    log_rooted,
    of_topologies,
)
from phloem.inference.time.clades import calibrations
from phloem.inference.time.draws import HEIGHTS, RATES, trace_columns
from phloem.inference.time.settings import Clade
from phloem.inference.time.structure import TimeModel
from phloem.inference.time.substitution import names_of
from phloem.inference.time.working import (
    AgeLimit,
    DatedWorking,
    LogGamma,
    NodeDensity,
    Place,
    place_of,
    rooted_halves,
)

_UNFIT = (clocks.RANDOM, clocks.SHRINKAGE)  # most deviations are 0, or next to it: no normal density
_PLAIN = "Leave --stones-from out: plain stones begin at the prior."
SMALLEST = 1e-300
WALK, LOST = 600.0, 1e-3
"""How far log sizes may walk from the youngest within the bounds of sampling, at least, and with which
probability they may leave these before the prior is another one than its density says."""


class DatedDraw(NamedTuple):
    """parent, heights (N,), deviations (K', N) of the clocks that have them, values (n,)."""

    parent: np.ndarray
    heights: np.ndarray
    deviations: np.ndarray
    values: np.ndarray


def fit_dated_working(model: TimeModel, samples: Sequence[Samples], first: Sequence[int]) -> DatedWorking:
    """That of chains, from samples of runs of theirs, each from its number `first` on, by moments or maximum
    likelihood. Errors: InputError for models whose trees have no density here, and for fewer than LEAST_DRAWS
    draws."""
    _refuse(model)
    drawn = [_draw(model, own, i) for own, i in chosen_draws(samples, first)]
    priors = {prior.block: prior.family for prior in model.priors}
    free = [block for block in model.space.blocks if block.name not in model.fixed]
    values = np.array([draw.values for draw in drawn])
    numbers, constant = densities_of_numbers(model.space, free, priors, values)
    limits = _limits_of(model)
    places = [place_of(draw.parent, draw.heights, limits) for draw in drawn]
    nodes, others = _of_nodes(model.clock, drawn, places)
    oldest = np.array([draw.heights[-1] - place.least[-1] for draw, place in zip(drawn, places)])
    above = np.log(np.maximum(oldest, SMALLEST))
    root = LogNormal(float(above.mean()), max(float(above.std(ddof=1)), NARROWEST))
    ways = Topologies(model.n_tips, tuple(_tips(model, clade) for clade in model.clades if _is_held(clade)))
    halves = [rooted_halves(draw.parent, place.below) for draw, place in zip(drawn, places)]
    splits, unseen = of_topologies(halves, ways.log_number)
    constant -= ways.log_number((1 << model.n_tips) - 1)
    constant += log_mass(model) or 0.0
    return DatedWorking(numbers, constant, limits, root, nodes, others, splits, unseen, len(drawn))


def log_mass(model: TimeModel) -> float | None:
    """Log of what the prior adds up to over all trees and numbers, but that of numbers beyond the bounds of
    sampling; None where only sampling tells: of tree priors whose densities leave out what depends on
    numbers or dates, and where something is known of clades, which multiplies them."""
    known = model.tree_prior.log_mass
    if known is None or model.clades or _walks_away(model):
        return None
    return known(model.n_tips)


def _walks_away(model: TimeModel) -> bool:
    """Whether log population sizes, a walk of few restraints, are likely to leave the bounds of sampling."""
    if "precision" not in [block.name for block in model.parameters.blocks]:
        return False
    steps = model.space.block("pop_size").size - 1
    held = "precision" in model.fixed
    logs = np.linspace(-690.0, 690.0, 50_001)
    x = np.exp(logs)
    if held:
        weights, x = np.ones(1), model.space.block("precision").start
    else:
        prior = next(own.family for own in model.priors if own.block == "precision")
        weights = np.exp(prior.log_density(x[:, None]) + logs) * (logs[1] - logs[0])
    within = 1.0 - np.minimum(1.0, 4.0 * ndtr(-WALK * np.sqrt(x / steps)))  # by reflection, of both ends
    return float(weights @ within) < 1.0 - LOST


def _tips(model: TimeModel, clade: Clade) -> int:
    """A bit for each."""
    return sum(1 << int(x) for x in np.flatnonzero(model.members(clade)))


def _is_held(clade: Clade) -> bool:
    """Whether its taxa must be together."""
    return clade.together or clade.clock


def _limits_of(model: TimeModel) -> tuple[AgeLimit, ...]:
    """Of ages of clades, those that a density or a date says."""
    known, table = model.clades, calibrations(model)[0]
    return tuple(
        AgeLimit(_tips(model, clade), clade.stem, float(least), float(most))
        for clade, least, most in zip(known, table.least, table.most)
        if np.isfinite(least) or np.isfinite(most)
    )


def _refuse(model: TimeModel) -> None:
    told = ""
    if model.clock in _UNFIT:
        told = "most branches of this clock hardly change their rates, which no normal density says"
    elif model.trait is not None:
        told = "a trait has numbers and states of its own"
    elif model.samples_ancestors:
        told = "samples may be ancestors of others, so that trees have more or fewer ages"
    elif (model.tip_bounds[:, 0] < model.tip_bounds[:, 1]).any():
        told = "dates of tips are sampled"
    else:
        told = next((text for clade in model.clades if (text := _why_unfit(model, clade))), "")
    if told:
        raise InputError(f"{told}, so these trees have no working distribution", hint=_PLAIN)
    for block in model.space.blocks:
        if block.support in ("tied", "choice"):
            told = f"chains choose among models ('{block.name}'), and a working distribution is of one"
            raise InputError(told, hint=f"Choose one model, or plain stones. {_PLAIN}")


def _why_unfit(model: TimeModel, clade: Clade) -> str:
    """Why a density with the same trees as the prior is not at hand, '' where it is."""
    if clade.apart or clade.outside:
        return f"nobody has counted the topologies that '{clade.name}' leaves"
    if clade.age is None:
        return ""
    ends = bool(np.isfinite(age_limits(clade.age)[1]))
    if clade.above and (ends or clade.offset > 0.0 or age_limits(clade.age)[0] > 0.0):
        return f"the age of '{clade.name}' has limits, and is one of the root with a number"
    whole = len(clade.taxa) == model.n_tips
    if ends and (clade.stem or not (whole or _is_held(clade))):
        return f"the age of '{clade.name}' has an end, and older tips may be below"
    return ""


@dataclass(frozen=True)
class Topologies:
    """Rooted ones of n_tips tips in which held sets, a bit a tip, are clades."""

    n_tips: int
    held: tuple[int, ...]

    def log_number(self, clade: int) -> float:
        """Of those of a clade, into which no held set reaches from outside: at the clade and at every held
        set inside what is held directly inside, and tips beside these, join in any way."""
        inside = [own for own in set(self.held) if own & clade == own and own.bit_count() > 1]
        total = 0.0
        for whole in {clade, *inside}:
            rest, units = whole, 0
            for own in sorted(inside, key=int.bit_count, reverse=True):
                if own != whole and own & rest == own:  # not of one already taken out
                    rest, units = rest & ~own, units + 1
            total += log_rooted(rest.bit_count() + units)
        return total


def _draw(model: TimeModel, samples: Samples, i: int) -> DatedDraw:
    """Draw i as chains carry it: deviations follow from rates, numbers from what is printed."""
    names = trace_columns(model).names
    numbers = dict(zip(names, samples.numbers[i, 2:].tolist()))
    values = np.zeros(model.space.size)
    for block in model.space.blocks:
        x = np.array([numbers[name] for name in names_of(model.engine, block)])
        if block.name == PARTITION_RATES:
            x = x * model.engine.parameterisation.rate_shares
        values[model.space.place(block.name)] = x / x.sum() if block.support == "simplex" else x
    parent, heights = samples.parent[i].astype(np.int64), samples.sets[i, HEIGHTS]
    deviations = np.zeros((model.n_clocks if model.spread_names else 0, len(parent)))
    for c in range(len(deviations)):
        rate = float(values[model.space.place(model.rate_names[c])][0])
        spread = float(values[model.space.place(model.spread_names[c])][0])
        s = clocks.log_spread(model.clock, spread)
        lengths = np.zeros(len(parent))
        lengths[:-1] = (heights[parent[:-1]] - heights[:-1]) * samples.sets[i, RATES + c, :-1]
        if model.clock in clocks.FROM_PARENTS:
            deviations[c] = deviations_of(model.clock, (rate, spread), parent, heights, lengths)
        else:  # gamma rates may be below all numbers
            some = np.maximum(lengths, SMALLEST)
            clocks.set_deviations(model.clock, rate, s, parent, heights, some, deviations[c])
    return DatedDraw(parent, heights, deviations, values)


def _of_nodes(
    kind: int, drawn: Sequence[DatedDraw], places: Sequence[Place]
) -> tuple[Mapping[int, NodeDensity], NodeDensity]:
    """Of every clade that LEAST_DRAWS draws or more have, and of all others together, where these are as
    many, else of all. The root's is used where its age has an end."""
    rows: dict[int, list[np.ndarray]] = defaultdict(list)  # a share, and deviations
    for (parent, heights, deviations, _), place in zip(drawn, places):
        n_tips, room = (len(parent) + 1) // 2, place.most - place.least
        for x in range(len(parent) - (room[-1] == np.inf)):
            free = x >= n_tips and room[x] > 0.0
            share = (heights[x] - place.least[x]) / room[x] if free else np.nan
            rows[place.below[x]].append(np.array([share, *deviations[:, x]]))
    rare = [clade for clade, own in rows.items() if len(own) < LEAST_DRAWS and clade.bit_count() > 1]
    pooled = [row for clade in rare for row in rows[clade]]
    if len(pooled) < LEAST_DRAWS:
        pooled = [row for own in rows.values() for row in own]
    known = {clade: _density(kind, np.array(own)) for clade, own in rows.items() if len(own) >= LEAST_DRAWS}
    return known, _density(kind, np.array(pooled))


def _density(kind: int, rows: np.ndarray) -> NodeDensity:
    """From (D, 1 + K') shares, nan of tips, and deviations. kind: of the clocks."""
    shares = rows[np.isfinite(rows[:, 0]), 0]
    beta = beta_of(shares) if len(shares) > 1 else Beta(1.0, 1.0)
    return NodeDensity(beta, tuple(_of_deviations(kind, x) for x in rows[:, 1:].T))


def _of_deviations(kind: int, x: np.ndarray) -> Normal | LogGamma:
    """From (D,) of a branch."""
    if kind == clocks.WHITE_NOISE:
        own = gamma_of(np.exp(np.maximum(x, math.log(SMALLEST))))
        return LogGamma(own.shape, own.rate)
    return Normal(float(x.mean()), max(float(x.std(ddof=1)), NARROWEST))
