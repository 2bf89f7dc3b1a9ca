"""A working distribution of dated trees fitted to draws, and what cannot have one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from phloem.density import clocks
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
    log_rooted,
    of_topologies,
)
from phloem.inference.time.draws import HEIGHTS, RATES, trace_columns
from phloem.inference.time.structure import TimeModel
from phloem.inference.time.substitution import names_of
from phloem.inference.time.working import (
    DatedWorking,
    NodeDensity,
    oldest_below,
    rooted_clades,
    rooted_halves,
)

NORMALISED = ("constant",)  # tree priors whose densities are known to add up to 1
_CLOCKS = (clocks.STRICT, *clocks.LOG_NORMAL)
_PLAIN = "Leave --stones-from out: plain stones begin at the prior."


class DatedDraw(NamedTuple):
    """parent, heights (N,), deviations (K', N) of the clocks that have them, values (n,)."""

    parent: np.ndarray
    heights: np.ndarray
    deviations: np.ndarray
    values: np.ndarray


def fit_dated_working(model: TimeModel, samples: Sequence[Samples], first: Sequence[int]) -> DatedWorking:
    """That of chains, from samples of runs of theirs, each from its number `first` on, by moments or maximum
    likelihood. Errors: InputError for models whose prior is not known to be normalised, or is of more than
    trees, heights, rates and numbers; and for fewer than LEAST_DRAWS draws."""
    _refuse(model)
    drawn = [_draw(model, own, i) for own, i in chosen_draws(samples, first)]
    priors = {prior.block: prior.family for prior in model.priors}
    free = [block for block in model.space.blocks if block.name not in model.fixed]
    values = np.array([draw.values for draw in drawn])
    numbers, constant = densities_of_numbers(model.space, free, priors, values)
    below = [rooted_clades(draw.parent, draw.heights) for draw in drawn]
    nodes, others = _of_nodes(drawn, below)
    oldest = model.tip_bounds[:, 1].max()
    above = np.log(np.array([draw.heights[-1] - oldest for draw in drawn]))
    root = LogNormal(float(above.mean()), max(float(above.std(ddof=1)), NARROWEST))
    splits, unseen = of_topologies([rooted_halves(d.parent, own) for d, own in zip(drawn, below)])
    constant -= log_rooted(model.n_tips)
    return DatedWorking(numbers, constant, root, nodes, others, splits, unseen, len(drawn))


def _refuse(model: TimeModel) -> None:
    told = ""
    if model.tree_prior.name not in NORMALISED:
        told = f"of the tree prior '{model.tree_prior.name}' only sampling tells its constant"
    elif model.clock not in _CLOCKS:
        told = "rates are not those of a strict or an uncorrelated log-normal clock"
    elif model.trait is not None:
        told = "a trait has numbers and states of its own"
    elif model.clades:
        told = "what is known of clades or their ages changes which trees there are, and how probable all are"
    elif (model.tip_bounds[:, 0] < model.tip_bounds[:, 1]).any():
        told = "dates of tips are sampled"
    if told:
        raise InputError(f"{told}, so these trees have no working distribution", hint=_PLAIN)
    for block in model.space.blocks:
        if block.support in ("tied", "choice"):
            told = f"chains choose among models ('{block.name}'), and a working distribution is of one"
            raise InputError(told, hint=f"Choose one model, or plain stones. {_PLAIN}")


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
        clocks.set_deviations(model.clock, rate, s, parent, heights, lengths, deviations[c])
    return DatedDraw(parent, heights, deviations, values)


def _of_nodes(
    drawn: Sequence[DatedDraw], below: Sequence[Sequence[int]]
) -> tuple[Mapping[int, NodeDensity], NodeDensity]:
    """Of every clade but the root's that LEAST_DRAWS draws or more have, and of all others together, where
    these are as many, else of all."""
    rows: dict[int, list[np.ndarray]] = defaultdict(list)  # a share, and deviations
    for (parent, heights, deviations, _), own in zip(drawn, below):
        lows, n_tips = oldest_below(parent, heights), (len(parent) + 1) // 2
        for x in range(len(parent) - 1):
            share = (heights[x] - lows[x]) / (heights[parent[x]] - lows[x]) if x >= n_tips else np.nan
            rows[own[x]].append(np.array([share, *deviations[:, x]]))
    rare = [clade for clade, own in rows.items() if len(own) < LEAST_DRAWS and clade.bit_count() > 1]
    pooled = [row for clade in rare for row in rows[clade]]
    if len(pooled) < LEAST_DRAWS:
        pooled = [row for own in rows.values() for row in own]
    known = {clade: _density(np.array(own)) for clade, own in rows.items() if len(own) >= LEAST_DRAWS}
    return known, _density(np.array(pooled))


def _density(rows: np.ndarray) -> NodeDensity:
    """From (D, 1 + K') shares, nan of tips, and deviations."""
    shares = rows[np.isfinite(rows[:, 0]), 0]
    beta = beta_of(shares) if len(shares) > 1 else Beta(1.0, 1.0)
    normals = [Normal(float(x.mean()), max(float(x.std(ddof=1)), NARROWEST)) for x in rows[:, 1:].T]
    return NodeDensity(beta, tuple(normals))
