"""Simulation-based calibration of dated trees (Talts, Betancourt, Simpson, Vehtari and Gelman 2018,
arXiv:1804.06788).

Numbers and a tree of ten tips are drawn from the prior, 200 columns from them with the NumPy reference; among
thinned draws of the posterior the truth's rank is then uniform, for every number and for clades.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pytest
from scipy import stats

from phloem.data.traits import TipTraits
from phloem.density import clocks
from phloem.density.deviations import CHANGES, MEDIAN
from phloem.density.parts import Linkage, PartModel
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.uniform import Uniform
from phloem.density.tree_priors import constant, skygrid
from phloem.density.tree_priors.tree_prior import LEVEL
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.recipes import Observations
from phloem.inference.mcmc.structure import structure_of_model, structure_of_parts
from phloem.inference.time.ancestors.chain import answer as own_answer
from phloem.inference.time.ancestors.larger.chain import answer_coded as coded_answer
from phloem.inference.time.ancestors.sequences import VALUE
from phloem.inference.time.compiled import by_address
from phloem.inference.time.coupled import new_coupled_run
from phloem.inference.time.run import new_run
from phloem.inference.time.sampler import any_advanced
from phloem.inference.time.settings import Clade, TimeSettings, TreeModel
from phloem.inference.time.structure import of_clocks, time_model
from phloem.inference.time.traits import TraitModel
from phloem.model.grammar import parse_model
from phloem.model.model import Model
from phloem.model.record import SiteModel
from phloem.model.transition import transition_matrices
from phloem.tree.dated import DatedTree, dated_tree, random_dated_tree

pytestmark = pytest.mark.slow
N_TIPS, N_SITES, N_DRAWS = 10, 200, 31
REPLICATES = {
    "strict": 320,
    "ucln": 320,
    "skygrid": 320,
    "bd": 320,
    "shrinkage": 80,
    "trait": 96,
    "ancestors, protein": 96,
}  # of others 160
EVERY = 500  # generations between draws, which must be nearly independent; thirty times as many before
TAXA = tuple(f"t{i}" for i in range(N_TIPS))
TIPS = np.array([0.0, 0.0, 0.3, 0.5, 0.9, 1.0, 1.4, 1.7, 2.0, 2.0])
YOUNGER = np.array([0.0, 0.0, 0.3, 0.5, 0.0, 0.4, 0.4, 1.0, 0.3, 0.0])
RANGES = np.stack([TIPS - YOUNGER, TIPS + 0.4 * (TIPS > 0.95)], axis=1)
MODEL = parse_model("JC", datatype="dna")
RATE, SIZE = LogNormal(np.log(0.1), 0.4), LogNormal(np.log(2.0), 0.4)
SPREAD, SPACING = LogNormal(np.log(0.8), 0.4), 2.0


def no_differences(rng, numbers, tree):
    return np.ones(len(tree.parent)), {}


def log_normal(rng, numbers, tree):
    s = clocks.log_spread(clocks.BY_CV, numbers["clock_cv"])
    return np.exp(s * rng.normal(size=len(tree.parent)) - s * s / 2), {}


def gamma_rates(rng, numbers, tree):
    shape = numbers["clock_cv"] ** -2
    return rng.gamma(shape, 1 / shape, len(tree.parent)), {}


def white_noise(rng, numbers, tree):
    lasts = np.append((tree.heights[tree.parent] - tree.heights)[:-1], 1.0)
    shape = numbers["clock_rate"] * lasts / numbers["clock_variance"]
    return np.exp(np.log(rng.gamma(1 + shape) / shape) + np.log(rng.uniform(size=len(shape))) / shape), {}


def autocorrelated(rng, numbers, tree):
    """Means of the rates at both ends of branches."""
    rates = np.ones(len(tree.parent))
    for x in tree.order[-2::-1]:
        above = tree.parent[x]
        lasts = numbers["clock_rate"] * (tree.heights[above] - tree.heights[x])
        variance = np.log1p(numbers["clock_variance"] * lasts / rates[above] ** 2)
        rates[x] = rates[above] * np.exp(np.sqrt(variance) * rng.normal() - variance / 2)
    return np.append(0.5 * (rates + rates[tree.parent])[:-1], 1.0), {}


def of_own(rng, numbers, tree):
    """The branches to the first two and the one above them."""
    rates = np.ones(len(tree.parent))
    rates[[0, 1, tree.parent[0]]] = numbers["clock_ratio(own)"]
    return rates, {}


def handed_down(tree, changes):
    """From changes of log rates to rates whose mean over the tree is 1."""
    log_rate = np.zeros(len(changes))
    for x in tree.order[-2::-1]:
        log_rate[x] = log_rate[tree.parent[x]] + changes[x]
    time = tree.heights[tree.parent[:-1]] - tree.heights[:-1]
    return np.exp(log_rate) * time.sum() / (np.exp(log_rate[:-1]) * time).sum()


def few_changes(rng, numbers, tree):
    changes, n = np.zeros(len(tree.parent)), len(tree.parent) - 1
    k = n + 1
    while k > n:
        k = rng.poisson(CHANGES)
    changes[rng.permutation(n)[:k]] = np.log(rng.gamma(0.5, 2.0, k))
    return handed_down(tree, changes), {"rate_changes": k}


def small_changes(rng, numbers, tree):
    size = rng.gamma(4.0, size=len(tree.parent)) ** 4 / MEDIAN
    return handed_down(tree, numbers["clock_scale"] * rng.choice([-1, 1], len(size)) * size), {}


@dataclass(frozen=True)
class Case:
    """tree: the model. drawn: rng → numbers by name and a tree from the prior. planted: what an error does to
    the compiled sampler's constants. dated: tips have dates. relative: (rng, numbers, tree) → every branch's
    rate over the clock's, and numbers that follow. every: generations between draws. trait: (rng, numbers,
    tree) → a trait of the tips, or None, and numbers that follow. sites: of every part, each with a rate of
    its own if there are several, or as linkage says with a clock, and relative is then of every part
    (2, N). ranges: (T, 2) of the tips' heights, uniform within them. ancestors: of the chains. coupled:
    settings of several chains. model: of substitution."""

    tree: TreeModel
    drawn: Callable[[np.random.Generator], tuple[dict[str, float], DatedTree]]
    planted: Callable
    dated: bool = True
    relative: Callable = no_differences
    every: int = EVERY
    trait: Callable = lambda rng, numbers, tree: (None, {})
    sites: tuple[int, ...] = (N_SITES,)
    linkage: str = "proportional"
    ranges: np.ndarray = field(default_factory=lambda: np.stack([TIPS, TIPS], axis=1))
    ancestors: Literal["summed", "sampled"] = "summed"
    coupled: dict[str, float] = field(default_factory=dict)
    model: Model = MODEL

    @property
    def structure(self):
        """Of the substitution model."""
        if len(self.sites) == 1:
            return structure_of_model(self.model, N_SITES)
        models = [PartModel(name, MODEL, n, 1) for name, n in zip("ab", self.sites)]
        return structure_of_parts(models, Linkage(self.linkage))


def of_constant_size(rng, tips=TIPS):
    numbers = {"clock_rate": rng.lognormal(np.log(0.1), 0.4), "pop_size": rng.lognormal(np.log(2.0), 0.4)}
    tree = random_dated_tree(tips, rng, lambda t, pairs: numbers["pop_size"] * rng.exponential(1 / pairs))
    return numbers, tree


def of_branches(rng, tips=TIPS):
    numbers, tree = of_constant_size(rng, tips)
    return numbers | {"clock_cv": rng.lognormal(np.log(0.8), 0.4)}, tree


def of_variance(median):
    def drawn(rng):
        numbers, tree = of_constant_size(rng)
        return numbers | {"clock_variance": rng.lognormal(np.log(median), 0.5)}, tree

    return drawn


def of_a_clade(rng):
    """Trees in which the first two are neighbours, whose clock has its own rate."""
    while True:
        numbers, tree = of_constant_size(rng)
        if tree.parent[0] == tree.parent[1]:
            return numbers | {"clock_ratio(own)": rng.lognormal(0.0, 1.0)}, tree


def of_small_changes(rng):
    numbers, tree = of_constant_size(rng)
    return numbers | {"clock_scale": rng.lognormal(np.log(0.02), 0.5)}, tree


def at_some_time(drawn):
    """Trees of tips that are uniform in RANGES."""
    return lambda rng: drawn(rng, rng.uniform(*RANGES.T))


def of_cells(rng, tips=TIPS):
    precision = rng.gamma(4.0, 0.5)
    theta = (
        np.log(2.0) + 0.4 * rng.normal() + np.append(0.0, rng.normal(size=2).cumsum() / np.sqrt(precision))
    )

    def waiting(t, pairs):
        left, at = rng.exponential(), t
        while True:
            cell = min(int(at / SPACING), 2)
            end = (cell + 1) * SPACING if cell < 2 else np.inf
            hazard = pairs / np.exp(theta[cell])
            if left < hazard * (end - at):
                return at + left / hazard - t
            left -= hazard * (end - at)
            at = end

    numbers = {f"pop_size_{k + 1}": float(np.exp(x)) for k, x in enumerate(theta)}
    numbers |= {"precision": precision, "clock_rate": rng.lognormal(np.log(0.1), 0.4)}
    return numbers, random_dated_tree(tips, rng, waiting)


def of_births(rng):
    """Root age by its marginal density on a grid, the others by inversion, joined at random (Gernhard
    2008)."""
    r, a = rng.lognormal(np.log(0.5), 0.4), rng.uniform()

    def below(t):  # the distribution function of an age, up to a factor
        return (1 / (1 - a) - 1 / (1 - a * np.exp(-r * t))) / a

    t = np.geomspace(1e-4, 1e3, 20_001) / r
    with np.errstate(divide="ignore"):
        log_root = (N_TIPS - 2) * np.log(below(t)) - 2 * r * t - 3 * np.log1p(-a * np.exp(-r * t)) + np.log(t)
    weights = np.exp(log_root - log_root.max()).cumsum()
    root = np.interp(rng.uniform() * weights[-1], weights, t)
    share = rng.uniform(size=N_TIPS - 2) * below(root)
    others = -np.log((1 - 1 / (1 / (1 - a) - a * share)) / a) / r
    ages, lineages = np.append(np.sort(others), root), list(range(N_TIPS))
    parent, heights = np.full(2 * N_TIPS - 1, -1), np.append(np.zeros(N_TIPS), ages)
    for new in range(N_TIPS, 2 * N_TIPS - 1):
        for _ in range(2):
            parent[lineages.pop(int(rng.integers(len(lineages))))] = new
        lineages.append(new)
    numbers = {"net_diversification": r, "relative_death": a, "clock_rate": rng.lognormal(np.log(0.1), 0.4)}
    return numbers, dated_tree(parent, heights)


def of_two_parts(rng):
    """Rates of parts whose mean over the sites is 1, their shares flat."""
    numbers, tree = of_constant_size(rng)
    share = rng.uniform()
    return numbers | {"rate{a}": share / 0.25, "rate{b}": (1 - share) / 0.75}, tree


def of_two_clocks(rng):
    numbers, tree = of_constant_size(rng)
    own = {f"clock_rate{{{x}}}": rng.lognormal(np.log(r), 0.4) for x, r in (("a", 0.1), ("b", 0.3))}
    own |= {f"clock_cv{{{x}}}": rng.lognormal(np.log(r), 0.4) for x, r in (("a", 0.8), ("b", 0.5))}
    del numbers["clock_rate"]
    return numbers | own, tree


def of_each_clock(rng, numbers, tree):
    """Rates of branches by both."""
    rates = np.zeros((2, len(tree.parent)))
    for k, x in enumerate("ab"):
        s = clocks.log_spread(clocks.BY_CV, numbers[f"clock_cv{{{x}}}"])
        rates[k] = numbers[f"clock_rate{{{x}}}"] * np.exp(s * rng.normal(size=rates.shape[1]) - s * s / 2)
    return rates, {}


def of_moving(rng):
    numbers, tree = of_constant_size(rng)
    return numbers | {"trait_clock": rng.lognormal(np.log(0.5), 0.5)}, tree


def moved(rng, numbers, tree):
    """A trait of three states whose routes, rates and history are drawn, one change after the other."""
    few = TraitModel(TipTraits("place", TAXA, tuple("XYZ"), np.ones((N_TIPS, 3), bool)), False, True, True)
    n = 0
    while not 1 <= n <= 6:
        n = rng.poisson(2.0)
    there, own, root = np.arange(6) >= 6 - n, rng.exponential(size=6), rng.dirichlet(np.ones(3))
    there = rng.permutation(there)
    q = np.zeros((3, 3))
    q[few.pairs[:, 0], few.pairs[:, 1]] = there * own
    q *= 3 * numbers["trait_clock"] / q.sum()
    states, changes = np.zeros(len(tree.parent), int), 0
    states[-1] = rng.choice(3, p=root)
    for x in tree.order[-2::-1]:
        states[x], left = states[tree.parent[x]], tree.heights[tree.parent[x]] - tree.heights[x]
        while q[states[x]].sum() > 0 and (left := left - rng.exponential(1 / q[states[x]].sum())) > 0:
            states[x] = rng.choice(3, p=q[states[x]] / q[states[x]].sum())
            changes += 1
    found = {"trait_changes": changes, "n_routes": n}
    found |= {f"route({name})": float(on) for name, on in zip(few.route_names, there)}
    found |= {f"trait_rate({name})": rate for name, rate in zip(few.route_names, own)}
    found |= {f"trait_root({name})": share for name, share in zip("XYZ", root)}
    tips = np.eye(3, dtype=bool)[states[:N_TIPS]]
    tips[3], tips[4, (states[4] + 1) % 3] = True, True  # one unknown, one known in part
    return replace(few, tips=replace(few.tips, possible=tips)), found


def of_sites(rng):
    numbers, tree = of_constant_size(rng)
    return numbers | {"alpha": rng.lognormal(np.log(0.6), 0.3)}, tree


of_constant, of_grid = uncounted(constant.density), uncounted(skygrid.density)


def joined_twice(g, x, settings, by_height, by_number):
    """The planted error: every joining's density counts twice."""
    joinings = g.order.shape[0] - g.n_tips
    by_number[0] -= joinings / x[0]
    return of_constant(g, x, settings, by_height, by_number) - joinings * np.log(x[0])


def wrong_coalescent(data):
    return data._replace(tree_density=by_address.TREE_PRIOR.address(joined_twice))


def joined_twice_in_cells(g, x, settings, by_height, by_number):
    """The same in the cells of a skygrid."""
    value = of_grid(g, x, settings, by_height, by_number)
    for i in range(g.n_tips, g.order.shape[0]):
        m = min(int(g.heights[i] / settings[0]), x.shape[0] - 2)
        value -= np.log(x[m])
        by_number[m] -= 1.0 / x[m]
    return value


@uncounted
def longer(before, now, asked):
    """What a proposal's value is too small by."""
    value = 0.0
    if asked[0] == VALUE and asked[3] == 0:
        for x in range(now.parent.shape[0] - 1):
            value += 0.5 * N_SITES * (now.lengths[x] - before.lengths[x])
    return value


def of_long_memory(table, before, now, cell, rng, asked, by_length):
    """An error: every site stays as it is half as long again."""
    value = own_answer(table, before, now, cell, rng, asked, by_length)
    return value - longer(before, now, asked)


def of_long_memory_coded(table, before, now, cell, rng, asked, by_length):
    """The same of many states."""
    value = coded_answer(table, before, now, cell, rng, asked, by_length)
    return value - longer(before, now, asked)


CASES = {
    "strict": Case(
        TreeModel(priors={"clock_rate": RATE, "pop_size": SIZE}),
        of_constant_size,
        wrong_coalescent,
    ),
    "ucln": Case(
        TreeModel(clock="ucln", priors={"clock_rate": RATE, "pop_size": SIZE, "clock_cv": SPREAD}),
        of_branches,
        lambda data: data._replace(clock=data.clock._replace(kind=clocks.BY_LOG_MEDIAN)),
        relative=log_normal,
    ),
    "ancestors": Case(
        TreeModel(priors={"clock_rate": RATE, "pop_size": SIZE}),
        of_constant_size,
        lambda data: data._replace(ancestors=by_address.ANCESTORS.address(of_long_memory)),
        every=2 * EVERY,
        ancestors="sampled",
    ),
    "ancestors, ucln": Case(
        TreeModel(clock="ucln", priors={"clock_rate": RATE, "pop_size": SIZE, "clock_cv": SPREAD}),
        of_branches,
        lambda data: data._replace(ancestors=by_address.ANCESTORS.address(of_long_memory)),
        relative=log_normal,
        every=2 * EVERY,
        ancestors="sampled",
    ),
    "ancestors, protein": Case(
        TreeModel(priors={"clock_rate": RATE, "pop_size": SIZE, "alpha": LogNormal(np.log(0.6), 0.3)}),
        of_sites,
        lambda data: data._replace(ancestors=by_address.ANCESTORS.address(of_long_memory_coded)),
        every=4 * EVERY,
        ancestors="sampled",
        model=parse_model("WAG+G4", datatype="protein"),
    ),
    "skygrid": Case(
        TreeModel(
            prior="skygrid",
            pieces=3,
            options={"cutoff": 2 * SPACING},
            priors={"clock_rate": RATE, LEVEL: SIZE, "precision": Gamma(4.0, 2.0)},
        ),
        of_cells,
        lambda data: data._replace(tree_density=by_address.TREE_PRIOR.address(joined_twice_in_cells)),
    ),
    "ucgd": Case(
        TreeModel(clock="ucgd", priors={"clock_rate": RATE, "pop_size": SIZE, "clock_cv": SPREAD}),
        of_branches,
        wrong_coalescent,
        relative=gamma_rates,
    ),
    "white noise": Case(
        TreeModel(
            clock="white-noise",
            priors={
                "clock_rate": RATE,
                "pop_size": SIZE,
                "clock_variance": LogNormal(np.log(0.05), 0.5),
            },
        ),
        of_variance(0.05),
        wrong_coalescent,
        relative=white_noise,
    ),
    "autocorrelated": Case(
        TreeModel(
            clock="autocorrelated",
            priors={"clock_rate": RATE, "pop_size": SIZE, "clock_variance": LogNormal(0.0, 0.5)},
        ),
        of_variance(1.0),
        wrong_coalescent,
        relative=autocorrelated,
    ),
    "local": Case(
        TreeModel(
            clock="local",
            priors={"clock_rate": RATE, "pop_size": SIZE},
            clades=(Clade("own", TAXA[:2], clock=True),),
        ),
        of_a_clade,
        lambda data: data._replace(clock=data.clock._replace(member=data.clock.member[:, ::-1].copy())),
        relative=of_own,
    ),
    "random": Case(
        TreeModel(clock="random", priors={"clock_rate": RATE, "pop_size": SIZE}),
        of_constant_size,
        wrong_coalescent,
        relative=few_changes,
    ),
    "shrinkage": Case(
        TreeModel(
            clock="shrinkage",
            priors={"clock_rate": RATE, "pop_size": SIZE, "clock_scale": LogNormal(np.log(0.02), 0.5)},
        ),
        of_small_changes,
        wrong_coalescent,
        relative=small_changes,
        every=3 * EVERY,  # its scale mixes slowly
    ),
    "parts": Case(
        TreeModel(priors={"clock_rate": RATE, "pop_size": SIZE}),
        of_two_parts,
        lambda data: data._replace(recipes=data.recipes._replace(site_share=np.array([0.5, 0.5]))),
        sites=(50, 150),
    ),
    "clocks": Case(
        TreeModel(
            clock="ucln",
            priors={
                "clock_rate{a}": RATE,
                "clock_rate{b}": LogNormal(np.log(0.3), 0.4),
                "clock_cv{a}": SPREAD,
                "clock_cv{b}": LogNormal(np.log(0.5), 0.4),
                "pop_size": SIZE,
            },
        ),
        of_two_clocks,
        lambda data: data._replace(clock=data.clock._replace(rate=data.clock.rate[::-1].copy())),
        relative=of_each_clock,
        sites=(50, 150),
        linkage="unlinked",
    ),
    "trait": Case(
        TreeModel(priors={"clock_rate": RATE, "pop_size": SIZE, "trait_clock": LogNormal(np.log(0.5), 0.5)}),
        of_moving,
        lambda data: data._replace(trait=data.trait._replace(mean=8.0)),
        every=2 * EVERY,
        trait=moved,
    ),
    "bd": Case(
        TreeModel(
            prior="bd",
            priors={
                "clock_rate": RATE,
                "net_diversification": LogNormal(np.log(0.5), 0.4),
                "relative_death": Uniform(0.0, 1.0),
            },
        ),
        of_births,
        lambda data: data._replace(tree_settings=data.tree_settings * 0.2),  # a fifth of the living
        dated=False,
    ),
}
CASES |= {
    "coupled": replace(CASES["ucln"], coupled={"n_chains": 3, "heating": 0.2}),
    "coupled, ancestors": replace(CASES["ancestors"], coupled={"n_chains": 3, "heating": 0.1}),
}


def beyond_ranges(data):
    """As if those who were sampled within limits could be older."""
    return data._replace(tip_bounds=data.tip_bounds + (RANGES[:, :1] < RANGES[:, 1:]) * [0.0, 1.5])


CASES |= {
    f"{name}, dates": replace(CASES[name], drawn=at_some_time(drawn), planted=beyond_ranges, ranges=RANGES)
    for name, drawn in (("ucln", of_branches), ("skygrid", of_cells), ("ancestors", of_constant_size))
}


def evolved(
    tree: DatedTree, lengths: np.ndarray, rng: np.random.Generator, n_sites: int, site_model: SiteModel
) -> Observations:
    """Distinct columns of states at the tips, from the root down."""
    p, pi = transition_matrices(lengths, site_model), site_model.processes[0].root_frequencies
    states, last = np.empty((len(lengths), n_sites), np.int64), len(pi) - 1
    category = rng.integers(len(site_model.rates), size=n_sites)
    states[-1] = rng.choice(len(pi), n_sites, p=pi / pi.sum())
    for x in tree.order[-2::-1]:
        cumulative = p[x][category, states[tree.parent[x]]].cumsum(axis=1)
        states[x] = np.minimum((rng.random(n_sites)[:, None] > cumulative).sum(axis=1), last)
    columns, counts = np.unique(states[:N_TIPS], axis=1, return_counts=True)
    columns, sets = np.ascontiguousarray(columns, np.int32), np.eye(len(pi))
    return Observations(TAXA, columns, sets, counts.astype(float))


def looked_at(parent, heights, lengths):
    """Of trees (n, N) with internal nodes by height: ages, and whether pairs of tips are together."""
    total = lengths.sum(axis=1)
    joined = np.take_along_axis(heights, parent[:, :1].astype(int), axis=1)[:, 0]
    pairs = [(parent[:, a] == parent[:, b]).astype(float) for a, b in ((0, 1), (4, 5), (8, 9))]
    return {
        "root": heights[:, -1],
        "length": total,
        "tip": joined,
        "near": pairs[0],
        "mid": pairs[1],
        "far": pairs[2],
    }


def ranks(case: Case, n_replicates: int, seed: int, planted=None) -> dict[str, np.ndarray]:
    """Rank (0 … N_DRAWS, ties broken at random) of every true value among its posterior draws."""
    structure, rng, found = case.structure, np.random.default_rng(seed), {}
    bounds = case.ranges if case.dated else np.zeros((N_TIPS, 2))
    uncertain = np.flatnonzero(bounds[:, 0] < bounds[:, 1])
    for replicate in range(n_replicates):
        numbers, tree = case.drawn(rng)
        rates, more = case.relative(rng, numbers, tree)
        trait, of_trait = case.trait(rng, numbers, tree)
        rates, numbers = rates * numbers.get("clock_rate", 1.0), numbers | more | of_trait
        time = np.append(tree.heights[tree.parent[:-1]] - tree.heights[:-1], 0.0)
        of_parts = [numbers.get(f"rate{{{name}}}", 1.0) for name, _ in zip("ab", case.sites)]
        lengths = np.broadcast_to(rates * time, (len(of_parts), len(time)))
        site_model = case.model.evaluate({k: v for k, v in numbers.items() if k == "alpha"})
        observed = [
            evolved(tree, own * d, rng, n, site_model) for own, d, n in zip(of_parts, lengths, case.sites)
        ]
        model = time_model(structure, case.tree, TAXA, bounds, float("nan"), trait)
        settings = TimeSettings(
            seed=replicate, n_runs=1, generations=(30 + N_DRAWS) * case.every, sample_every=case.every,
            tuning_generations=30 * case.every, ancestors=case.ancestors, **case.coupled,
        )  # fmt: skip
        run = begun(observed, model, settings, planted)
        samples = any_advanced(run, settings.generations).samples
        draws = dict(zip(run.columns.names, samples.numbers[-N_DRAWS:, 2:].T))
        kept = samples.parent[-N_DRAWS:], samples.sets[-N_DRAWS:, 0], samples.lengths[-N_DRAWS:]
        draws |= looked_at(*kept) | {f"height of {x}": kept[1][:, x] for x in uncertain}
        parent, heights, _own = tree.sorted()
        truth = {n: v[0] for n, v in looked_at(parent[None], heights[None], time[None]).items()} | numbers
        truth |= {f"height of {x}": tree.heights[x] for x in uncertain}
        for name, own in zip(of_clocks("mean_rate", model.clock_names), np.atleast_2d(rates)):
            truth[name] = (own * time).sum() / time.sum()
        for name in [name for name in truth if name in draws]:
            low, equal = (draws[name] < truth[name]).sum(), (draws[name] == truth[name]).sum()
            found.setdefault(name, []).append(int(low + rng.integers(equal + 1)))
    return {name: np.array(rank) for name, rank in found.items()}


def begun(observed, model, settings, planted):
    """A run at its start, or coupled chains, the constants of all as planted makes them."""
    if settings.n_chains > 1:
        run = new_coupled_run(0, observed, model, settings)
        for h, chain in enumerate(run.chains):
            run.chains[h] = chain if planted is None else replace(chain, data=planted(chain.data))
        return run
    run = new_run(0, observed, model, settings)
    return run if planted is None else replace(run, data=planted(run.data))


def p_value(rank: np.ndarray) -> float:
    """Chi-square of the ranks in eight bins."""
    return float(stats.chisquare(np.bincount(rank * 8 // (N_DRAWS + 1), minlength=8)).pvalue)


@pytest.mark.parametrize("name", CASES)
def test_ranks_are_uniform(name):
    found = ranks(CASES[name], REPLICATES.get(name, 160), seed=5)
    assert set(found) >= {
        "root",
        "length",
        "tip",
        "near",
        "mid",
        "far",
        *CASES[name].drawn(np.random.default_rng(1))[0],
    }
    for quantity, rank in found.items():
        assert p_value(rank) > 1e-3 / 4, (quantity, np.bincount(rank * 8 // (N_DRAWS + 1), minlength=8))


@pytest.mark.parametrize("name", CASES)
def test_a_planted_error_is_seen(name):
    found = ranks(CASES[name], 140 if name == "local" else 80, seed=5, planted=CASES[name].planted)
    assert min(p_value(rank) for rank in found.values()) < 1e-6
