"""Determinism, the memory forecast and column blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np
import pytest

from gpu.conftest import INTERPRETED, LATER, steps
from gpu.random_problems import random_case, random_topology
from oracle.small_problems import named_arrays
from phloem.errors import DeviceError
from phloem.pruning.cpu.regions import column_sizes
from phloem.pruning.reference.evaluator import ReferenceEvaluator


def test_the_same_twice():
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    case = random_case(8, 60 if INTERPRETED else 200, 4, 4)
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
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    differ = []
    for seed in (3, 4, 5):  # whether rounding shows depends on the last bits, so on the machine
        case = random_case(5, 300, 4, 2, seed=seed)
        wanted = GpuEvaluator(case.problem).log_likelihood(case.lengths, case.model)
        without_rests, rng = set(), np.random.default_rng(1)
        for n_blocks in (2, 7) if INTERPRETED else (2, 5, 12):
            split = in_blocks(case.problem, n_blocks)
            assert split.log_likelihood(case.lengths, case.model) == wanted
            parts = [
                split._evaluate_block(b, p, "likelihood", case.lengths, case.model, split._site_log)
                for b, p in zip(split._batches, split._patterns)
            ]
            values = [value for value, _ in parts]
            without_rests |= {float(reduce(add, rng.permutation(values))) for _ in range(50)}
        differ.append(without_rests != {wanted})
    assert any(differ)


def test_a_proposal_of_blocks_that_fails_leaves_the_accepted_state():
    from phloem.errors import NumericalError

    case = random_case(5, 60, 4, 1)
    split = in_blocks(case.problem, 2)
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


def in_blocks(problem, n_blocks):
    from phloem.pruning.gpu.blocks import GpuBlockEvaluator, block_of, layout_of, split_patterns
    from phloem.pruning.gpu.evaluator import find_device
    from phloem.pruning.gpu.step_schedule import tiling

    patterns = split_patterns(problem.ascertained, n_blocks)
    tiles = tiling(problem.state_sets.shape[1], problem.precision)
    parts = [block_of(problem, p) for p in patterns]
    layouts = [layout_of(part, tiles, part.left, part.right) for part in parts]
    return GpuBlockEvaluator(problem, list(zip(patterns, layouts)), find_device())


def test_blocks_propose_other_trees(poisoned, monkeypatch):
    """Accepted, rejected, and evaluated afterwards; more columns than the blocks had room for."""
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    case, rng = random_case(9, 90, 4, 2), np.random.default_rng(4)
    trees = [random_topology(9, rng) for _ in range(20)]
    trees.sort(key=lambda tree: column_sizes(replace(case.problem, left=tree[0], right=tree[1])).sum())
    accepted = replace(case.problem, left=trees[0][0], right=trees[0][1])
    split = in_blocks(accepted, 3)
    split.log_likelihood(case.lengths, case.model)
    room = {name: len(array) for name, array in split._pool.items()}
    for keep, (left, right) in zip((True, False, True, False)[: steps(4, 2)], trees[::-6]):
        problem = replace(case.problem, left=left, right=right)
        found = split.propose(case.lengths, np.arange(0), None, left, right)
        assert found == GpuEvaluator(problem).log_likelihood(case.lengths, case.model)
        assert np.allclose(split.site_log_likelihoods(), reference_sites(case, problem), rtol=1e-11)
        split.accept() if keep else split.reject()
        accepted = problem if keep else accepted
        assert np.allclose(split.site_log_likelihoods(), reference_sites(case, accepted), rtol=1e-11)
        wanted = ReferenceEvaluator(accepted).gradient(case.lengths, case.model)
        assert abs(split.propose(case.lengths, np.array([0])) / wanted.log_likelihood - 1) < 1e-11
        split.accept()
        found = split.gradient(case.lengths, case.model)
        assert np.allclose(found.branch_lengths, wanted.branch_lengths, rtol=1e-9, atol=1e-9)
    assert any(len(array) > room[name] for name, array in split._pool.items())
    # Negative control: blocks that are laid out for the tree before.
    from phloem.pruning.gpu import blocks

    before = {id(part): layout for part, layout in zip(split._parts, split._at[2])}
    monkeypatch.setattr(blocks, "layout_of", lambda part, *_: before[id(part)])
    left, right = random_topology(9, rng)
    wanted = ReferenceEvaluator(replace(case.problem, left=left, right=right))
    found = split.propose(case.lengths, np.arange(0), None, left, right)
    assert abs(found / wanted.log_likelihood(case.lengths, case.model) - 1) > 1e-6


def test_memory_that_runs_out_for_another_tree_leaves_the_blocks(monkeypatch):
    """The n-th allocation fails, for every n."""
    import torch

    case, rng, failures = random_case(6, 30, 4, 1), np.random.default_rng(2), 0
    topology, empty = random_topology(6, rng), torch.empty
    for n in range(1, 60):
        split, left = in_blocks(case.problem, 2), [n]
        before = split.log_likelihood(case.lengths, case.model)

        def scarce(*arguments, left=left, **options):
            left[0] -= 1
            if left[0] == 0:
                raise torch.OutOfMemoryError("planted")
            return empty(*arguments, **options)

        monkeypatch.setattr(torch, "empty", scarce)
        try:
            split.propose(case.lengths, np.arange(0), None, *topology)
            break
        except DeviceError:
            failures += 1
        finally:
            monkeypatch.undo()
        assert np.isclose(split.site_log_likelihoods() @ case.problem.pattern_weights, before, rtol=1e-11)
        assert split.propose(case.lengths, np.array([0])) == before
    assert failures > 3


@pytest.mark.parametrize("n_states", [4, pytest.param(20, marks=LATER)])
def test_blocks_of_columns_with_ascertained_patterns(n_states):
    """What one block corrects for counts the weight of all."""
    from phloem.pruning.gpu.blocks import split_patterns

    case = random_case(8, 70, n_states, 2, invariant=0.1, ascertained=True, mean_length=0.05)
    assert (case.problem.tip_codes == 0).all(0).sum() == 1  # what is hidden is not observed
    patterns = split_patterns(case.problem.ascertained, 3)
    assert sorted(np.concatenate(patterns)) == list(range(70))
    split, reference = in_blocks(case.problem, 3), ReferenceEvaluator(case.problem)
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


def reference_sites(case, problem=None):
    reference = ReferenceEvaluator(problem or case.problem)
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
