"""The CPU engine against the NumPy reference: value, sites, and the whole gradient, shape by shape."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.small_problems import named_arrays, random_mixture, random_model, random_problem, with_process
from phloem.model.record import SiteModel
from phloem.pruning.cpu.evaluator import CpuEvaluator
from phloem.pruning.reference.evaluator import ReferenceEvaluator

RATES = {1: (1.0,), 3: (0.2, 0.8, 2.1), 4: (0.1, 0.5, 1.1, 2.3), 6: (0.05, 0.3, 0.7, 1.0, 1.6, 3.0)}

# T, P, S, C, repeats: every value of the table's axes with every value of S, the largest only where cheap.
TABLE = [
    *[(t, p, 4, c, r) for t in (2, 3, 5, 64) for p in (1, 63) for c in (1, 4) for r in (True, False)],
    *[(t, p, s, c, True) for t in (2, 3, 5) for p in (1, 63) for s in (2, 8, 20, 61) for c in (1, 4)],
    *[(64, 63, s, c, r) for s in (2, 8, 20) for c in (1, 4) for r in (True, False)],
    (64, 63, 61, 4, True),
    (64, 1000, 4, 4, True),
    (5, 1000, 4, 4, False),
    (257, 63, 4, 4, True),
    (257, 1000, 4, 1, True),
    (257, 63, 2, 4, True),
    (257, 63, 20, 1, True),
    (5, 1000, 20, 4, False),
    (5, 1000, 61, 1, True),
    (17, 63, 4, 3, True),
    (17, 63, 4, 6, True),
    (5, 30, 122, 1, True),
]


def problem_and_model(t, p, s, c, repeats=True, precision="float64", invariant=0.0, seed=0, **options):
    rng = np.random.default_rng([seed, t, p, s, c])
    problem = random_problem(rng, t, s, p, ambiguous=True, repeats=repeats, precision=precision, **options)
    model = random_model(rng, s, RATES[c], invariant=invariant, root=rng.dirichlet(np.full(s, 3.0)))
    return replace(problem, n_categories=c), rng.exponential(0.2, 2 * t - 1), model


def assert_same(problem, lengths, model, value=1e-9, gradient=1e-8, threads=1):
    reference, cpu = ReferenceEvaluator(problem), CpuEvaluator(problem, threads)
    assert cpu.log_likelihood(lengths, model) == pytest.approx(
        reference.log_likelihood(lengths, model), rel=value, abs=value
    )
    np.testing.assert_allclose(
        cpu.site_log_likelihoods(), reference.site_log_likelihoods(), rtol=10 * value, atol=value
    )
    a, b = reference.gradient(lengths, model, True), cpu.gradient(lengths, model, True)
    without = CpuEvaluator(problem).gradient(lengths, model)
    close(without.branch_lengths, a.branch_lengths, gradient)
    close(b.branch_lengths, a.branch_lengths, gradient)
    expected = named_arrays(a.site_model)
    for name, found in named_arrays(b.site_model).items():
        close(found, expected[name], gradient)


def close(got, expected, tolerance):
    assert np.shape(got) == np.shape(expected)
    assert np.abs(np.asarray(got) - expected).max() <= tolerance * max(np.abs(expected).max(), 1e-3)


@pytest.mark.parametrize("t, p, s, c, repeats", TABLE)
def test_value_and_gradient_equal_the_reference(t, p, s, c, repeats):
    assert_same(*problem_and_model(t, p, s, c, repeats))


@pytest.mark.parametrize("t, p, s, c", [(64, 63, 32, 4), (5, 63, 61, 1)])
def test_float32_is_near_the_float64_reference(t, p, s, c):
    problem, lengths, model = problem_and_model(t, p, s, c, precision="float32")
    exact = ReferenceEvaluator(replace(problem, precision="float64")).gradient(lengths, model, True)
    got = CpuEvaluator(problem).gradient(lengths, model, True)
    assert got.log_likelihood == pytest.approx(exact.log_likelihood, rel=1e-5)
    close(got.branch_lengths, exact.branch_lengths, 1e-4)
    close(got.site_model.processes[0].rate_matrix, exact.site_model.processes[0].rate_matrix, 1e-4)


@pytest.mark.parametrize("s, c", [(4, 1), (4, 4), (5, 4), (20, 1)])
@pytest.mark.parametrize("invariant, ascertained", [(0.3, False), (0.0, True), (0.2, True)])
def test_invariable_sites_and_ascertainment(s, c, invariant, ascertained):
    assert_same(*problem_and_model(9, 40, s, c, invariant=invariant, ascertained=ascertained))


@pytest.mark.parametrize("s", [4, 5, 20])
def test_without_an_eigensystem(s):
    rng = np.random.default_rng(s)
    problem = random_problem(rng, 9, s, 30)
    assert_same(problem, rng.exponential(0.2, 17), random_model(rng, s, reversible=False))


@pytest.mark.parametrize("s", [4, 5])
def test_complex_eigensystem(s):
    rng = np.random.default_rng(s)
    problem, model = random_problem(rng, 9, s, 30), random_model(rng, s, reversible=False)
    cycle = np.roll(np.eye(s), 1, axis=1) - np.eye(s)
    q = 0.3 * model.single.rate_matrix + 0.7 * cycle
    values, right = np.linalg.eig(q)
    assert np.iscomplexobj(values)
    from phloem.model.record import EigenSystem

    eigen = EigenSystem(values, right, np.linalg.inv(right))
    assert_same(problem, rng.exponential(0.2, 17), with_process(model, rate_matrix=q, eigen=eigen))


@pytest.mark.parametrize("s, precision", [(4, "float64"), (20, "float64"), (32, "float32")])
@pytest.mark.parametrize("shape", ["caterpillar", "balanced"])
def test_five_thousand_tips(s, precision, shape):
    t = 5000 if s == 4 else 300
    rng = np.random.default_rng(1)
    problem, _, model = problem_and_model(5, 20, s, 4, precision=precision)
    left, right = caterpillar(t) if shape == "caterpillar" else balanced(t)
    codes = rng.integers(0, s, (t, 20)).astype(np.uint8)
    problem = replace(problem, tip_codes=codes, left=left, right=right, ascertained=np.zeros(20, bool))
    lengths = rng.exponential(0.05, 2 * t - 1)
    exact = ReferenceEvaluator(replace(problem, precision="float64")).gradient(lengths, model)
    got = CpuEvaluator(problem, 2).gradient(lengths, model)
    tolerance = 1e-4 if precision == "float32" else 1e-9
    assert np.isfinite(got.branch_lengths).all()
    assert got.log_likelihood == pytest.approx(exact.log_likelihood, rel=tolerance)
    close(got.branch_lengths, exact.branch_lengths, tolerance)


def caterpillar(t):
    nodes = np.arange(t, 2 * t - 2)
    return np.append(0, nodes).astype(np.int32), np.arange(1, t).astype(np.int32)


def balanced(t):
    children = np.arange(2 * t - 2, dtype=np.int32)
    return children[::2].copy(), children[1::2].copy()


@pytest.mark.parametrize("s, c", [(4, 4), (20, 4), (61, 1)])
def test_threads_do_not_change_a_bit(s, c):
    problem, lengths, model = problem_and_model(64, 1000 if s < 61 else 300, s, c)
    results = [CpuEvaluator(problem, threads).gradient(lengths, model, True) for threads in (1, 2, 3, 2)]
    for other in results[1:]:
        assert other.log_likelihood == results[0].log_likelihood
        np.testing.assert_array_equal(other.branch_lengths, results[0].branch_lengths)
        found, expected = (r.site_model.processes[0].rate_matrix for r in (other, results[0]))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("s, c", [(4, 4), (4, 1), (20, 2)])
def test_memory_that_was_not_written_is_not_read(s, c, monkeypatch):
    problem, lengths, model = problem_and_model(17, 63, s, {2: 4}.get(c, c), invariant=0.1)
    expected = CpuEvaluator(problem).gradient(lengths, model, True)
    monkeypatch.setattr(np, "empty", poisoned(np.empty))
    monkeypatch.setattr(np, "empty_like", poisoned(np.empty_like))
    got = CpuEvaluator(problem).gradient(lengths, model, True)
    assert got.log_likelihood == expected.log_likelihood
    np.testing.assert_array_equal(got.branch_lengths, expected.branch_lengths)
    np.testing.assert_array_equal(*(r.site_model.processes[0].rate_matrix for r in (got, expected)))


def poisoned(allocate):
    """np.empty that fills what it gives: NaN, or a number that is no valid index."""

    def allocate_poison(*arguments, **options):
        array = allocate(*arguments, **options)
        if array.dtype.kind in "fiu":
            array.fill(np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).max // 2)
        return array

    return allocate_poison


MIXTURES = [(1, 2, 4), (2, 1, 4), (3, 2, 4), (2, 2, 5), (3, 1, 20)]  # processes, length classes, states


@pytest.mark.parametrize("processes, classes, s", MIXTURES)
def test_mixtures_equal_the_reference(processes, classes, s):
    rng = np.random.default_rng([processes, classes, s])
    problem = random_problem(rng, 9, s, 40, ambiguous=True)
    model = random_mixture(rng, s, n_processes=processes, n_lengths=classes)
    problem = replace(problem, n_categories=model.n_categories)
    lengths = rng.exponential(0.2, (classes, 17)) if classes > 1 else rng.exponential(0.2, 17)
    assert_same(problem, lengths, model)
    reference, cpu = ReferenceEvaluator(problem), CpuEvaluator(problem)
    for name in ("site_branch_derivatives", "second_derivatives"):
        close(getattr(cpu, name)(lengths, model), getattr(reference, name)(lengths, model), 1e-8)
    changed = lengths.copy()
    changed[..., 3] *= 1.5
    exact = reference.log_likelihood(changed, model)
    cpu.log_likelihood(lengths, model)
    assert cpu.propose(changed, np.array([3])) == pytest.approx(exact, rel=1e-9)
    other = replace(model, process=np.roll(model.process, 1), weights=model.weights[::-1].copy())
    if processes > 1:  # the control: which process a category has matters
        cpu.reject()
        assert abs(cpu.propose(changed, np.array([3]), other) - exact) > 1e-3


def test_a_wrong_model_is_noticed():
    """Negative control of assert_same: a scaled rate, or swapped frequencies, must not pass."""
    problem, lengths, model = problem_and_model(5, 63, 4, 4)
    got = CpuEvaluator(problem).gradient(lengths, scaled(model, 1 + 1e-7), True)
    expected = ReferenceEvaluator(problem).gradient(lengths, model, True)
    with pytest.raises(AssertionError):
        close(got.branch_lengths, expected.branch_lengths, 1e-8)


def scaled(model: SiteModel, factor: float) -> SiteModel:
    return replace(model, rates=model.rates * factor)
