"""A likelihood in cells on the GPU: the numbers of the NumPy reference, proposals included."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gpu.conftest import INTERPRETED
from gpu.random_problems import random_case
from phloem.errors import DeviceError
from phloem.hardware.ranks import Ranks
from phloem.pruning import grid
from phloem.pruning.grid import GridEvaluator, InThisProcess, OnRanks, cells_of, chosen, in_cells
from phloem.pruning.reference.evaluator import ReferenceEvaluator

torch = pytest.importorskip("torch")


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


def test_bits_do_not_depend_on_the_number_of_gpus(monkeypatch):
    """Four cells on one, two and three GPUs (Triton's interpreter stands for any number)."""
    case = random_case(3, 9, 4, 1, seed=5)
    monkeypatch.setattr(grid, "cells_of", lambda problem, engine: 4)
    monkeypatch.setattr(
        grid, "useful_shares", lambda n, seconds, message: [[4], [2, 2], [2, 1, 1]][len(seconds) - 1]
    )
    if INTERPRETED:  # which bears one thread
        monkeypatch.setattr(grid, "ThreadPoolExecutor", lambda *_: ThreadPoolExecutor(1))
    found = []
    for gpus in (1, 2, 3):
        if torch.cuda.is_available() and gpus > torch.cuda.device_count():
            with pytest.raises(DeviceError, match=f"{gpus} GPUs are asked for"):
                chosen(OnRanks("gpu", Ranks(), gpus), case.problem)
            continue
        selection, evaluator = chosen(OnRanks("gpu", Ranks(), gpus), case.problem)
        assert gpus == 1 or f"{gpus} GPUs; 4 cells of columns" in selection.reason
        found.append(numbers(evaluator, case))
    assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other, strict=True))
    order, problems = in_cells(case.problem, 4)
    swapped = GridEvaluator(order, InThisProcess([selection.make(p) for p in problems[::-1]]))  # planted
    assert not np.array_equal(numbers(swapped, case)[4], found[0][4])


def test_cells_of_gpus_are_a_power_of_two(monkeypatch):
    case = random_case(4, 60, 4, 1, seed=5)
    monkeypatch.setattr(grid, "LEAST_COLUMNS", 1e-3)
    for work, n in ((1e9, 1), (13_000, 1), (6_000, 2), (100, 16)):
        monkeypatch.setitem(grid.LEAST_WORK, "gpu", work)
        assert cells_of(case.problem, "gpu") == n, work
