"""Sites whose rates are correlated with those of their neighbours (+AG), against the sum over every sequence
of rate categories, on the reference and on the CPU engine."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from oracle.small_problems import (
    brute_force_site_likelihoods,
    central_difference,
    named_arrays,
    random_model,
    random_problem,
    random_topology,
)
from phloem.errors import ModelError
from phloem.model.autocorrelated_rates import neighbours_of
from phloem.model.record import SiteModel
from phloem.pruning.along_sites import AlongSites
from phloem.pruning.cpu import neighbours as compiled
from phloem.pruning.interface import Problem
from phloem.pruning.reference import neighbours as plain
from phloem.pruning.select import select_engine
from phloem.pruning.site_order import SiteOrder, neighbour_powers, powers_adjoint

ENGINES = ["reference", "cpu"]
RATES = (0.0, 0.3, 2.7)  # sites that vary are impossible in the first


def case(n_states: int = 4, n_sites: int = 6, rates=RATES, rho: float = 0.6):
    rng = np.random.default_rng([n_states, n_sites])
    problem = random_problem(rng, 4, n_states, n_patterns=4, ambiguous=True)
    pattern = np.array([1, 0, 2, 0, 3, 1, 0, 2][:n_sites], np.int64)
    distance = np.array([1, 1, 3, 1, 2, 1, 7, 3][:n_sites], np.int64)
    weights = np.bincount(pattern, minlength=4).astype(float)
    n = len(rates)
    problem = replace(problem, n_categories=n, pattern_weights=weights, order=SiteOrder(pattern, distance))
    model = random_model(rng, n_states, rates=rates)
    model = replace(model, weights=np.full(n, 1 / n), neighbours=neighbours_of(rho, n))
    lengths = rng.gamma(2.0, 0.15, 7)
    lengths[-1] = 0.0
    return problem, model, lengths


def evaluator(problem: Problem, engine: str) -> AlongSites:
    found = select_engine(engine, problem, 1).make(problem)
    assert isinstance(found, AlongSites)
    return found


def by_category(problem: Problem, lengths, model: SiteModel) -> np.ndarray:
    """(P, C) likelihoods, each by the sum over all internal states."""
    each = [
        brute_force_site_likelihoods(
            problem, lengths, replace(model, weights=np.eye(model.n_categories)[c], neighbours=None)
        )
        for c in range(model.n_categories)
    ]
    return np.array(each).T


def over_all_paths(problem: Problem, lengths, model: SiteModel) -> tuple[float, np.ndarray]:
    """log L, and (L, C) posterior probabilities of categories, by the sum over C^L sequences of them."""
    order, likelihood = problem.order, by_category(problem, lengths, model)
    assert order is not None
    n_sites, n = len(order.pattern), model.n_categories
    total, shares = 0.0, np.zeros((n_sites, n))
    for path in product(range(n), repeat=n_sites):
        term = model.weights[path[0]] * likelihood[order.pattern[0], path[0]]
        for i in range(1, n_sites):
            between = np.linalg.matrix_power(model.neighbours, int(order.distance[i]))
            term *= between[path[i - 1], path[i]] * likelihood[order.pattern[i], path[i]]
        total += term
        shares[np.arange(n_sites), path] += term
    return float(np.log(total)), shares / total


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("n_states", "rho"), [(2, 0.6), (4, -0.7), (5, 0.95)])
def test_equals_the_sum_over_all_sequences_of_categories(engine, n_states, rho) -> None:
    problem, model, lengths = case(n_states, rho=rho)
    expected, shares = over_all_paths(problem, lengths, model)
    found = evaluator(problem, engine)
    assert found.log_likelihood(lengths, model) == pytest.approx(expected, rel=1e-12)
    assert found.site_categories() == pytest.approx(shares.T, abs=1e-12)
    for change in (
        {"distance": np.ones(6, np.int64)},
        {"pattern": problem.order.pattern[[0, 2, 1, 3, 4, 5]]},
    ):
        given = {"pattern": problem.order.pattern, "distance": problem.order.distance} | change
        moved = replace(problem, order=SiteOrder(**given))
        assert abs(evaluator(moved, engine).log_likelihood(lengths, model) - expected) > 1e-4


@pytest.mark.parametrize("engine", ENGINES)
def test_columns_left_out_are_sites_of_which_nothing_is_known(engine) -> None:
    problem, model, lengths = case()
    order, wholly = problem.order, 4  # the code that allows every state
    gap = np.full((4, 1), wholly, problem.tip_codes.dtype)
    pattern = np.full(int(order.distance[1:].sum()) + 1, 4, np.int64)
    pattern[np.append(0, np.cumsum(order.distance[1:]))] = order.pattern
    weights = np.bincount(pattern, minlength=5).astype(float)
    whole = replace(
        problem,
        tip_codes=np.hstack([problem.tip_codes, gap]),
        pattern_weights=weights,
        ascertained=np.zeros(5, bool),
        order=SiteOrder(pattern, np.ones(len(pattern), np.int64)),
    )
    expected = evaluator(whole, engine).log_likelihood(lengths, model)
    assert evaluator(problem, engine).log_likelihood(lengths, model) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rates", [RATES, (0.2, 0.9, 1.9)])
def test_without_correlation_it_is_that_of_independent_sites(engine, rates) -> None:
    problem, model, lengths = case(rates=rates, rho=0.0)
    apart = replace(problem, order=None)
    plain_model = replace(model, neighbours=None)
    whole = select_engine(engine, apart, 1).make(apart)
    found, expected = (
        e.gradient(lengths, m, parameters=True)
        for e, m in ((evaluator(problem, engine), model), (whole, plain_model))
    )
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-12)
    assert found.branch_lengths == pytest.approx(expected.branch_lengths, rel=1e-10)
    mine, theirs = named_arrays(found.site_model), named_arrays(expected.site_model)
    moves = np.array(rates) > 0  # of a rate of 0 no derivative is found where a site is impossible in it
    mine["rates"], theirs["rates"] = mine["rates"][moves], theirs["rates"][moves]
    for name in ("rates", "rate_matrix 0", "root_frequencies 0"):
        assert mine[name] == pytest.approx(theirs[name], rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("engine", ENGINES)
def test_gradient(engine) -> None:
    problem, model, lengths = case(rates=(0.1, 0.6, 2.3))
    here = evaluator(problem, engine)
    found = here.gradient(lengths, model, parameters=True)

    def value(lengths=lengths, **changes) -> float:
        return here.log_likelihood(lengths, replace(model, **changes))

    slopes = central_difference(lambda x: value(lengths=np.append(x, 0.0)), lengths[:-1])
    assert found.branch_lengths[:-1] == pytest.approx(slopes, rel=1e-6, abs=1e-7)
    by_model = found.site_model
    for name in ("rates", "weights", "neighbours"):
        slopes = central_difference(lambda x, n=name: value(**{n: x}), getattr(model, name))
        assert getattr(by_model, name) == pytest.approx(slopes, rel=1e-6, abs=1e-7), name


@pytest.mark.parametrize("engine", ENGINES)
def test_proposals(engine) -> None:
    problem, model, lengths = case()
    rng, here = np.random.default_rng(5), evaluator(problem, engine)
    first = here.log_likelihood(lengths, model)
    longer = lengths * 1.3
    other = replace(model, neighbours=neighbours_of(-0.3, 3))
    left, right = random_topology(rng, 4)
    for args in (
        (longer, np.arange(6)),
        (lengths, np.arange(0), other),
        (longer, np.arange(6), None, left, right),
    ):
        value = here.propose(*args)
        sides = {} if len(args) < 5 else {"left": left, "right": right}
        new = evaluator(replace(problem, **sides), engine)
        expected = new.log_likelihood(args[0], other if len(args) == 3 else model)
        assert value == pytest.approx(expected, rel=1e-12)
        assert abs(value - first) > 1e-6
        here.reject()
    here.propose(longer, np.arange(6))
    here.accept()
    assert here.propose(lengths, np.arange(6)) == pytest.approx(first, rel=1e-12)


def test_the_compiled_passes_are_the_references() -> None:
    rng = np.random.default_rng(7)
    by_category = rng.normal(-900.0, 30.0, (30, 5))
    by_category[3, 2] = -np.inf
    order = SiteOrder(rng.integers(0, 30, 400), rng.choice([1, 2, 9], 400))
    matrices = neighbour_powers(neighbours_of(0.8, 5), order.distances)
    weights = np.full(5, 0.2)
    one, other = (f.sites_together(order, by_category, weights, matrices) for f in (plain, compiled))
    assert other.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-13)
    assert other.shares == pytest.approx(one.shares, abs=1e-12)
    assert other.pairs == pytest.approx(one.pairs, rel=1e-10, abs=1e-10)
    by_category[order.pattern[7]] = -np.inf
    for form in (plain, compiled):
        assert form.sites_together(order, by_category, weights, matrices).log_likelihood == -np.inf


def test_slopes_of_powers() -> None:
    rng = np.random.default_rng(8)
    base, slope = rng.dirichlet(np.ones(3), 3), rng.normal(size=(3, 3))
    for n in (1, 2, 3, 10, 33):
        expected = central_difference(
            lambda x, n=n: float((np.linalg.matrix_power(x, n) * slope).sum()), base
        )
        found = powers_adjoint(base, np.array([n]), slope[None])
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_that_takes_sites_as_independent_refuses(engine) -> None:
    problem, model, lengths = case()
    apart = replace(problem, order=None)
    with pytest.raises(ModelError, match="correlated"):
        select_engine(engine, apart, 1).make(apart).log_likelihood(lengths, model)
    with pytest.raises(ModelError, match="independent"):
        evaluator(problem, engine).log_likelihood(lengths, replace(model, neighbours=None))
    for method in ("site_branch_derivatives", "second_derivatives"):
        with pytest.raises(ModelError, match=r"\+G"):
            getattr(evaluator(problem, engine), method)(lengths, model)
