"""The CPU engine's derivatives by site and second derivatives against the NumPy reference, shape by shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.small_problems import random_model, random_problem, with_process
from phloem.model.record import EigenSystem
from phloem.pruning.cpu import site_derivatives as cpu_site_derivatives
from phloem.pruning.cpu.evaluator import CpuEvaluator
from phloem.pruning.reference.evaluator import ReferenceEvaluator
from unit.pruning.test_cpu_backend import TABLE, caterpillar, close, poisoned, problem_and_model


def assert_same(problem, lengths, model, tolerance=1e-8, threads=1):
    exact = ReferenceEvaluator(replace(problem, precision="float64"))
    cpu = CpuEvaluator(problem, threads)
    sites, expected = (
        cpu.site_branch_derivatives(lengths, model),
        exact.site_branch_derivatives(lengths, model),
    )
    assert sites.dtype == np.float64 and not sites[-1].any()
    close(sites, expected, tolerance)
    close(cpu.second_derivatives(lengths, model), exact.second_derivatives(lengths, model), tolerance)
    return sites


@pytest.mark.parametrize("t, p, s, c, repeats", TABLE)
def test_both_equal_the_reference(t, p, s, c, repeats):
    assert_same(*problem_and_model(t, p, s, c, repeats))


@pytest.mark.parametrize("s, c", [(4, 1), (4, 4), (4, 6), (5, 4), (20, 1)])
@pytest.mark.parametrize("invariant, ascertained", [(0.3, False), (0.0, True), (0.2, True)])
def test_invariable_sites_and_ascertainment(s, c, invariant, ascertained):
    case = problem_and_model(9, 40, s, c, invariant=invariant, ascertained=ascertained)
    sites, gradient = assert_same(*case), CpuEvaluator(case[0]).gradient(*case[1:]).branch_lengths
    if not ascertained:
        close(sites @ case[0].pattern_weights, gradient, 1e-10)


@pytest.mark.parametrize("t, p, s, c", [(64, 63, 32, 4), (5, 63, 61, 1)])
def test_float32_is_near_the_float64_reference(t, p, s, c):
    assert_same(*problem_and_model(t, p, s, c, precision="float32"), tolerance=1e-4)


@pytest.mark.parametrize("s", [4, 5])
@pytest.mark.parametrize("eigen", ["none", "complex"])
def test_any_eigensystem(s, eigen):
    rng = np.random.default_rng(s)
    problem, model = random_problem(rng, 9, s, 30), random_model(rng, s, (0.4, 1.7), reversible=False)
    if eigen == "complex":
        cycle = np.roll(np.eye(s), 1, axis=1) - np.eye(s)
        q = 0.3 * model.single.rate_matrix + 0.7 * cycle
        values, right = np.linalg.eig(q)
        assert np.iscomplexobj(values)
        eigen = EigenSystem(values, right, np.linalg.inv(right))
        model = with_process(model, rate_matrix=q, eigen=eigen)
    assert_same(replace(problem, n_categories=2), rng.exponential(0.2, 17), model)


@pytest.mark.parametrize("s, t, precision", [(4, 2000, "float64"), (32, 300, "float32")])
def test_rescaled_columns(s, t, precision):
    rng = np.random.default_rng(1)
    problem, _, model = problem_and_model(5, 20, s, 4, precision=precision)
    left, right = caterpillar(t)
    codes = rng.integers(0, s, (t, 20)).astype(np.uint8)
    problem = replace(problem, tip_codes=codes, left=left, right=right, ascertained=np.zeros(20, bool))
    tolerance = 1e-4 if precision == "float32" else 1e-8
    assert_same(problem, rng.exponential(0.05, 2 * t - 1), model, tolerance)


@pytest.mark.parametrize("s, c", [(4, 4), (20, 4), (61, 1)])
def test_threads_do_not_change_a_bit(s, c):
    problem, lengths, model = problem_and_model(17, 1000 if s < 61 else 300, s, c)
    one, *others = [CpuEvaluator(problem, threads) for threads in (1, 2, 3)]
    sites, second = one.site_branch_derivatives(lengths, model), one.second_derivatives(lengths, model)
    for other in others:
        np.testing.assert_array_equal(other.site_branch_derivatives(lengths, model), sites)
        np.testing.assert_array_equal(other.second_derivatives(lengths, model), second)


@pytest.mark.parametrize("s", [4, 20])
def test_batches_of_columns_do_not_change_the_result(s, monkeypatch):
    """As on a tree of many taxa, where a batch is small: every column is done once."""
    problem, lengths, model = problem_and_model(9, 130, s, 4, ascertained=True)
    monkeypatch.setattr(cpu_site_derivatives, "_BATCH_ENTRIES", 1)
    monkeypatch.setattr(cpu_site_derivatives, "MOST_TASKS", 3)
    assert_same(problem, lengths, model, threads=2)


@pytest.mark.parametrize("s, c", [(4, 4), (4, 1), (20, 4)])
def test_memory_that_was_not_written_is_not_read(s, c, monkeypatch):
    problem, lengths, model = problem_and_model(17, 63, s, c, invariant=0.1)
    expected = CpuEvaluator(problem)
    sites, second = (
        expected.site_branch_derivatives(lengths, model),
        expected.second_derivatives(lengths, model),
    )
    monkeypatch.setattr(np, "empty", poisoned(np.empty))
    monkeypatch.setattr(np, "empty_like", poisoned(np.empty_like))
    got = CpuEvaluator(problem)
    np.testing.assert_array_equal(got.second_derivatives(lengths, model), second)
    np.testing.assert_array_equal(got.site_branch_derivatives(lengths, model), sites)


def test_memory_is_one_batch_of_columns_a_node():
    """Pre-order vectors of 10,000 codon sequences: some tens of MB, whatever the number of patterns."""
    problem, _, _ = problem_and_model(3, 5, 61, 1)
    shape = CpuEvaluator(problem)._shape
    batch = cpu_site_derivatives.batch_size(10_000, shape)
    assert batch % 6 == 0 and 10_000 * batch * shape.width * 8 < 100e6


def test_after_a_proposal_of_another_tree():
    problem, lengths, model = problem_and_model(17, 63, 4, 4)
    cpu = CpuEvaluator(problem)
    cpu.gradient(lengths, model)
    left, right = caterpillar(17)
    cpu.propose(lengths, np.arange(32), None, left, right)
    cpu.accept()
    exact = ReferenceEvaluator(replace(problem, left=left, right=right))
    close(cpu.second_derivatives(lengths, model), exact.second_derivatives(lengths, model), 1e-8)


def test_a_wrong_answer_is_noticed():
    """Negative control: a rate off by 1e-7, sites in another order, L''/L alone, a missed weight."""
    problem, lengths, model = problem_and_model(5, 63, 4, 4)
    cpu, exact = CpuEvaluator(problem), ReferenceEvaluator(problem)
    sites, second = exact.site_branch_derivatives(lengths, model), exact.second_derivatives(lengths, model)
    scaled = replace(model, rates=model.rates * (1 + 1e-7))
    unweighted = CpuEvaluator(replace(problem, pattern_weights=np.ones(63)))
    for wrong, right in [
        (cpu.site_branch_derivatives(lengths, scaled), sites),
        (cpu.site_branch_derivatives(lengths, model)[:, ::-1], sites),
        (cpu.second_derivatives(lengths, scaled), second),
        (cpu.second_derivatives(lengths, model) + sites**2 @ problem.pattern_weights, second),
        (unweighted.second_derivatives(lengths, model), second),
    ]:
        with pytest.raises(AssertionError):
            close(wrong, right, 1e-8)
