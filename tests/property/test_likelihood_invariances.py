"""What must not change a likelihood: where the root is, the order of columns and tips, compression."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.small_problems import random_model, random_problem
from phloem.pruning.interface import Problem
from phloem.pruning.reference.evaluator import ReferenceEvaluator

SEEDS = st.integers(0, 2**32 - 1)


def setting(seed: int, n_states: int = 4, reversible: bool = True, **options):
    rng = np.random.default_rng(seed)
    n_tips = int(rng.integers(3, 9))
    problem = random_problem(rng, n_tips, n_states, n_patterns=12, ambiguous=True, **options)
    model = random_model(rng, n_states, (0.4, 1.6), invariant=0.1, reversible=reversible)
    return rng, problem, model, np.append(rng.gamma(2.0, 0.2, 2 * n_tips - 2), 0.0)


def value(problem: Problem, lengths, model) -> float:
    return ReferenceEvaluator(problem).log_likelihood(lengths, model)


def slide_root(problem: Problem, lengths, share: float):
    """Move the root along the edge that holds it; the sum of its two branches stays."""
    left, right = int(problem.left[-1]), int(problem.right[-1])
    moved, total = lengths.copy(), lengths[left] + lengths[right]
    moved[left], moved[right] = share * total, (1 - share) * total
    return moved


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.floats(0, 1))
def test_pulley_principle(seed, share):
    _, problem, model, lengths = setting(seed)
    moved = slide_root(problem, lengths, share)
    assert value(problem, moved, model) == pytest.approx(value(problem, lengths, model), rel=1e-11)


def test_the_pulley_does_not_run_for_irreversible_models():
    _, problem, model, lengths = setting(3, reversible=False)
    moved = slide_root(problem, lengths, 0.9)
    assert abs(value(problem, moved, model) - value(problem, lengths, model)) > 1e-4


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_order_of_columns_and_compression(seed):
    rng, problem, model, lengths = setting(seed)
    expected = value(problem, lengths, model)
    order = rng.permutation(len(problem.pattern_weights))
    shuffled = replace(
        problem,
        tip_codes=problem.tip_codes[:, order],
        pattern_weights=problem.pattern_weights[order],
        ascertained=problem.ascertained[order],
    )
    assert value(shuffled, lengths, model) == pytest.approx(expected, rel=1e-13)
    sites = np.repeat(problem.tip_codes, problem.pattern_weights.astype(int), axis=1)
    n = sites.shape[1]
    spelled_out = replace(
        problem, tip_codes=sites, pattern_weights=np.ones(n), ascertained=np.zeros(n, bool), repeats=False
    )
    assert value(spelled_out, lengths, model) == pytest.approx(expected, rel=1e-13)
    forgotten = replace(problem, pattern_weights=np.ones_like(problem.pattern_weights))
    if problem.pattern_weights.max() > 1:
        assert value(forgotten, lengths, model) > expected + 1e-3


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_repeats_give_the_gradient_of_every_pattern_at_every_node(seed):
    _, problem, model, lengths = setting(seed)
    one = ReferenceEvaluator(problem).gradient(lengths, model, parameters=True)
    other = ReferenceEvaluator(replace(problem, repeats=False)).gradient(lengths, model, parameters=True)
    np.testing.assert_allclose(one.branch_lengths, other.branch_lengths, rtol=1e-9, atol=1e-9)
    found, wanted = (g.site_model.processes[0].rate_matrix for g in (one, other))
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_swapping_children_and_a_missing_taxon(seed):
    rng, problem, model, lengths = setting(seed)
    swap = rng.random(len(problem.left)) < 0.5
    turned = replace(
        problem,
        left=np.where(swap, problem.right, problem.left),
        right=np.where(swap, problem.left, problem.right),
    )
    assert value(turned, lengths, model) == pytest.approx(value(problem, lengths, model), rel=1e-12)
    # a taxon of missing data has no branch to speak of
    codes = problem.tip_codes.copy()
    codes[0] = 4
    missing = replace(problem, tip_codes=codes)
    longer = lengths + np.where(np.arange(len(lengths)) == 0, 5.0, 0.0)
    assert value(missing, longer, model) == pytest.approx(value(missing, lengths, model), rel=1e-12)
    assert ReferenceEvaluator(missing).gradient(lengths, model).branch_lengths[0] == pytest.approx(
        0, abs=1e-9
    )


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_a_twin_at_distance_zero_adds_nothing(seed):
    """A copy of the last tip, joined to it by branches of length zero, leaves the likelihood as it was."""
    _, problem, model, lengths = setting(seed)
    n = len(problem.tip_codes)
    renumber = np.append(np.arange(n), np.arange(n, 2 * n - 1) + 2)
    renumber[n - 1] = n + 1  # the cherry of the twins, first internal node of T + 1 tips
    twins = replace(
        problem,
        tip_codes=np.vstack([problem.tip_codes, problem.tip_codes[-1:]]),
        left=np.append(np.int32(n - 1), renumber[problem.left]).astype(np.int32),
        right=np.append(np.int32(n), renumber[problem.right]).astype(np.int32),
    )
    longer = np.zeros(2 * n + 1)
    longer[renumber] = lengths
    sharp = np.all(problem.state_sets[problem.tip_codes[-1]].sum(1) == 1)
    found, expected = value(twins, longer, model), value(problem, lengths, model)
    assert found == pytest.approx(expected, rel=1e-11)
    apart = longer.copy()
    apart[n] = 0.3
    if sharp:
        assert value(twins, apart, model) < expected - 1e-3
