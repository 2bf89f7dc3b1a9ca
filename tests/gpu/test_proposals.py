"""Partial updates: what a proposal finds, and what accept and reject leave behind."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.random_problems import random_case, random_model, random_topology
from gpu.test_against_reference import MIXTURES, mixture_case
from phloem.pruning.reference.evaluator import ReferenceEvaluator


def both(case):
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    pair = GpuEvaluator(case.problem), ReferenceEvaluator(case.problem)
    for engine in pair:
        engine.log_likelihood(case.lengths, case.model)
    return pair


@pytest.mark.parametrize("size", [(7, 40, 4, 2), (6, 25, 20, 1)])
def test_a_walk_of_proposals(size):
    case = random_case(*size)
    rng = np.random.default_rng(3)
    gpu, reference = both(case)
    lengths, model = case.lengths, case.model
    for step in range(7):
        changed = rng.choice(len(lengths) - 1, 1 + step % 2, replace=False)
        proposed = lengths.copy()
        proposed[changed] *= rng.uniform(0.5, 2.0, len(changed))
        new_model = random_model(size[2], size[3], rng) if step % 4 == 3 else None
        topology = random_topology(size[0], rng) if step == 5 else (None, None)
        found = gpu.propose(proposed, changed, new_model, *topology)
        wanted = reference.propose(proposed, changed, new_model, *topology)
        assert abs(found - wanted) < 1e-11 * abs(wanted)
        if rng.random() < 0.5:
            gpu.accept(), reference.accept()
            lengths, model = proposed, new_model or model
        else:
            gpu.reject(), reference.reject()
        assert np.allclose(gpu.site_log_likelihoods(), reference.site_log_likelihoods(), rtol=1e-11)
    found, wanted = gpu.gradient(lengths, model), reference.gradient(lengths, model)
    assert np.allclose(found.branch_lengths, wanted.branch_lengths, rtol=1e-9)


@pytest.mark.parametrize("mixture", [MIXTURES[0], MIXTURES[2]])
def test_proposals_of_mixtures(mixture):
    """Branches of one set of lengths, then another tree with other lengths."""
    case, rng = mixture_case(*mixture), np.random.default_rng(4)
    gpu, reference = both(case)
    lengths = case.lengths.copy()
    lengths.reshape(-1, lengths.shape[-1])[-1, 3] *= 1.7
    found = gpu.propose(lengths, np.array([3]))
    assert abs(found / reference.propose(lengths, np.array([3])) - 1) < 1e-11
    gpu.accept(), reference.accept()
    topology, other = random_topology(mixture[0][0], rng), lengths * rng.uniform(0.5, 2.0, lengths.shape)
    arguments = (other, np.arange(lengths.shape[-1] - 1), None, *topology)
    assert abs(gpu.propose(*arguments) / reference.propose(*arguments) - 1) < 1e-11
    gpu.accept(), reference.accept()
    found, wanted = gpu.gradient(other, case.model), reference.gradient(other, case.model)
    assert np.allclose(found.branch_lengths, wanted.branch_lengths, rtol=1e-9)


def test_a_change_that_is_not_named_is_not_seen():
    """Negative control: only the named branches are recomputed."""
    case = random_case(6, 30, 4, 1)
    gpu, _ = both(case)
    before = gpu.propose(case.lengths, np.array([0]))
    gpu.reject()
    moved = case.lengths.copy()
    moved[3] *= 2
    assert gpu.propose(moved, np.array([0])) == before


def test_a_failed_proposal_leaves_the_accepted_state(monkeypatch):
    """Out of memory, or a number that is none, must not leave a proposal pending."""
    import torch

    from phloem.errors import DeviceError
    from phloem.pruning.gpu.forest import GpuForest

    case = random_case(5, 20, 4, 1)
    gpu, reference = both(case)

    def no_memory(*arguments, **options):
        raise torch.OutOfMemoryError("planted")

    monkeypatch.setattr(GpuForest, "_grow", no_memory)
    with pytest.raises(DeviceError, match="planted"):
        gpu.propose(case.lengths * 2, np.array([0]))
    monkeypatch.undo()
    found = gpu.propose(case.lengths * 2, np.arange(len(case.lengths) - 1))
    assert abs(found - reference.propose(case.lengths * 2, np.arange(8))) < 1e-11 * abs(found)
    gpu.reject(), reference.reject()
    assert np.allclose(gpu.site_log_likelihoods(), reference.site_log_likelihoods(), rtol=1e-11)


@pytest.mark.parametrize("length", [np.nan, np.inf])
def test_a_length_that_is_no_finite_number_never_gives_a_value(length):
    from phloem.errors import NumericalError
    from phloem.pruning.gpu.forest import GpuForest

    case = random_case(6, 30, 4, 2)
    gpu, reference = both(case)
    spoiled = case.lengths.copy()
    spoiled[3] = length
    with pytest.raises(NumericalError):
        gpu.propose(spoiled, np.array([3]))
    found = gpu.propose(case.lengths * 2, np.arange(len(case.lengths) - 1))
    assert abs(found - reference.propose(case.lengths * 2, np.arange(10))) < 1e-11 * abs(found)
    for evaluate in (gpu.log_likelihood, gpu.gradient):
        with pytest.raises(NumericalError):
            evaluate(spoiled, case.model)
    p, root = case.problem, spoiled.copy()
    forest = GpuForest(p, np.stack([p.left] * 2), np.stack([p.right] * 2))
    root[3], root[-1] = case.lengths[3], np.nan
    assert np.isfinite(forest.start(np.stack([case.lengths, root]), [case.model] * 2)).all()
    with pytest.raises(NumericalError):
        forest.start(np.stack([case.lengths, spoiled]), [case.model] * 2)


def test_misuse_is_refused():
    case = random_case(4, 10, 4, 1)
    gpu, _ = both(case)
    with pytest.raises(RuntimeError, match="no proposal"):
        gpu.accept()
    gpu.propose(case.lengths, np.array([0]))
    with pytest.raises(RuntimeError, match="pending"):
        gpu.propose(case.lengths, np.array([0]))
    gpu.reject()
    with pytest.raises(RuntimeError, match="no proposal"):
        gpu.reject()
