"""Determinism, the memory forecast and column blocks."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest

from gpu.random_problems import random_case
from oracle.small_problems import named_arrays
from phloem.errors import DeviceError
from phloem.pruning.reference.evaluator import ReferenceEvaluator


def test_the_same_twice():
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    case = random_case(8, 200, 4, 4)
    first, second = (GpuEvaluator(case.problem).gradient(case.lengths, case.model, True) for _ in range(2))
    assert first.log_likelihood == second.log_likelihood
    assert np.array_equal(first.branch_lengths, second.branch_lengths)
    matrices = [g.site_model.processes[0].rate_matrix for g in (first, second)]
    assert np.array_equal(*matrices)


def test_blocks_of_columns_add_up():
    from phloem.pruning.gpu.blocks import GpuBlockEvaluator, forecast_device_bytes
    from phloem.pruning.gpu.evaluator import GpuEvaluator, make_evaluator

    case = random_case(6, 2500, 4, 1)
    whole = GpuEvaluator(case.problem)
    limit = int(0.9 * forecast_device_bytes(case.problem, parameters=True))
    split = make_evaluator(case.problem, limit)
    assert isinstance(split, GpuBlockEvaluator)
    wanted = whole.gradient(case.lengths, case.model, True)
    found = split.gradient(case.lengths, case.model, True)
    assert found.log_likelihood == wanted.log_likelihood
    assert np.allclose(found.branch_lengths, wanted.branch_lengths, rtol=1e-10, atol=1e-10)
    matrices = [g.site_model.processes[0].rate_matrix for g in (found, wanted)]
    assert np.allclose(*matrices, rtol=1e-9, atol=1e-9)
    assert np.allclose(split.site_log_likelihoods(), whole.site_log_likelihoods(), rtol=1e-12)
    before = split.propose(case.lengths * 2, np.arange(10))
    assert before == whole.log_likelihood(case.lengths * 2, case.model)
    split.reject()
    assert np.allclose(split.site_log_likelihoods(), reference_sites(case), rtol=1e-11)


def test_the_log_likelihood_is_the_same_however_columns_are_split():
    """Whole parts alone, added up one by one, would not be in every order (the negative control; sum() itself
    compensates from Python 3.12 on)."""
    from phloem.pruning.gpu.blocks import GpuBlockEvaluator, block_of, layout_of
    from phloem.pruning.gpu.evaluator import GpuEvaluator, find_device
    from phloem.pruning.gpu.step_schedule import tiling

    case = random_case(5, 300, 4, 2, seed=3)
    wanted = GpuEvaluator(case.problem).log_likelihood(case.lengths, case.model)
    tiles, without_rests = tiling(4, "float64"), set()
    rng = np.random.default_rng(1)
    for n_blocks in (2, 5, 12):
        patterns = np.array_split(np.arange(300), n_blocks)
        blocks = [block_of(case.problem, p) for p in patterns]
        layouts = [layout_of(block, tiles, block.left, block.right) for block in blocks]
        split = GpuBlockEvaluator(case.problem, list(zip(patterns, layouts)), find_device())
        assert split.log_likelihood(case.lengths, case.model) == wanted
        parts = [
            split._evaluate_block(b, p, "likelihood", case.lengths, case.model, split._site_log)
            for b, p in zip(split._batches, split._patterns)
        ]
        values = [value for value, _ in parts]
        without_rests |= {float(reduce(add, rng.permutation(values))) for _ in range(50)}
    assert without_rests != {wanted}


def test_a_proposal_of_blocks_that_fails_leaves_the_accepted_state():
    from phloem.errors import NumericalError
    from phloem.pruning.gpu.blocks import GpuBlockEvaluator, block_of, layout_of
    from phloem.pruning.gpu.evaluator import find_device
    from phloem.pruning.gpu.step_schedule import tiling

    case, patterns = random_case(5, 60, 4, 1), np.array_split(np.arange(60), 2)
    blocks = [block_of(case.problem, p) for p in patterns]
    layouts = [layout_of(block, tiling(4, "float64"), block.left, block.right) for block in blocks]
    split = GpuBlockEvaluator(case.problem, list(zip(patterns, layouts)), find_device())
    with pytest.raises(RuntimeError, match="nothing was evaluated"):
        split.propose(case.lengths, np.array([0]))
    value, sites = split.log_likelihood(case.lengths, case.model), split.site_log_likelihoods()
    spoiled = np.where(np.arange(len(case.lengths)) == 2, np.nan, case.lengths)
    with pytest.raises(NumericalError):
        split.propose(spoiled, np.array([2]))
    assert np.array_equal(split.site_log_likelihoods(), sites)
    assert split.propose(case.lengths, np.array([0])) == value
    split.accept()
    with pytest.raises(NumericalError):
        split.log_likelihood(spoiled, case.model)
    with pytest.raises(RuntimeError, match="nothing was evaluated"):
        split.propose(case.lengths, np.array([0]))


@pytest.mark.parametrize("n_states", [4, 20])
def test_blocks_of_columns_with_ascertained_patterns(n_states):
    """What one block corrects for counts the weight of all."""
    from phloem.pruning.gpu.blocks import GpuBlockEvaluator, block_of, layout_of, split_patterns
    from phloem.pruning.gpu.evaluator import find_device
    from phloem.pruning.gpu.step_schedule import tiling

    case = random_case(8, 70, n_states, 2, invariant=0.1, ascertained=True, mean_length=0.05)
    assert (case.problem.tip_codes == 0).all(0).sum() == 1  # what is hidden is not observed
    problem, sizes = case.problem, tiling(n_states, "float64")
    patterns = split_patterns(problem.ascertained, 3)
    assert sorted(np.concatenate(patterns)) == list(range(70))
    blocks = [(p, layout_of(block_of(problem, p), sizes, problem.left, problem.right)) for p in patterns]
    split, reference = GpuBlockEvaluator(problem, blocks, find_device()), ReferenceEvaluator(problem)
    found, wanted = (e.gradient(case.lengths, case.model, True) for e in (split, reference))
    assert found.log_likelihood == wanted.log_likelihood
    assert np.allclose(found.branch_lengths, wanted.branch_lengths, rtol=1e-10, atol=1e-10)
    by_name = named_arrays(found.site_model)
    for name, array in named_arrays(wanted.site_model).items():
        assert np.allclose(by_name[name], array, rtol=1e-9, atol=1e-9), name
    for name in ("site_branch_derivatives", "second_derivatives"):
        pair = (getattr(e, name)(case.lengths, case.model) for e in (split, reference))
        assert np.allclose(*pair, rtol=1e-9, atol=1e-9), name
    split._batches[0].launch.arrays["total_weight"] *= 0.5  # negative control: the block's own share only
    assert abs(split.log_likelihood(case.lengths, case.model) / wanted.log_likelihood - 1) > 1e-6


def reference_sites(case):
    reference = ReferenceEvaluator(case.problem)
    reference.log_likelihood(case.lengths, case.model)
    return reference.site_log_likelihoods()


def test_too_large_is_refused_with_the_numbers():
    from phloem.pruning.gpu.evaluator import make_evaluator

    case = random_case(6, 120, 20, 2)
    with pytest.raises(DeviceError, match="GiB of device memory"):
        make_evaluator(case.problem, 1000)


@pytest.mark.parametrize("size", [(9, 300, 4, 4), (6, 120, 20, 2), (4, 40, 122, 1)])
def test_the_forecast_is_what_is_allocated(size):
    """Within 10% of the bytes of every tensor the engine holds."""
    from phloem.pruning.gpu.blocks import forecast_device_bytes
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    case = random_case(*size)
    gpu = GpuEvaluator(case.problem)
    gpu.gradient(case.lengths, case.model)
    launch, arrays = gpu._batch.launch, gpu._batch.launch.arrays
    held = [*arrays.values(), *arrays.full.values(), arrays.chains, launch._ranges]
    held.append(gpu._batch.numbers._device)
    found = sum(t.numel() * t.element_size() for t in held)
    assert abs(forecast_device_bytes(case.problem) - found) < 0.1 * found


def test_memory_is_given_back_without_a_garbage_collection():
    import gc
    import weakref

    from phloem.pruning.gpu.evaluator import GpuEvaluator

    case = random_case(4, 10, 4, 1)
    gc.disable()
    try:
        gpu = GpuEvaluator(case.problem)
        gpu.gradient(case.lengths, case.model)
        messages = weakref.ref(gpu._batch.launch.arrays["messages"])
        assert messages() is not None
        del gpu
        assert messages() is None
    finally:
        gc.enable()


def test_no_kernel_is_compiled_for_a_size():
    """Sizes are arguments: two problems that differ in tips, patterns and categories share every kernel."""
    import os

    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("the interpreter compiles nothing")
    from phloem.pruning.gpu.evaluator import GpuEvaluator
    from phloem.pruning.gpu.kernels import postorder, preorder, root, transition

    kernels = [
        postorder.postorder,
        preorder.preorder,
        root.site_likelihoods,
        root.branch_sums,
        transition.transition_matrices,
    ]

    def run(*size):
        case = random_case(*size)
        GpuEvaluator(case.problem).gradient(case.lengths, case.model)
        return [sum(len(cache[0]) for cache in kernel.device_caches.values()) for kernel in kernels]

    first = run(5, 63, 20, 3)
    assert run(17, 1000, 20, 5) == first
