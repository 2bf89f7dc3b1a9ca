"""Random walks over branches, models and trees, with failures among them, against the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu.conftest import LATER, steps
from gpu.random_problems import random_case, random_model, random_topology
from oracle.small_problems import with_process
from phloem.errors import DeviceError, NumericalError
from phloem.pruning.reference.evaluator import ReferenceEvaluator


def neighbour(left, right, rng):
    """Swap the subtrees of two nodes neither of which is above the other, keeping children below parents."""
    children = np.stack([left, right], 1)
    n_tips = len(left) + 1
    below: list[set[int]] = [{x} for x in range(n_tips)]
    for a, b in children:
        below.append(below[a] | below[b] | {len(below)})
    while True:
        (i, a), (j, b) = ((int(rng.integers(n_tips - 1)), int(rng.integers(2))) for _ in range(2))
        x, y = children[i, a], children[j, b]
        if x not in below[y] and y not in below[x] and y < n_tips + i and x < n_tips + j:
            children[i, a], children[j, b] = y, x
            return np.ascontiguousarray(children[:, 0]), np.ascontiguousarray(children[:, 1])


def step(kind, state, size, rng):
    """(lengths, changed, model, topology) of a proposal; the last two None where they stay."""
    lengths, _, topology = state
    n_branches = len(lengths) - 1
    changed = rng.choice(n_branches, int(rng.integers(1, 4)) % n_branches, replace=False)
    lengths = lengths.copy()
    lengths[changed] *= rng.uniform(0.5, 2.0, len(changed))
    model = random_model(size[2], size[3], rng) if kind == "model" else None
    if kind == "tree":
        topology = neighbour(*topology, rng)
    elif kind == "far tree":
        topology = random_topology(size[0], rng)
    return lengths, changed, model, topology if "tree" in kind else None


def without_numbers(model):
    return with_process(model, root_frequencies=np.full_like(model.single.root_frequencies, np.nan))


def walk(case, size, n_steps, seed, bound=1e-11):
    from phloem.pruning.gpu.evaluator import GpuEvaluator

    rng, gpu = np.random.default_rng(seed), GpuEvaluator(case.problem)
    state = (case.lengths, case.model, (case.problem.left, case.problem.right))

    def reference(lengths, model, topology):
        problem = replace(case.problem, left=topology[0], right=topology[1], precision="float64")
        evaluator = ReferenceEvaluator(problem)
        return evaluator.log_likelihood(lengths, model), evaluator

    gpu.log_likelihood(*state[:2])
    for number in range(n_steps):
        kind = rng.choice(
            ["branches", "tree", "far tree", "model", "failure", "scratch"], p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1]
        )
        if kind == "failure":
            with pytest.raises(NumericalError):
                gpu.propose(state[0] * 2, np.arange(3), without_numbers(state[1]), *neighbour(*state[2], rng))
        elif kind == "scratch":
            assert abs(gpu.gradient(*state[:2]).log_likelihood / reference(*state)[0] - 1) < bound
        else:
            lengths, changed, model, topology = step(kind, state, size, rng)
            proposed = (lengths, model or state[1], topology or state[2])
            found = gpu.propose(lengths, changed, model, *(topology or (None, None)))
            assert abs(found / reference(*proposed)[0] - 1) < bound, (number, kind)
            if number % 8 == 0:
                fresh = GpuEvaluator(replace(case.problem, left=proposed[2][0], right=proposed[2][1]))
                assert found == fresh.log_likelihood(*proposed[:2])
            if rng.random() < 0.5:
                gpu.accept()
                state = proposed
            else:
                gpu.reject()
        if rng.random() < 0.3:
            sites = reference(*state)[1].site_log_likelihoods()
            assert np.allclose(gpu.site_log_likelihoods(), sites, rtol=10 * bound)
    evaluator = reference(*state)[1]
    wanted = evaluator.gradient(*state[:2]).branch_lengths
    assert np.allclose(gpu.gradient(*state[:2]).branch_lengths, wanted, rtol=1e2 * bound, atol=1e3 * bound)
    return gpu


SIZES = [pytest.param((8, 140, 4, 1), marks=LATER), (6, 25, 20, 1), (7, 40, 4, 2)]


@pytest.mark.parametrize("size", SIZES)
def test_against_the_reference(size, poisoned):
    walk(random_case(*size, ascertained=size[1] == 40), size, steps(20, 12), seed=size[0])


def test_without_distinct_columns_or_an_eigensystem(poisoned):
    size = (6, 30, 4, 1)
    case = random_case(*size)
    walk(replace(case, problem=replace(case.problem, repeats=False)), size, 8, seed=1)
    walk(replace(case, model=with_process(case.model, eigen=None)), size, 8, seed=2)


def test_float32(poisoned):
    walk(random_case(6, 40, 4, 2, "float32"), (6, 40, 4, 2), 8, seed=3, bound=1e-6)


def renamed(left, right, rng):
    """The same tree under other numbers and with some children swapped, and each node's new number."""
    n_tips = len(left) + 1
    name, waiting, pairs = {x: x for x in range(n_tips)}, list(range(n_tips - 1)), []
    while waiting:
        ready = [k for k in waiting if left[k] in name and right[k] in name]
        k = int(rng.choice(ready))
        waiting.remove(k)
        pair = [name[left[k]], name[right[k]]]
        pairs.append(pair if rng.random() < 0.5 else pair[::-1])
        name[n_tips + k] = n_tips + len(pairs) - 1
    children = np.array(pairs)
    new = np.array([name[x] for x in range(2 * n_tips - 1)])
    return np.ascontiguousarray(children[:, 0]), np.ascontiguousarray(children[:, 1]), new


def test_a_subtree_is_known_by_its_tips_not_by_its_number(monkeypatch):
    from phloem.pruning.gpu import updates as gpu_updates
    from phloem.pruning.gpu.evaluator import GpuEvaluator
    from phloem.pruning.topology import match_clades

    case, rng = random_case(12, 30, 4, 1), np.random.default_rng(8)
    gpu, moved = GpuEvaluator(case.problem), []

    def watched(*arguments):
        match = match_clades(*arguments)
        moved.append(len(match.moved))
        return match

    monkeypatch.setattr(gpu_updates, "match_clades", watched)
    before = gpu.log_likelihood(case.lengths, case.model)
    left, right = neighbour(case.problem.left, case.problem.right, rng)
    for topology, is_same in (((case.problem.left, case.problem.right), True), ((left, right), False)):
        left, right, new = renamed(*topology, rng)
        lengths = np.empty_like(case.lengths)
        lengths[new] = case.lengths
        found = gpu.propose(lengths, np.arange(22), None, left, right)
        problem = replace(case.problem, left=left, right=right)
        assert found == GpuEvaluator(problem).log_likelihood(lengths, case.model)
        assert (found == before) == is_same
        gpu.accept() if is_same else gpu.reject()
    assert moved[0] == 0 and 0 < moved[1] < 11


def test_laid_out_anew_where_regions_have_spread(monkeypatch, poisoned):
    from phloem.pruning.gpu import updates as gpu_updates

    monkeypatch.setattr(gpu_updates, "SPREAD_BYTES", 0)
    monkeypatch.setattr(gpu_updates, "MOST_SPREAD", 1)
    walk(random_case(8, 60, 4, 1), (8, 60, 4, 1), 10, seed=4)


def test_memory_that_runs_out_anywhere_leaves_the_accepted_state(monkeypatch):
    """The n-th allocation fails, for every n."""
    import torch

    from phloem.pruning.gpu.evaluator import GpuEvaluator

    case, rng = random_case(4, 20, 4, 1), np.random.default_rng(5)
    topology, empty = neighbour(case.problem.left, case.problem.right, rng), torch.empty
    before = ReferenceEvaluator(case.problem).log_likelihood(case.lengths, case.model)
    problem = replace(case.problem, left=topology[0], right=topology[1])
    after = ReferenceEvaluator(problem).log_likelihood(case.lengths, case.model)
    failures = 0
    for n in range(20):
        gpu, left = GpuEvaluator(case.problem), [n]
        gpu.log_likelihood(case.lengths, case.model)

        def scarce(*arguments, left=left, **options):
            left[0] -= 1
            if left[0] < 0:
                raise torch.OutOfMemoryError("planted")
            return empty(*arguments, **options)

        monkeypatch.setattr(torch, "empty", scarce)
        try:
            gpu.propose(case.lengths, np.arange(3), None, *topology)
            break
        except DeviceError:
            failures += 1
        finally:
            monkeypatch.undo()
        assert np.isclose(gpu.site_log_likelihoods() @ case.problem.pattern_weights, before, rtol=1e-11)
        assert abs(gpu.propose(case.lengths, np.arange(3), None, *topology) / after - 1) < 1e-11
    assert 3 < failures < 20


def test_a_forgotten_branch_is_seen():
    """Negative control: a proposal that forgets one changed branch differs from the reference."""
    from phloem.pruning.gpu.evaluator import GpuEvaluator
    from phloem.pruning.gpu.forest import GpuForest

    case, rng = random_case(9, 150, 4, 2), np.random.default_rng(6)
    left, right = neighbour(case.problem.left, case.problem.right, rng)
    problem, lengths, whole = replace(case.problem, left=left, right=right), case.lengths.copy(), []
    lengths[[2, 5]] *= 1.5
    wanted = ReferenceEvaluator(problem).log_likelihood(lengths, case.model)
    set_branches = GpuForest.set_branches

    def forgets(forest, chain, nodes, lengths):
        whole.append(len(nodes))
        set_branches(forest, chain, nodes[1:], lengths[:, 1:])

    gpu = GpuEvaluator(case.problem)
    gpu.log_likelihood(case.lengths, case.model)
    gpu.propose(case.lengths, np.array([0]))
    gpu.reject()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GpuForest, "set_branches", forgets)
        assert abs(gpu.propose(lengths, np.arange(0), None, left, right) / wanted - 1) > 1e-6
    gpu.reject()
    assert abs(gpu.propose(lengths, np.arange(0), None, left, right) / wanted - 1) < 1e-11
    assert whole == [2]
