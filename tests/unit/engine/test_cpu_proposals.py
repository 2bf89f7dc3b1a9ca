"""Proposals on the CPU engine: every one equals a fresh evaluation, and rejecting restores the accepted
state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.small_problems import random_model, random_problem
from phloem.engine.cpu import CpuEvaluator


def start(s, c, seed=0, t=24, p=200, **options):
    rng = np.random.default_rng([seed, s, c])
    problem = replace(random_problem(rng, t, s, p, ambiguous=True, **options), n_categories=c)
    return rng, problem, rng.exponential(0.1, 2 * t - 1), random_model(rng, s, rng.gamma(2.0, 0.5, c))


def fresh(problem, lengths, model, left, right):
    return CpuEvaluator(replace(problem, left=left, right=right)).log_likelihood(lengths, model)


def interchange(rng, left, right):
    """A random nearest-neighbour interchange that keeps children below parents, or None where none is
    found."""
    n_tips = len(left) + 1
    left, right = left.copy(), right.copy()
    for k in rng.permutation(len(left)):
        for child, other, side in ((left[k], right[k], right), (right[k], left[k], left)):
            if child >= n_tips and other < child:
                side[k], left[child - n_tips] = left[child - n_tips], other
                return left, right, n_tips + k
    return None


@pytest.mark.parametrize("s, c, repeats", [(4, 4, True), (4, 1, True), (4, 4, False), (20, 2, True)])
def test_a_walk_equals_fresh_evaluations(s, c, repeats):
    rng, problem, lengths, model = start(s, c, repeats=repeats)
    left, right = problem.left, problem.right
    evaluator = CpuEvaluator(problem, threads=int(rng.integers(1, 3)))
    evaluator.log_likelihood(lengths, model)
    for step in range(60):
        new_lengths, new_model, new_left, new_right = lengths.copy(), None, None, None
        changed = rng.choice(len(lengths), rng.integers(0, 3), replace=False)
        new_lengths[changed] *= rng.gamma(5.0, 0.2, len(changed))
        if step % 7 == 3:
            new_model = random_model(rng, s, rng.gamma(2.0, 0.5, c))
        if step % 2 == 1 and (move := interchange(rng, left, right)):
            new_left, new_right, _ = move
        now = (
            new_model or model,
            left if new_left is None else new_left,
            right if new_right is None else new_right,
        )
        value = evaluator.propose(new_lengths, changed, new_model, new_left, new_right)
        assert value == fresh(problem, new_lengths, *now)
        if rng.random() < 0.5:
            evaluator.accept()
            lengths, (model, left, right) = new_lengths, now
        else:
            evaluator.reject()
    expected = CpuEvaluator(replace(problem, left=left, right=right)).gradient(lengths, model)
    got = evaluator.gradient(lengths, model)
    assert got.log_likelihood == expected.log_likelihood
    np.testing.assert_allclose(got.branch_lengths, expected.branch_lengths, rtol=1e-12, atol=1e-9)


def test_site_log_likelihoods_follow_the_state():
    _, problem, lengths, model = start(4, 4)
    evaluator = CpuEvaluator(problem)
    evaluator.log_likelihood(lengths, model)
    accepted = evaluator.site_log_likelihoods()
    longer = lengths * np.where(np.arange(len(lengths)) == 3, 2.0, 1.0)
    evaluator.propose(longer, np.array([3]))
    proposed = evaluator.site_log_likelihoods()
    assert not np.array_equal(proposed, accepted)
    evaluator.reject()
    np.testing.assert_array_equal(evaluator.site_log_likelihoods(), accepted)
    evaluator.propose(longer, np.array([3]))
    evaluator.accept()
    np.testing.assert_array_equal(evaluator.site_log_likelihoods(), proposed)


def test_an_undeclared_change_is_not_seen():
    """Negative control: a length that changed and was not named must give another value than a fresh
    evaluation."""
    _, problem, lengths, model = start(4, 4)
    evaluator = CpuEvaluator(problem)
    evaluator.log_likelihood(lengths, model)
    longer = lengths.copy()
    longer[[3, 5]] *= 2
    partial = evaluator.propose(longer, np.array([3]))
    assert partial != fresh(problem, longer, model, problem.left, problem.right)


def test_protocol_errors():
    _, problem, lengths, model = start(4, 1)
    evaluator = CpuEvaluator(problem)
    with pytest.raises(RuntimeError):
        evaluator.propose(lengths, np.array([0]))
    evaluator.log_likelihood(lengths, model)
    with pytest.raises(RuntimeError):
        evaluator.accept()
    evaluator.propose(lengths, np.array([0]))
    with pytest.raises(RuntimeError):
        evaluator.propose(lengths, np.array([0]))
