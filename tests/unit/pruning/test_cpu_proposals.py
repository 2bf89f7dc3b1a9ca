"""Proposals on the CPU engine: every one equals a fresh evaluation, and rejecting restores the accepted
state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.small_problems import random_model, random_problem, with_process
from phloem.errors import NumericalError
from phloem.pruning.cpu import regions as cpu_columns
from phloem.pruning.cpu.evaluator import CpuEvaluator
from phloem.pruning.cpu.regions import ColumnStore, MessageStore, Regions
from phloem.pruning.cpu.schedule import Team


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


def failing(lengths, model, left, right):
    """Proposals that raise: what, with which arguments."""
    spoiled = np.where(np.arange(len(lengths)) == 3, np.nan, lengths)
    nobody = with_process(model, root_frequencies=np.full_like(model.single.root_frequencies, np.nan))
    children = interchange(np.random.default_rng(3), left, right)[:2]
    return {
        "length": (NumericalError, (spoiled, np.array([3]))),
        "length, other tree": (NumericalError, (spoiled, np.array([3]), None, *children)),
        "model": (NumericalError, (lengths, np.array([], int), nobody)),
        "half a tree": (ValueError, (lengths, np.array([], int), None, left)),
        "too few lengths": (ValueError, (lengths[:-2], np.array([0]))),
        "no such node": (IndexError, (lengths, np.array([10_000]))),
    }


def assert_nothing_pending(evaluator, problem, lengths, model, value):
    for settle in (evaluator.accept, evaluator.reject):
        with pytest.raises(RuntimeError, match="no proposal"):
            settle()
    left, right, _ = interchange(np.random.default_rng(4), problem.left, problem.right)
    longer = lengths * np.where(np.arange(len(lengths)) == 5, 1.5, 1.0)
    proposed = evaluator.propose(longer, np.array([5]), None, left, right)
    assert proposed == fresh(problem, longer, model, left, right) != value
    evaluator.reject()
    assert evaluator.propose(lengths, np.array([], int)) == value
    evaluator.reject()


@pytest.mark.parametrize("s, c", [(4, 4), (20, 2)])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_proposal_that_fails_leaves_nothing_pending(s, c, threads):
    _, problem, lengths, model = start(s, c)
    evaluator = CpuEvaluator(problem, threads)
    value = evaluator.log_likelihood(lengths, model)
    sites = evaluator.site_log_likelihoods()
    for error, arguments in failing(lengths, model, problem.left, problem.right).values():
        with pytest.raises(error):
            evaluator.propose(*arguments)
        np.testing.assert_array_equal(evaluator.site_log_likelihoods(), sites)
        assert_nothing_pending(evaluator, problem, lengths, model, value)
    expected = CpuEvaluator(problem).gradient(lengths, model)
    assert evaluator.gradient(lengths, model).branch_lengths.tolist() == expected.branch_lengths.tolist()


@pytest.mark.parametrize(
    "place",
    [
        (MessageStore, "grow"),
        (ColumnStore, "renumber"),
        (ColumnStore, "columns"),
        (Regions, "reserve"),
        (Team, "run"),
        (cpu_columns, "_number"),
    ],
    ids=lambda place: f"{place[0].__name__}.{place[1]}",
)
def test_a_proposal_that_runs_out_of_memory_leaves_nothing_pending(place, monkeypatch):
    _, problem, lengths, model = start(4, 4)
    evaluator = CpuEvaluator(problem, 2)
    value = evaluator.log_likelihood(lengths, model)
    left, right, _ = interchange(np.random.default_rng(3), problem.left, problem.right)
    with monkeypatch.context() as patched:
        patched.setattr(*place, out_of_memory)
        with pytest.raises(MemoryError):
            evaluator.propose(lengths, np.arange(len(lengths) - 1), None, left, right)
    assert_nothing_pending(evaluator, problem, lengths, model, value)


def out_of_memory(*_):
    raise MemoryError


def test_an_evaluation_that_fails_is_no_base_for_proposals():
    """From scratch messages are overwritten: what the last good state had is gone, until the next one."""
    _, problem, lengths, model = start(4, 4)
    evaluator = CpuEvaluator(problem)
    value = evaluator.log_likelihood(lengths, model)
    with pytest.raises(NumericalError):
        evaluator.log_likelihood(np.full_like(lengths, np.nan), model)
    with pytest.raises(RuntimeError, match="nothing was evaluated"):
        evaluator.propose(lengths, np.array([0]))
    assert evaluator.log_likelihood(lengths, model) == value
    assert_nothing_pending(evaluator, problem, lengths, model, value)
