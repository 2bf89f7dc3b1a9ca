"""A working distribution fitted to draws of a posterior, and what cannot have one."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.special import betainc, digamma, gammainc, ndtr, polygamma

from phloem.density.space import Block, Space
from phloem.density.terms.beta import Beta
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.laplace import Laplace
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.log_uniform import LogUniform
from phloem.density.terms.normal import Normal
from phloem.density.terms.ratios import Ratios
from phloem.density.terms.term import Family
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError
from phloem.inference.mcmc.priors import length_bounds, number_priors
from phloem.inference.mcmc.samples import Samples, trace_columns
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import ChainModel
from phloem.inference.mcmc.working import Truncated, WorkingDistribution, clades, halves
from phloem.summary.spread import evenly_spread

MOST_DRAWS = 4_000  # of all runs
LEAST_DRAWS = 20  # of all runs; and of a split, for a density of its branch's own
NARROWEST = 1e-3  # relative standard deviation
SHARPEST = 1.0 / NARROWEST**2  # shape of a gamma density
FEWEST = 0.1  # of the two numbers of a beta density
GRID = 20_001  # points of a prior's mass
_PLAIN = "Leave --stones-from out: plain stones begin at the prior."


def fit_working(
    structure: ChainModel, settings: ChainSettings, samples: Sequence[Samples], first: Sequence[int]
) -> WorkingDistribution:
    """That of chains, from samples of runs of theirs, each from its number `first` on, by moments or maximum
    likelihood. Errors: InputError for what a chain exchanges or chooses among, for constrained topologies,
    and for fewer than LEAST_DRAWS draws."""
    _refuse(structure, settings)
    names = trace_columns(structure, settings.priors).names
    chosen = chosen_draws(samples, first)
    drawn = [own.tree_and_numbers(i, names) for own, i in chosen]
    values = np.array([structure.values_of(numbers) for _, _, numbers in drawn])
    priors = {prior.block: prior.family for prior in number_priors(structure, settings.priors)}
    space = structure.space
    numbers, constant = densities_of_numbers(space, space.blocks, priors, values)
    below = [clades(parent) for parent, _, _ in drawn]
    lengths, others = _of_lengths(below, [np.atleast_2d(x) for _, x, _ in drawn], length_bounds(settings))
    splits: Mapping[int, Mapping[int, float]] | None = None
    unseen: Mapping[int, float] | None = None
    if not settings.fixed_topology:
        splits, unseen = of_topologies([halves(p, own) for (p, _, _), own in zip(drawn, below)])
    return WorkingDistribution(numbers, constant, lengths, others, splits, unseen, len(drawn))


def chosen_draws(samples: Sequence[Samples], first: Sequence[int]) -> list[tuple[Samples, int]]:
    """Draws that a working distribution is fitted to, as (samples, number): MOST_DRAWS at most, evenly
    spread over the runs. first: the first of each run that counts. InputError for fewer than LEAST_DRAWS."""
    most = max(1, MOST_DRAWS // len(samples))
    chosen = [(own, int(i)) for own, at in zip(samples, first) for i in evenly_spread(at, own.n, most)]
    if len(chosen) < LEAST_DRAWS:
        raise InputError(
            f"{len(chosen)} draws are left behind the burn-in, and {LEAST_DRAWS} are the least",
            hint="Let the analysis run longer, or sample it more often.",
        )
    return chosen


def _refuse(structure: ChainModel, settings: ChainSettings) -> None:
    if any(settings.topologies):
        raise InputError(
            "a working distribution is of all topologies, and --constraint leaves some out", hint=_PLAIN
        )
    if trace_columns(structure, settings.priors).alike:
        told = (
            "chains exchange classes of sites that nothing tells apart, and a working distribution would not"
        )
        raise InputError(told, hint=_PLAIN)
    for block in structure.space.blocks:
        if block.support in ("tied", "choice"):
            told = f"chains choose among models ('{block.name}'), and a working distribution is of one"
            raise InputError(told, hint=f"Choose one model, or plain stones. {_PLAIN}")


# Numbers.


def densities_of_numbers(
    space: Space, blocks: Sequence[Block], priors: Mapping[str, Family], values: np.ndarray
) -> tuple[tuple[tuple[int, int, Family], ...], float]:
    """Densities of the numbers of some blocks, from draws (D, n) of all numbers of a space; and the log mass
    of the priors within the bounds of sampling less that of the densities. priors: by block, or by an entry
    of one (the level of population sizes), but of those that have none of their own."""
    found, constant = list[tuple[int, int, Family]](), 0.0
    for block in blocks:
        place, prior = space.place(block.name), priors.get(block.name)
        if block.support == "simplex":
            own = _dirichlet(values[:, place])
            found.append((place.start, block.size, own))
            constant -= _log_mass_of_shares(own, block)
            constant += 0.0 if prior is None else _log_mass_of_shares(prior, block)
            continue
        for i, element in zip(range(place.start, place.stop), block.elements):
            of_entry = priors.get(element) if prior is None else None
            low, high = _box(block, of_entry or prior)
            family = _fitted(block, values[:, i])
            found.append((i, 1, family))
            constant -= log_mass(family, low, high)
            if of_entry is not None:
                constant += _log_mass_of_prior(of_entry, block, low, high)
        if prior is not None and not isinstance(prior, Ratios):
            constant += block.size * _log_mass_of_prior(prior, block, *_box(block, prior))
    return tuple(found), constant


def _box(block: Block, prior: Family | None) -> tuple[float, float]:
    """Between which values an entry of a block is sampled."""
    if isinstance(prior, Uniform | LogUniform):
        return max(block.lower, prior.lower), min(block.upper, prior.upper)
    return block.lower, block.upper


def _fitted(block: Block, x: np.ndarray) -> Family:
    """The density of an entry of a block, from draws (D,)."""
    mean, sd = float(x.mean()), max(float(x.std(ddof=1)), NARROWEST * abs(float(x.mean())), 1e-12)
    if block.support == "positive":
        logs = np.log(x)
        of_logs = LogNormal(float(logs.mean()), max(float(logs.std(ddof=1)), NARROWEST))
        both: tuple[Family, ...] = gamma_of(x), of_logs
        return max(both, key=lambda family: float(family.log_density(x[:, None]).sum()))
    if block.support == "unit":
        return beta_of(x)
    return Normal(mean, sd)


def beta_of(x: np.ndarray) -> Beta:
    """By moments, from draws (D,) between 0 and 1."""
    mean, sd = float(x.mean()), max(float(x.std(ddof=1)), NARROWEST * float(x.mean()))
    count = max(mean * (1.0 - mean) / sd**2 - 1.0, 0.0)
    return Beta(max(mean * count, FEWEST), max((1.0 - mean) * count, FEWEST))


def gamma_of(x: np.ndarray) -> Gamma:
    """The gamma density of greatest likelihood for positive draws (D,): Minka's start, Newton's steps."""
    mean = float(x.mean())
    s = max(math.log(mean) - float(np.log(x).mean()), 1e-12)
    shape = (3.0 - s + math.sqrt((s - 3.0) ** 2 + 24.0 * s)) / (12.0 * s)
    for _ in range(20):
        slope = 1.0 / shape - float(polygamma(1, shape))
        shape = max(shape - (math.log(shape) - float(digamma(shape)) - s) / slope, 0.5 * shape)
    shape = min(shape, SHARPEST)
    return Gamma(shape, shape / mean)


def _dirichlet(x: np.ndarray) -> Dirichlet:
    """By moments, from draws (D, k), with no concentration below 1, so that next to nothing lies beyond the
    bounds of sampling."""
    mean, variance = x.mean(axis=0), x.var(axis=0, ddof=1)
    count = float((mean * (1.0 - mean)).sum() / max(variance.sum(), 1e-12)) - 1.0
    return Dirichlet(tuple(float(a) for a in np.clip(count * mean, 1.0, SHARPEST)))


_BELOW: dict[type, Callable] = {
    Gamma: lambda f, x: gammainc(f.shape, f.rate * x),
    LogNormal: lambda f, x: ndtr((np.log(x) - f.location) / f.scale),
    Normal: lambda f, x: ndtr((x - f.mean) / f.scale),
    Beta: lambda f, x: betainc(f.a, f.b, x),
    Laplace: lambda f, x: 0.5 - 0.5 * np.sign(x - f.mean) * np.expm1(-abs(x - f.mean) / f.scale),
}
"""Family → its mass below x."""


def log_mass(family: Family, low: float, high: float) -> float:
    """Logarithm of a fitted density's mass between two values."""
    below = _BELOW[type(family)]
    return math.log(float(below(family, high)) - float(below(family, low)))


def _log_mass_of_prior(family: Family, block: Block, low: float, high: float) -> float:
    """Of one entry, by Simpson's rule in the block's coordinate; of any real number, for which the rule's
    steps would be too wide, in closed form."""
    if block.support == "real" and type(family) in _BELOW:
        return log_mass(family, low, high)
    low, high = block.inside(np.array([low, high]))  # an end of an interval has no coordinate
    ends = block.transform.forward(np.array([low, high])[:, None])
    y = np.linspace(float(ends[0, 0]), float(ends[1, 0]), GRID)[:, None]
    x = block.transform.inverse(y)
    density = np.exp(family.log_density(np.clip(x, low, high)) + block.transform.log_jacobian(x))
    weights = np.ones(GRID)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    return math.log(float(weights @ density) * float(y[1, 0] - y[0, 0]) / 3.0)


def _log_mass_of_shares(family: Family, block: Block) -> float:
    """Of a Dirichlet density where no entry is below the block's bound, to second order in what is cut
    off."""
    assert isinstance(family, Dirichlet)
    a = np.broadcast_to(np.atleast_1d(family.concentration), block.size)
    return math.log1p(-float(betainc(a, a.sum() - a, block.lower).sum()))


# Branch lengths, and topologies.


def _of_lengths(
    below: Sequence[Sequence[int]], lengths: Sequence[np.ndarray], bounds: tuple[float, float]
) -> tuple[dict[int, tuple[Truncated, ...]], tuple[Truncated, ...]]:
    """Of every split that LEAST_DRAWS draws or more have, in every set of lengths (G, 2T-2); and of the
    others all together, where these are as many, else of all inner branches, or of all that there are."""
    drawn: dict[int, list[np.ndarray]] = defaultdict(list)
    for own, x in zip(below, lengths):
        for clade, b in zip(own[:-1], x.T):
            drawn[clade].append(b)
    inner = [clade for clade in drawn if clade.bit_count() > 1]
    rare = [clade for clade in inner if len(drawn[clade]) < LEAST_DRAWS]
    n_rare = sum(len(drawn[clade]) for clade in rare)
    pooled = rare if n_rare >= LEAST_DRAWS else inner or list(drawn)

    def made(rows: Sequence[np.ndarray]) -> tuple[Truncated, ...]:
        gammas = [gamma_of(np.clip(x, *bounds)) for x in np.array(rows).T]
        return tuple(Truncated(one, log_mass(one, *bounds)) for one in gammas)

    known = {clade: made(rows) for clade, rows in drawn.items() if len(rows) >= LEAST_DRAWS}
    return known, made([b for clade in pooled for b in drawn[clade]])


def of_topologies(
    drawn: Sequence[Sequence[tuple[int, int]]], log_ways: Callable[[int], float] | None = None
) -> tuple[dict[int, dict[int, float]], dict[int, float]]:
    """WorkingDistribution.splits and unseen, from the clades of every draw and the halves they fall into.

    A clade that n draws had falls into a split with probability (1 - e) f + e u: f its share of the n, u that
    under uniform topologies, and e = (1 + s) / (2 + n), s being how many splits one draw alone had (as Good
    and Turing have it). Every clade's probabilities add up to 1, those of clades without draws being u, and
    so do those of all topologies. log_ways: of a clade, as log_rooted has it of so many tips, which is usual,
    where not all topologies are possible."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for own in drawn:
        for clade, half in own:
            if clade.bit_count() > 2:  # others fall into their halves one way
                counts[clade][half] += 1
    splits, unseen = dict[int, dict[int, float]](), dict[int, float]()
    for clade, halves_seen in counts.items():
        n, once = halves_seen.total(), sum(k == 1 for k in halves_seen.values())
        share = (1.0 + once) / (2.0 + n)
        unseen[clade] = math.log(share)
        splits[clade] = {
            half: math.log(share + (1.0 - share) * k / n / uniform_share(clade, half, log_ways))
            for half, k in halves_seen.items()
        }
    return splits, unseen


def uniform_share(clade: int, half: int, log_ways: Callable[[int], float] | None = None) -> float:
    """Of the rooted topologies of a clade's tips, in how many the clade falls into this half and the rest.
    log_ways: as of of_topologies."""
    own = log_ways or (lambda some: log_rooted(some.bit_count()))
    return math.exp(own(half) + own(clade & ~half) - own(clade))


def log_rooted(n: int) -> float:
    """Logarithm of (2n - 3)!!, the rooted binary topologies of n tips."""
    return math.lgamma(2 * n - 1) - (n - 1) * math.log(2.0) - math.lgamma(n)
