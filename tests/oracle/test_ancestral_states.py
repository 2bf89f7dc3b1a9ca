"""Marginal ancestral states against the sum over all internal states."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.linalg import expm

from oracle.small_problems import random_mixture, random_model, random_problem
from phloem.pruning.reference.evaluator import ReferenceEvaluator


def brute_force_posterior(problem, lengths, model, node) -> np.ndarray:
    n_tips, n_patterns = problem.tip_codes.shape
    n_states = problem.state_sets.shape[1]
    total = np.zeros((n_patterns, n_states))
    for c, (rate, weight) in enumerate(zip(model.rates, model.weights)):
        process, own = model.processes[model.process[c]], np.atleast_2d(lengths)[model.length_class[c]]
        p = [expm(process.rate_matrix * rate * b) for b in own]
        for states in product(range(n_states), repeat=n_tips - 1):
            term = np.full(n_patterns, weight * process.root_frequencies[states[-1]])
            for k in range(n_tips - 1):
                for x in (problem.left[k], problem.right[k]):
                    row = p[x][states[k]]
                    tip = x < n_tips
                    term *= problem.state_sets[problem.tip_codes[x]] @ row if tip else row[states[x - n_tips]]
            total[:, states[node - n_tips]] += term
    allowed = np.all(problem.state_sets[problem.tip_codes], axis=0)
    total += model.invariant * allowed * model.invariant_frequencies
    return total / total.sum(1, keepdims=True)


@pytest.mark.parametrize("kind", ["reversible", "irreversible", "mixture", "lengths per class"])
def test_every_internal_node(kind):
    rng = np.random.default_rng(8)
    problem = random_problem(rng, 5, 3, ambiguous=True)
    lengths = np.append(rng.gamma(2.0, 0.2, 8), 0.0)
    if "reversible" in kind:
        model = random_model(rng, 3, (0.5, 2.0), invariant=0.2, reversible=kind == "reversible")
    else:
        model = random_mixture(rng, 3, 2, 1 if kind == "mixture" else 2, invariant=0.2)
    if model.n_length_classes > 1:
        lengths = np.stack([lengths, lengths[::-1].copy()])
    evaluator = ReferenceEvaluator(problem)
    of_all = dict(evaluator.node_posteriors(lengths, model))
    assert list(of_all) and next(iter(evaluator.node_posteriors(lengths, model)))[0] == 8  # the root first
    found = [of_all[node] for node in range(5, 9)]
    for node, posterior in zip(range(5, 9), found):
        np.testing.assert_allclose(
            posterior, brute_force_posterior(problem, lengths, model, node), atol=1e-12
        )
        np.testing.assert_allclose(posterior.sum(1), 1.0, rtol=1e-12)
    assert np.abs(found[0] - found[-1]).max() > 1e-2  # another node's answer would be seen


def test_ambiguous_tips():
    """What a character without data is likely to be: the state above a tip whose branch has no length."""
    rng = np.random.default_rng(9)
    problem = random_problem(rng, 5, 3, ambiguous=True)
    model, lengths = random_model(rng, 3, (0.5, 2.0), invariant=0.2), np.append(rng.gamma(2.0, 0.2, 8), 0.0)
    lengths[1] = 0.0
    found = dict(ReferenceEvaluator(problem).node_posteriors(lengths, model))
    (above,) = [5 + k for k, pair in enumerate(zip(problem.left, problem.right)) if 1 in pair]
    np.testing.assert_allclose(found[1], found[above], atol=1e-12)
    assert np.abs(found[0] - found[above]).max() > 1e-2
    for tip in range(5):
        assert (found[tip][~problem.state_sets[problem.tip_codes[tip]]] == 0).all()
        np.testing.assert_allclose(found[tip].sum(1), 1.0, rtol=1e-12)


def test_a_site_below_the_range_of_floats():
    """1 / L overflows; invariable sites that no pattern is must not make it NaN."""
    rng = np.random.default_rng(4)
    problem = random_problem(rng, 700, 4)
    model = random_model(rng, 4, (0.5, 2.0), invariant=0.2)
    evaluator = ReferenceEvaluator(problem)
    for node, posterior in evaluator.node_posteriors(np.full(1399, 5.0), model):
        assert np.isfinite(posterior).all() and abs(posterior.sum(1) - 1).max() < 1e-9, node
    assert evaluator.site_log_likelihoods().min() < -800
