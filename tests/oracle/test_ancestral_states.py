"""Marginal ancestral states against the sum over all internal states."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.linalg import expm

from oracle.small_problems import random_model, random_problem
from phloem.pruning.reference.evaluator import ReferenceEvaluator


def brute_force_posterior(problem, lengths, model, node) -> np.ndarray:
    n_tips, n_patterns = problem.tip_codes.shape
    n_states, total = len(model.rate_matrix), np.zeros((n_patterns, len(model.rate_matrix)))
    for rate, weight in zip(model.rates, model.weights):
        p = [expm(model.rate_matrix * rate * b) for b in lengths]
        for states in product(range(n_states), repeat=n_tips - 1):
            term = np.full(n_patterns, weight * model.root_frequencies[states[-1]])
            for k in range(n_tips - 1):
                for x in (problem.left[k], problem.right[k]):
                    row = p[x][states[k]]
                    tip = x < n_tips
                    term *= problem.state_sets[problem.tip_codes[x]] @ row if tip else row[states[x - n_tips]]
            total[:, states[node - n_tips]] += term
    total += model.invariant * np.all(problem.state_sets[problem.tip_codes], axis=0) * model.root_frequencies
    return total / total.sum(1, keepdims=True)


@pytest.mark.parametrize("reversible", [True, False])
def test_every_internal_node(reversible):
    rng = np.random.default_rng(8)
    problem = random_problem(rng, 5, 3, ambiguous=True)
    model = random_model(rng, 3, (0.5, 2.0), invariant=0.2, reversible=reversible)
    lengths = np.append(rng.gamma(2.0, 0.2, 8), 0.0)
    found = [ReferenceEvaluator(problem).node_posterior(lengths, model, node) for node in range(5, 9)]
    for node, posterior in zip(range(5, 9), found):
        np.testing.assert_allclose(
            posterior, brute_force_posterior(problem, lengths, model, node), atol=1e-12
        )
        np.testing.assert_allclose(posterior.sum(1), 1.0, rtol=1e-12)
    assert np.abs(found[0] - found[-1]).max() > 1e-2  # another node's answer would be seen
