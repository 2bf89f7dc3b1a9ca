"""Routes of a trait: Bayes factors against the enumeration of all their sets, rates against draws from their
prior, and without data the priors of all its numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from phloem.data.traits import TipTraits
from phloem.density import traits
from phloem.density.terms.exponential import Exponential
from phloem.hardware.numba_compile import compiled, uncounted
from phloem.inference.time.compiled import by_address
from phloem.inference.time.settings import TreeModel
from phloem.inference.time.traits import TraitModel
from phloem.summary.routes import bayes_factor
from statistical.time.time_runs import close, nothing_observed, sampled

pytestmark = pytest.mark.slow
TIPS = np.array([0.0, 0.0, 0.5, 1.0, 1.0, 2.5])
STATES = np.eye(3, dtype=bool)[[0, 0, 1, 2, 2, 2]]
STATES[1, 1] = True
TAXA = tuple(f"t{i}" for i in range(6))
OF_TRAIT = (
    "trait_clock_multiplier", "trait_rates_of_routes", "trait_rates_of_routes_alone", "trait_rates_of_others",
    "trait_routes_flip", "trait_routes_flip_alone", "trait_routes_swap",
)  # fmt: skip
density = compiled(traits.trait_density)
of_trait = uncounted(traits.trait_density)


def model_of(symmetric, possible=STATES, few=True, free_root=False):
    return TraitModel(TipTraits("place", TAXA, tuple("XYZ"), possible), symmetric, few, free_root)


def on_one_tree(trait, moves, planted=None, **priors):
    """A run that moves the trait's numbers only, and the tree it has."""
    tree = TreeModel(priors={"clock_rate": 1.0, "trait_clock": Exponential(1.0)} | priors)
    settings = {"generations": 500_000, "move_weights": dict.fromkeys(moves, 1.0), "sample_every": 25}
    numbers, _, run = sampled(nothing_observed(6), TIPS, "JC", tree, trait, planted, **settings)
    s, state = int(run.state.slot[0]), run.state
    lineage = traits.Lineage(state.parent[s], state.left[s], state.right[s], state.order[s], state.heights[s])
    return numbers, run, lineage


def by_enumeration(run, tree, n_points=200):
    """Of every route the probability, and the mean of the clock, rates being 1."""
    record, x = run.data.trait, run.model.space.start()
    at = slice(record.routes, record.routes + len(record.source))
    nodes, weights = np.polynomial.laguerre.laggauss(n_points // 4)
    total, routes, clock, memory = 0.0, 0.0, 0.0, traits.trait_memory(11, 3)
    for there in itertools.product((0.0, 1.0), repeat=len(record.source)):
        x[at] = there
        for rate, weight in zip(nodes, weights):  # of e^-rate
            x[record.clock] = rate
            p = weight * math.exp(density(record, tree, tree, x, x, memory, 0, traits.FRESH))
            total, routes, clock = total + p, routes + p * np.array(there), clock + p * rate
    return routes / total, clock / total


def unspread(trait, before, now, x_before, x, memory, slot, asked):
    """Planted: the density of the number of routes as if it were that of every set of so many."""
    r, n = trait.source.shape[0], 0
    for i in range(r):
        n += x[trait.routes + i] != 0.0
    spread = math.lgamma(r + 1.0) - math.lgamma(n + 1.0) - math.lgamma(r - n + 1.0)
    return of_trait(trait, before, now, x_before, x, memory, slot, asked) + spread


def backwards(data):
    return data._replace(trait=data.trait._replace(source=data.trait.target, target=data.trait.source))


def number_as_set(data):
    return data._replace(trait_density=by_address.TRAIT.address(unspread))


@pytest.mark.parametrize("planted", [None, backwards, number_as_set])
def test_bayes_factors_are_those_of_all_sets(planted):
    moves = [name for name in OF_TRAIT if "rates" not in name]
    numbers, run, tree = on_one_tree(model_of(False), moves, planted, trait_rates=1.0)
    right = run.model.trait.record(run.model.space, run.model.trait_reference)
    object.__setattr__(run, "data", run.data._replace(trait=right))
    routes, clock = by_enumeration(run, tree)
    names = run.model.trait.route_names
    agree = [close(numbers[f"route({name})"], p) for name, p in zip(names, routes)]
    agree.append(close(numbers["trait_clock"], clock))
    assert all(agree) == (planted is None)
    if planted is None:
        prior = traits.prior_of_route(right)
        for name, p in zip(names, routes):
            mean, mcse = numbers[f"route({name})"]
            error = abs(bayes_factor(mean, prior) - bayes_factor(p, prior))
            assert error < 5 * mcse / (1 - p) ** 2 * (1 - prior) / prior


def test_rates_agree_with_draws_of_their_prior():
    """By importance: numbers drawn from the prior, weighted by the likelihood."""
    numbers, run, tree = on_one_tree(model_of(True), OF_TRAIT)
    record, x, rng = run.data.trait, run.model.space.start(), np.random.default_rng(3)
    at, memory, drawn, weights = record.routes, traits.trait_memory(11, 3), [], []
    for _ in range(150_000):
        x[record.clock], x[record.rates : record.rates + 3] = rng.exponential(), rng.exponential(size=3)
        x[at : at + 3] = 1.0  # two or three: the prior's ratio is that of 1 and log 2
        if rng.uniform() * (1 + math.log(2.0)) < 1.0:
            x[at + rng.integers(3)] = 0.0
        prior = traits.log_prior(record, tree, x)
        value = density(record, tree, tree, x, x, memory, 0, traits.FRESH)
        drawn.append([x[record.clock], *x[record.rates : record.rates + 3], *x[at : at + 3]])
        weights.append(math.exp(value - prior) if value > -math.inf else 0.0)
    drawn, weights = np.array(drawn), np.array(weights) / np.sum(weights)
    means = weights @ drawn
    errors = np.sqrt((weights**2) @ (drawn - means) ** 2)
    names = [x for x in run.model.space.elements if x.startswith(("trait_clock", "trait_rate(", "route("))]
    assert len(names) == 7
    for name, mean, error in zip(names, means, errors):
        assert close(numbers[name], mean, error), name


def test_without_data_all_numbers_have_their_prior():
    """The topology moves, too: the clock's reference prior is Gamma(½) with the tree's length as its rate, so
    that their product has mean ½."""
    trait = model_of(False, np.ones_like(STATES), free_root=True)
    tree = TreeModel(priors={"clock_rate": 1.0, "pop_size": 2.0})
    numbers, _, run = sampled(
        nothing_observed(6), TIPS, "JC", tree, trait, generations=1_500_000, sample_every=30
    )
    record = run.data.trait
    first = len(run.samples.numbers) // 5
    columns = ("LnL", "LnPr", *run.columns.names)
    draws = dict(zip(columns, run.samples.numbers[first:].T))
    product = draws["trait_clock"] * draws["tree_length"]
    batches = product[: len(product) // 40 * 40].reshape(40, -1).mean(axis=1)
    assert close((product.mean(), batches.std(ddof=1) / np.sqrt(40)), 0.5)
    assert (draws["trait_likelihood"] == 0.0).all() or np.abs(draws["trait_likelihood"]).max() < 1e-9
    weights = traits.number_weights(record.offset, record.mean, 6)
    assert close(numbers["n_routes"], weights @ np.arange(7) / weights.sum())
    for name in run.model.trait.route_names:
        assert close(numbers[f"route({name})"], traits.prior_of_route(record))
        assert close(numbers[f"trait_rate({name})"], 1.0)
    for state in "XYZ":
        assert close(numbers[f"trait_root({state})"], 1 / 3)
    _, _, plain = sampled(nothing_observed(6), TIPS, "JC", tree, generations=1_500_000, sample_every=30)
    roots = plain.samples.numbers[first:, columns.index("root_height")]
    assert close(numbers["root_height"], roots.mean(), roots.std() / np.sqrt(len(roots) / 20))
