"""A likelihood in cells on the GPU: the numbers of the NumPy reference, proposals included."""

from __future__ import annotations

import numpy as np

from gpu.random_problems import random_case
from phloem.pruning.grid import GridEvaluator, InThisProcess, in_cells
from phloem.pruning.reference.evaluator import ReferenceEvaluator


def numbers(evaluator, case) -> list[np.ndarray]:
    """Value, gradient by everything, sites, and a proposal that is taken back."""
    found = evaluator.gradient(case.lengths, case.model, True)
    by_model = found.site_model
    result = [found.log_likelihood, found.branch_lengths, by_model.rates, by_model.processes[0].rate_matrix]
    result.append(evaluator.site_log_likelihoods())
    changed = np.where(np.arange(len(case.lengths)) == 1, 0.4, case.lengths)
    result.append(evaluator.propose(changed, np.array([1])))
    evaluator.reject()
    return [np.asarray(one) for one in result]


def test_cells_have_the_numbers_of_one_piece():
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    case = random_case(3, 9, 4, 1, ascertained=True, seed=5)
    assert not (case.problem.tip_codes[:, 1:] == 0).all(0).any()  # as what is never recorded must be
    order, problems = in_cells(case.problem, 2)
    cells = [GpuEvaluator(one) for one in problems]
    found = numbers(GridEvaluator(order, InThisProcess(cells)), case)
    wanted = numbers(ReferenceEvaluator(case.problem), case)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-8 * np.abs(b).max())
    lost = GridEvaluator(order, InThisProcess(cells[:1])).log_likelihood(case.lengths, case.model)  # planted
    assert abs(lost - wanted[0]) > 0.1
