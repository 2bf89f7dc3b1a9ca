"""Parts of an alignment in one sequence of launches: sizes, models and state sets of their own, each part
against the reference; from scratch, and as the chains of a forest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu.conftest import LATER, steps
from gpu.random_edits import children_first
from gpu.random_problems import random_case, random_mixture
from gpu.test_forest import Chain, propose
from gpu.test_forest_gradient import error, numbers_error
from phloem.pruning.cpu.chain_state import FIRST_ROOT
from phloem.pruning.reference.evaluator import ReferenceEvaluator
from phloem.pruning.tree_data import TreeData, layout_key

N_TIPS = 6


def parts_of(n_states=4, n_categories=2):
    """Problems of one layout: other numbers of patterns, state sets in another order, unobservable ones."""
    problems = []
    for k, n_patterns in enumerate((40, 7, 130)):
        case = random_case(N_TIPS, n_patterns, n_states, n_categories, ascertained=k == 1, seed=k)
        problems.append(replace(case.problem, left=np.zeros(0, np.int32), right=np.zeros(0, np.int32)))
    order = np.random.default_rng(8).permutation(len(problems[2].state_sets))
    sets = np.empty_like(problems[2].state_sets)
    sets[order] = problems[2].state_sets
    codes = order[problems[2].tip_codes].astype(np.uint16)
    problems[2] = replace(problems[2], state_sets=sets, tip_codes=codes)
    left, right = (getattr(random_case(N_TIPS, 4, 4, 1).problem, side) for side in ("left", "right"))
    return [replace(p, left=left, right=right) for p in problems]


def models_of(rng, n_states=4, n_categories=2):
    """One has two processes, one invariable sites."""
    return [
        random_mixture(n_states, n_categories, 1, 1, rng),
        random_mixture(n_states, n_categories, 2, 1, rng),
        random_mixture(n_states, n_categories, 1, 1, rng, invariant=0.2),
    ]


def largest_error(found, problems, lengths, models):
    """Of values, branches and numbers of all parts, beside the reference, relative to the largest."""
    errors = []
    for k, problem in enumerate(problems):
        wanted = ReferenceEvaluator(problem).gradient(lengths[k], models[k], parameters=True)
        errors += [
            abs(found[k].log_likelihood / wanted.log_likelihood - 1),
            error(found[k].branch_lengths, wanted.branch_lengths),
            numbers_error(found[k].site_model, wanted.site_model),
        ]
    return np.max(errors)


@pytest.mark.parametrize("n_states", [4, 20])
def test_parts_of_one_layout_are_one_batch(n_states, poisoned):
    from phloem.pruning.gpu.part_cells import GpuPartCells

    rng, problems = np.random.default_rng(1), parts_of(n_states)
    cells = GpuPartCells(problems, models_of(rng, n_states), range(3))
    assert len(cells._batches) == 1 and cells.parts == (0, 1, 2)
    for _ in range(2 if n_states == 4 else steps(2, 1)):  # other lengths and models in the same arrays
        lengths = rng.exponential(0.2, (3, 2 * N_TIPS - 1))
        models = models_of(rng, n_states)
        found = cells.gradients(lengths, models, True)
        assert largest_error(found, problems, lengths, models) < 1e-10
        values = cells.log_likelihoods(lengths, models)
        assert np.allclose(values, [g.log_likelihood for g in found], rtol=1e-13)
        for k, problem in enumerate(problems):
            plain = ReferenceEvaluator(problem)
            plain.log_likelihood(lengths[k], models[k])
            assert np.allclose(cells.site_log_likelihoods(k), plain.site_log_likelihoods(), rtol=1e-10)


def test_codes_and_weights_of_other_parts_are_seen(monkeypatch):
    """The controls: state sets of the first part for all, and its weight behind every ascertained one."""
    from phloem.pruning.gpu import tree_batch
    from phloem.pruning.gpu.part_cells import GpuPartCells

    rng, problems = np.random.default_rng(1), parts_of()
    lengths, models = rng.exponential(0.2, (3, 2 * N_TIPS - 1)), models_of(rng)

    def errors():
        found = GpuPartCells(problems, models, range(3)).gradients(lengths, models, True)
        return [
            largest_error(found[k : k + 1], problems[k : k + 1], lengths[k : k + 1], models[k : k + 1])
            for k in range(3)
        ]

    assert max(errors()) < 1e-10
    with monkeypatch.context() as planted:
        planted.setattr(TreeData, "classes", lambda self, tree, classes: classes)
        assert errors()[2] > 1e-3
    total = tree_batch.total_weights
    monkeypatch.setattr(tree_batch, "total_weights", lambda data: np.full_like(total(data), total(data)[0]))
    wrong = errors()
    assert wrong[1] > 1e-3 and max(wrong[0], wrong[2]) < 1e-10


def test_parts_that_do_not_fit_are_left_out():
    from phloem.pruning.gpu.blocks import forecast_device_bytes
    from phloem.pruning.gpu.part_cells import GpuPartCells

    rng, problems = np.random.default_rng(1), [*parts_of(), *parts_of(n_states=20)]
    models = [*models_of(rng), *models_of(rng, 20)]
    needed = [forecast_device_bytes(problem, parameters=True) for problem in problems]
    cells = GpuPartCells(problems, models, range(6), sum(needed) - 1)
    assert cells.parts == (0, 1, 2, 3, 4) and len(cells._batches) == 2
    assert GpuPartCells(problems, models, range(6), 0).log_likelihoods([], []).size == 0


def test_problems_of_other_layouts_are_refused():
    problems = [*parts_of(), *parts_of(n_categories=3)]
    assert len({layout_key(p) for p in problems}) == 2
    with pytest.raises(ValueError, match="one layout"):
        TreeData.of(problems)


class PartChain(Chain):
    """A chain over one part; its model may have fewer processes than the forest has room for."""

    def __init__(self, tree, model, rng):
        self.__dict__ = {k: v for k, v in tree.copy().__dict__.items()}
        self.lengths, self.model = rng.exponential(0.2, self.lengths.shape), model


@pytest.mark.parametrize("lazy", [pytest.param(False, marks=LATER), True])
def test_chains_over_parts_of_their_own(lazy, poisoned):
    """Two chains of three parts: cells of one forest, each step against the reference of its part."""
    from phloem.pruning.gpu.forest import GpuForest

    rng, problems = np.random.default_rng(3), parts_of() * 2
    trees = [Chain(N_TIPS, 4, 2, rng) for _ in range(2)]
    cells = [PartChain(tree, model, rng) for tree in trees for model in models_of(rng)]
    left, right = (np.stack([getattr(c, side)[N_TIPS:] for c in cells]) for side in ("left", "right"))
    forest = GpuForest(problems, left, right, n_processes=2, lazy=lazy)
    values = forest.start(np.stack([c.lengths for c in cells]), [c.model for c in cells])
    for step in range(steps(5, 3)):
        assert np.allclose(values, [c.reference(p) for c, p in zip(cells, problems)], rtol=1e-11, atol=0)
        if step == 0 or not lazy:
            by_length = forest.gradient(parameters=True)
            for h, (cell, problem) in enumerate(zip(cells, problems)):
                ordered, lengths = cell.from_scratch(problem)
                wanted = ReferenceEvaluator(ordered).gradient(lengths, cell.model, parameters=True)
                number = children_first(cell.left, cell.right)[2]
                assert error(by_length[h, 0], wanted.branch_lengths[number]) < 1e-10
                assert numbers_error(forest.site_model_gradient(h), wanted.site_model) < 1e-10
        forest.settle(np.ones(6, bool))
        kinds = rng.choice(["branches", "interchange", "regraft", "model", "nothing"], 6)
        cells = [propose(forest, h, c, kinds[h], rng) for h, c in enumerate(cells)]
        values = forest.evaluate()
    columns = forest.root_columns
    assert (columns[1:, 0] == np.cumsum(columns[:, 1])[:-1]).all() and len(set(columns[:3, 1])) == 3
    assert np.allclose(forest.site_log_likelihoods(2) @ problems[2].pattern_weights, values[2], rtol=1e-11)
    forest.chains.places.of[1, 0, -1, FIRST_ROOT] -= 1  # the control: root columns that begin one too early
    forest.settle(np.ones(6, bool))
    for h in range(6):
        forest.set_branch(h, 0, 0.3)
    assert not np.allclose(forest.evaluate()[1], cells[1].reference(problems[1]), rtol=1e-9)
