"""The GPU engine against the NumPy reference: value, site values and the whole gradient."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from gpu.conftest import LATER
from gpu.random_problems import random_case, random_mixture
from oracle.small_problems import named_arrays, with_process
from phloem.model.record import SiteModel
from phloem.pruning.reference.evaluator import ReferenceEvaluator

TABLE = [  # tips, patterns, states, categories
    (2, 1, 4, 1),
    (2, 63, 4, 4),
    (3, 63, 2, 2),
    (5, 150, 4, 4),
    (17, 63, 4, 1),
    (5, 63, 20, 2),
    (9, 40, 20, 1),
    (5, 63, 61, 1),
    (3, 20, 61, 4),
    (4, 17, 8, 2),
    (3, 11, 122, 1),
]
# The interpreter would take hours.
LARGE = [(64, 63, 2, 2), (64, 1000, 8, 4), (257, 1000, 4, 4), (257, 1000, 20, 1), (257, 1000, 61, 1)]


def relative(a, b) -> float:
    a, b = np.asarray(a), np.asarray(b)
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300))


def compare(case, value_bound: float, gradient_bound: float) -> None:
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    gpu, reference = GpuEvaluator(case.problem), ReferenceEvaluator(case.problem)
    found = gpu.gradient(case.lengths, case.model, parameters=True)
    wanted = reference.gradient(case.lengths, case.model, parameters=True)
    assert relative(found.log_likelihood, wanted.log_likelihood) < value_bound
    assert relative(gpu.site_log_likelihoods(), reference.site_log_likelihoods()) < 10 * value_bound
    assert relative(found.branch_lengths, wanted.branch_lengths) < gradient_bound
    assert found.site_model is not None and wanted.site_model is not None
    by_name = named_arrays(found.site_model)
    for name, array in named_arrays(wanted.site_model).items():
        bound = gradient_bound * max(1.0, np.abs(array).max())
        assert np.abs(by_name[name] - array).max() < bound, name
    assert gpu.log_likelihood(case.lengths, case.model) == found.log_likelihood


@pytest.mark.parametrize("size", TABLE)
def test_float64(size, poisoned):
    compare(random_case(*size), 1e-12, 1e-10)


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") == "1", reason="for a device")
@pytest.mark.parametrize("size", LARGE)
def test_large_on_a_device(size, poisoned):
    compare(random_case(*size), 1e-11, 1e-9)


@pytest.mark.parametrize("n_states", [4, 20])
def test_short_branches(n_states):
    """Of 1e-8 substitutions a site, where exp instead of expm1 would lose half of the digits."""
    case = random_case(5, 40, n_states, 2)
    codes = np.where(case.problem.tip_codes >= n_states, case.problem.tip_codes, case.problem.tip_codes[0])
    case = replace(case, problem=replace(case.problem, tip_codes=codes), lengths=case.lengths * 0 + 1e-8)
    compare(case, 1e-12, 1e-9)


@pytest.mark.parametrize("size", [(5, 150, 4, 4), (5, 63, 20, 2), (5, 40, 61, 1), (3, 11, 122, 1)])
def test_float32(size, poisoned):
    """Site values to 1e-5 relative; sums over a few dozen patterns are closer."""
    compare(random_case(*size, precision="float32"), 1e-6, 1e-5)


@pytest.mark.parametrize("n_states", [4, 20])
@pytest.mark.parametrize("ascertained", [False, True])
def test_invariable_sites_and_ascertainment(n_states, ascertained, poisoned):
    compare(random_case(6, 41, n_states, 2, invariant=0.2, ascertained=ascertained), 1e-12, 1e-10)


def mixture_case(size, n_processes, n_sets, invariant=0.0):
    case, rng = random_case(*size, ascertained=invariant > 0), np.random.default_rng(2)
    model = random_mixture(size[2], size[3], n_processes, n_sets, rng, invariant)
    lengths = rng.exponential(0.2, (n_sets, len(case.lengths)))
    return replace(case, model=model, lengths=lengths if n_sets > 1 else lengths[0])


MIXTURES = [((6, 40, 4, 3), 2, 1, 0.2), ((5, 30, 20, 3), 3, 1, 0.0), ((5, 30, 4, 4), 1, 4, 0.1),
            ((5, 30, 20, 4), 2, 2, 0.0)]  # fmt: skip


@pytest.mark.parametrize("mixture", [*MIXTURES, ((4, 9, 122, 2), 2, 1, 0.0)])
def test_mixtures(mixture, poisoned):
    """Several processes, several sets of branch lengths, invariable sites with frequencies of their own."""
    compare(mixture_case(*mixture), 1e-12, 1e-10)


def test_mixtures_without_eigensystems(poisoned):
    case = mixture_case((4, 30, 4, 3), 2, 1)
    first, second = case.model.processes
    model = replace(case.model, processes=(replace(first, eigen=None), second))
    compare(replace(case, model=model), 1e-12, 1e-9)


def test_a_category_of_the_wrong_process_is_seen():
    """Negative control, of the sets of branch lengths too."""
    case = mixture_case((5, 40, 4, 4), 2, 2)
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    wanted = ReferenceEvaluator(case.problem).log_likelihood(case.lengths, case.model)
    gpu = GpuEvaluator(case.problem)
    assert relative(gpu.log_likelihood(case.lengths, case.model), wanted) < 1e-12
    for name in ("process", "length_class"):
        model = replace(case.model, **{name: getattr(case.model, name)[[1, 0, 2, 3]]})
        assert relative(gpu.log_likelihood(case.lengths, model), wanted) > 1e-6


@pytest.mark.parametrize("size", [(4, 30, 4, 2), (4, 30, 20, 1)])
def test_without_distinct_columns(size):
    case = random_case(*size)
    compare(replace(case, problem=replace(case.problem, repeats=False)), 1e-12, 1e-10)


def test_without_an_eigensystem(poisoned):
    """A nearly defective matrix: the host exponentiates."""
    case = random_case(4, 30, 4, 2)
    compare(replace(case, model=with_process(case.model, eigen=None)), 1e-12, 1e-9)


def test_complex_eigenvalues():
    from phloem.model.record import EigenSystem, ProcessNumbers

    q = np.array([[-1.0, 1.0, 0.0, 0.0], [0.0, -1.0, 1.0, 0.0], [0.0, 0.0, -1.0, 1.0], [1.0, 0.0, 0.0, -1.0]])
    values, right = np.linalg.eig(q)
    frequencies = np.full(4, 0.25)
    eigen = EigenSystem(values, right, np.linalg.inv(right))
    model = SiteModel.of_one(ProcessNumbers(q, frequencies, frequencies, eigen), np.ones(1), np.ones(1))
    compare(replace(random_case(4, 30, 4, 1), model=model), 1e-12, 1e-9)


@pytest.mark.parametrize(
    "shape, precision, bound",
    [
        ("caterpillar", "float64", 1e-12),
        ("balanced", "float32", 1e-5),
        pytest.param("caterpillar", "float32", 1e-5, marks=LATER),
        pytest.param("balanced", "float64", 1e-12, marks=LATER),
    ],
)
def test_long_trees_are_rescaled(shape, precision, bound):
    """Enough tips that unscaled messages would leave the numbers of either precision."""
    case = random_case(90, 3, 20, 1, precision, shape=shape, mean_length=1.0)
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    wanted = ReferenceEvaluator(replace(case.problem, precision="float64")).gradient(case.lengths, case.model)
    found = GpuEvaluator(case.problem).gradient(case.lengths, case.model)
    assert relative(found.log_likelihood, wanted.log_likelihood) < bound
    assert relative(found.branch_lengths, wanted.branch_lengths) < 20 * bound


def test_zero_lengths_are_the_identity():
    case = random_case(4, 20, 4, 2)
    lengths = case.lengths.copy()
    lengths[1] = 0.0
    compare(replace(case, lengths=lengths), 1e-12, 1e-10)


def test_a_planted_error_is_seen():
    """Negative control: a weight forgotten, a length mistaken."""
    case = random_case(5, 40, 4, 2)
    weights = case.problem.pattern_weights.copy()
    weights[3] += 1
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    wanted = ReferenceEvaluator(case.problem).gradient(case.lengths, case.model)
    wrong = GpuEvaluator(replace(case.problem, pattern_weights=weights)).gradient(case.lengths, case.model)
    assert relative(wrong.log_likelihood, wanted.log_likelihood) > 1e-4
    lengths = case.lengths.copy()
    lengths[2] *= 1.001
    wrong = GpuEvaluator(case.problem).gradient(lengths, case.model)
    assert relative(wrong.branch_lengths, wanted.branch_lengths) > 1e-7


def test_impossible_sites_are_minus_infinity():
    case = random_case(3, 10, 4, 1)
    codes = np.zeros_like(case.problem.tip_codes)
    codes[1, 4] = 1
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    gpu = GpuEvaluator(replace(case.problem, tip_codes=codes))
    assert gpu.log_likelihood(np.zeros(5), case.model) == -np.inf
    assert np.isneginf(gpu.site_log_likelihoods()[4])
