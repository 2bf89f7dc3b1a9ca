"""Derivatives by site and the second derivatives on the GPU, against the NumPy reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu.conftest import LATER
from gpu.random_problems import random_case
from gpu.test_against_reference import MIXTURES, mixture_case
from oracle.small_problems import with_process
from phloem.pruning.reference.evaluator import ReferenceEvaluator

TABLE = [  # tips, patterns, states, categories
    (2, 1, 4, 1),
    (2, 63, 4, 4),
    (3, 63, 2, 2),
    pytest.param((17, 70, 4, 3), marks=LATER),
    (5, 33, 20, 2),
    (9, 40, 20, 1),
    (4, 17, 61, 1),
    (3, 11, 122, 2),
]


def scaled_error(found, wanted) -> float:
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1.0))


def errors(case, evaluator=None) -> tuple[float, float]:
    """Of derivatives by site, and of second derivatives."""
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    gpu = evaluator or GpuEvaluator(case.problem)
    reference = ReferenceEvaluator(replace(case.problem, precision="float64"))
    arguments = (case.lengths, case.model)
    return (
        scaled_error(gpu.site_branch_derivatives(*arguments), reference.site_branch_derivatives(*arguments)),
        scaled_error(gpu.second_derivatives(*arguments), reference.second_derivatives(*arguments)),
    )


@pytest.mark.parametrize("size", TABLE)
def test_float64(size, poisoned):
    assert max(errors(random_case(*size))) < 1e-9


@pytest.mark.parametrize("size", [(5, 63, 4, 4), (5, 33, 20, 2), (4, 17, 61, 1), (3, 11, 122, 1)])
def test_float32(size, poisoned):
    first, second = errors(random_case(*size, precision="float32"))
    assert first < 1e-4 and second < 1e-3


@pytest.mark.parametrize("n_states", [4, 20])
@pytest.mark.parametrize("ascertained", [False, True])
def test_invariable_sites_and_ascertainment(n_states, ascertained, poisoned):
    assert max(errors(random_case(6, 41, n_states, 2, invariant=0.2, ascertained=ascertained))) < 1e-9


@pytest.mark.parametrize("mixture", MIXTURES)
def test_mixtures(mixture, poisoned):
    assert max(errors(mixture_case(*mixture))) < 1e-9


def test_without_distinct_columns_or_an_eigensystem(poisoned):
    case = random_case(5, 41, 4, 2)
    assert max(errors(replace(case, problem=replace(case.problem, repeats=False)))) < 1e-9
    assert max(errors(replace(case, model=with_process(case.model, eigen=None)))) < 1e-9


@pytest.mark.parametrize("shape", ["caterpillar", pytest.param("balanced", marks=LATER)])
def test_long_trees_are_rescaled(shape, poisoned):
    assert max(errors(random_case(80, 5, 20, 1, shape=shape, mean_length=1.0))) < 1e-9


def test_in_blocks_of_root_columns(monkeypatch, poisoned):
    """One tile of root columns at a time."""
    from phloem.pruning.gpu import sites as gpu_sites

    monkeypatch.setattr(gpu_sites, "SITE_BYTES", 1)
    assert max(errors(random_case(6, 90, 4, 2))) < 1e-9
    assert max(errors(random_case(5, 50, 20, 1, ascertained=True))) < 1e-9


@pytest.mark.parametrize("shape, slots", [("caterpillar", 2), ("balanced", 6), ("random", 7)])
def test_the_walk_needs_few_slots(shape, slots):
    from phloem.pruning.gpu.evaluator import GpuEvaluator
    from phloem.pruning.gpu.sites import walk_order

    gpu = GpuEvaluator(random_case(64, 2, 4, 1, shape=shape).problem)
    walk, used = walk_order(gpu._batch.chains[0])
    assert used <= slots
    assert sorted(walk[:, 8]) == list(range(126))


def test_a_planted_error_is_seen():
    """Negative control: one length a thousandth longer."""
    case = random_case(5, 40, 4, 2)
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    reference, lengths = ReferenceEvaluator(case.problem), case.lengths.copy()
    lengths[2] *= 1.001
    gpu = GpuEvaluator(case.problem)
    wanted = reference.site_branch_derivatives(case.lengths, case.model)
    assert scaled_error(gpu.site_branch_derivatives(lengths, case.model), wanted) > 1e-6
    wanted = reference.second_derivatives(case.lengths, case.model)
    assert scaled_error(gpu.second_derivatives(lengths, case.model), wanted) > 1e-6


def test_impossible_sites_have_no_derivative():
    from phloem.errors import NumericalError
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    case = random_case(3, 10, 4, 1)
    codes = np.zeros_like(case.problem.tip_codes)
    codes[1, 4] = 1
    gpu = GpuEvaluator(replace(case.problem, tip_codes=codes))
    with pytest.raises(NumericalError, match="derivative by site"):
        gpu.site_branch_derivatives(np.zeros(5), case.model)
