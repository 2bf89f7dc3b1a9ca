"""Chains on a device: every proposal against the reference, and against the same chain from scratch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu.conftest import LATER, steps
from gpu.random_edits import children_first, edits, interchange, regraft
from gpu.random_problems import random_case, random_mixture, random_topology
from phloem.errors import NumericalError
from phloem.pruning.reference.evaluator import ReferenceEvaluator


class Chain:
    """One chain's state as the test knows it. left, right: (N,)."""

    def __init__(self, n_tips, n_states, n_categories, rng, mixture=(1, 1)):
        tips = np.full(n_tips, -1)
        self.left, self.right = (np.concatenate([tips, side]) for side in random_topology(n_tips, rng))
        sets = (mixture[1],) if mixture[1] > 1 else ()
        self.lengths = rng.exponential(0.2, (*sets, 2 * n_tips - 1))
        self.kind_of_model = (n_states, n_categories, *mixture)
        self.model = random_mixture(*self.kind_of_model, rng)

    def copy(self):
        other = object.__new__(Chain)
        other.__dict__ = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in self.__dict__.items()}
        return other

    def from_scratch(self, problem):
        """(problem, lengths) of this tree under numbers with children below parents."""
        left, right, number = children_first(self.left, self.right)
        lengths = np.empty_like(self.lengths)
        lengths[..., number] = self.lengths
        return replace(problem, left=left.astype(np.int32), right=right.astype(np.int32)), lengths

    def reference(self, problem):
        problem, lengths = self.from_scratch(replace(problem, precision="float64"))
        return ReferenceEvaluator(problem).log_likelihood(lengths, self.model)


def forest_of(problem, chains, lazy=False):
    from phloem.pruning.gpu.forest import GpuForest

    n_tips = len(problem.tip_codes)
    _, _, n_processes, n_sets = chains[0].kind_of_model
    left, right = (
        np.stack([side[n_tips:] for side in sides]) for sides in zip(*[(c.left, c.right) for c in chains])
    )
    forest = GpuForest(problem, left, right, n_sets=n_sets, n_processes=n_processes, lazy=lazy)
    forest.start(np.stack([c.lengths for c in chains]), [c.model for c in chains])
    return forest


def alone(problem, chain):
    """The value of a chain of its own, from scratch."""
    other = chain.copy()
    ordered, other.lengths = chain.from_scratch(problem)
    tips = np.full(len(problem.tip_codes), -1)
    other.left, other.right = (np.concatenate([tips, side]) for side in (ordered.left, ordered.right))
    return forest_of(problem, [other]).evaluate()[0]


def propose(forest, h, chain, kind, rng):
    """Change chain h of the forest and return what the test makes of it."""
    other = chain.copy()
    if kind == "model":
        other.model = random_mixture(*chain.kind_of_model, rng)
        forest.set_model(h, other.model)
    if kind in ("interchange", "regraft", "both"):
        for _ in range(1 + (kind == "both")):
            other.left, other.right = (regraft if kind == "regraft" else interchange)(
                other.left, other.right, rng
            )
        for edit in edits((chain.left, chain.right), (other.left, other.right)):
            forest.set_children(h, *edit)
    if kind in ("branches", "regraft", "both"):
        for x in rng.choice(len(other.left) - 1, 2, replace=False):
            other.lengths[..., x] *= rng.uniform(0.5, 2.0)
            forest.set_branch(h, x, other.lengths[..., x])
    return other


KINDS = ["branches", "interchange", "regraft", "both", "model", "nothing"]


def walk(case, n_chains, n_steps, seed, bound=1e-11, mixture=(1, 1), lazy=False):
    rng, problem = np.random.default_rng(seed), case.problem
    sizes = len(problem.tip_codes), problem.state_sets.shape[1], problem.n_categories
    chains = [Chain(*sizes, rng, mixture) for _ in range(n_chains)]
    forest = forest_of(problem, chains, lazy)
    for step in range(n_steps):
        kinds = rng.choice(KINDS, n_chains)
        proposed = [propose(forest, h, c, kinds[h], rng) for h, c in enumerate(chains)]
        values = forest.evaluate()
        for h, chain in enumerate(proposed):
            assert abs(values[h] / chain.reference(problem) - 1) < bound, (step, h, kinds[h])
        if step % 5 == 0:
            assert np.array_equal(values, [alone(problem, c) for c in proposed])
        accept = rng.random(n_chains) < 0.5
        forest.settle(accept)
        chains = [b if yes else a for a, b, yes in zip(chains, proposed, accept)]
    assert np.allclose(forest.evaluate(), [c.reference(problem) for c in chains], rtol=bound)
    return forest, chains


SIZES = [(8, 60, 4, 2), (6, 25, 20, 1), (3, 20, 4, 1), (5, 30, 61, 1)]


@pytest.mark.parametrize("lazy", [pytest.param(False, marks=LATER), True])
@pytest.mark.parametrize("size", SIZES)
def test_a_walk_of_several_chains(size, lazy, poisoned):
    case, n_steps = random_case(*size, ascertained=size[0] == 6), steps(6, 3) if size[2] > 4 else steps(12, 5)
    forest, _ = walk(case, 3, n_steps, seed=size[0], lazy=lazy)
    assert not forest.chains.trees.stale.any() or lazy


def test_without_distinct_columns_and_in_blocks_of_states(poisoned):
    case = random_case(5, 20, 4, 2)
    walk(replace(case, problem=replace(case.problem, repeats=False)), 2, steps(6, 3), seed=1)
    walk(random_case(4, 9, 122, 1), 2, steps(3, 2), seed=2)


@pytest.mark.parametrize(
    "size, mixture", [pytest.param((6, 30, 4, 3), (2, 1), marks=LATER), ((5, 20, 20, 4), (2, 2))]
)
def test_mixtures(size, mixture, poisoned):
    walk(random_case(*size), 2, steps(6, 3), seed=6, mixture=mixture)


def test_float32(poisoned):
    walk(random_case(6, 40, 4, 2, "float32"), 2, steps(6, 3), seed=3, bound=1e-6)


@pytest.mark.parametrize("lazy", [pytest.param(False, marks=LATER), True])
def test_columns_are_numbered_as_from_scratch(lazy):
    from phloem.pruning.cpu.chain_state import COLUMNS_IN, LEFT, ROWS, SIZE
    from phloem.pruning.cpu.column_classes import column_classes

    forest, chains = walk(random_case(9, 50, 4, 1), 2, steps(15, 8), seed=5, lazy=lazy)
    trees, places = forest.chains.trees, forest.chains.places
    for h, chain in enumerate(chains):
        left, right, number = children_first(chain.left, chain.right)
        classes = column_classes(left, right, forest.problem.tip_codes)
        node = trees.node[trees.accepted[h], h]
        for x in range(len(number)):
            rows = classes.columns(number[x])
            size, start = places.of[h, node[x, COLUMNS_IN], x, [SIZE, ROWS]]
            packed = places.rows[start : start + size]
            found = [packed & 0xFFFFFFFF, packed >> 32]
            wanted = [classes.left_class[rows], classes.right_class[rows]]
            swapped = x >= 9 and number[node[x, LEFT]] != left[number[x] - 9]
            assert np.array_equal(found[::-1] if swapped else found, wanted)


def test_misuse_and_numbers_that_are_none():
    rng, case = np.random.default_rng(1), random_case(5, 20, 4, 1)
    chains = [Chain(5, 4, 1, rng) for _ in range(2)]
    forest = forest_of(case.problem, chains)
    before = forest.evaluate()
    forest.set_branch(1, 3, np.nan)
    with pytest.raises(NumericalError):
        forest.evaluate()
    assert np.array_equal(forest.evaluate(), before)
    forest.set_model(0, replace(chains[0].model, weights=np.full(1, np.nan)))
    with pytest.raises(NumericalError):
        forest.evaluate()
    assert np.array_equal(forest.evaluate(), before)
    forest.set_branch(0, 3, 0.7)
    changed = forest.evaluate()
    assert changed[0] != before[0] and changed[1] == before[1]
    with pytest.raises(RuntimeError, match="pending"):
        forest.evaluate()
    forest.settle([0, 1])
    assert np.array_equal(forest.evaluate(), before)


@pytest.mark.parametrize("what", ["rates", "values", "frequencies"])
def test_a_model_that_is_no_number_is_never_an_impossible_one(what):
    """-inf is a proposal outside the support, rejected without a word: NaN must not become that."""
    rng, case = np.random.default_rng(1), random_case(5, 20, 4, 1)
    chains = [Chain(5, 4, 1, rng)]
    forest, model = forest_of(case.problem, chains), chains[0].model
    own = model.processes[0]
    wrong = {
        "rates": replace(model, rates=np.full(1, np.nan)),
        "values": replace(
            model, processes=(replace(own, eigen=replace(own.eigen, values=np.full(4, np.nan))),)
        ),
        "frequencies": replace(model, processes=(replace(own, root_frequencies=np.full(4, np.nan)),)),
    }
    forest.set_model(0, wrong[what])
    with pytest.raises(NumericalError):
        forest.evaluate()


def test_too_many_columns_are_refused(monkeypatch):
    from phloem.errors import DeviceError
    from phloem.pruning.gpu import forest

    monkeypatch.setattr(forest, "LARGEST_NODE", 10)
    case = random_case(4, 10, 4, 1)
    with pytest.raises(DeviceError, match="too many"):
        forest.GpuForest(case.problem, case.problem.left[None], case.problem.right[None])


def test_messages_that_are_rescaled(poisoned):
    """What the root notes of its columns is nobody else's: powers of two that nodes have stay theirs."""
    rng, case = np.random.default_rng(8), random_case(70, 12, 20, 1)
    chain = Chain(70, 20, 1, rng)
    chain.lengths[:] = rng.uniform(2.0, 4.0, chain.lengths.shape)
    forest = forest_of(case.problem, [chain])
    assert forest.arrays["power"].min() < -256
    for kind in ("branches", "interchange", "branches"):
        chain = propose(forest, 0, chain, kind, rng)
        assert abs(forest.evaluate()[0] / chain.reference(case.problem) - 1) < 1e-11
        forest.settle([True])


def test_only_the_root_has_other_children():
    """The same two, the other way round: no node has a step but the root."""
    rng, case = np.random.default_rng(2), random_case(5, 20, 4, 1)
    chain = Chain(5, 4, 1, rng)
    forest = forest_of(case.problem, [chain])
    before = forest.evaluate()
    forest.set_children(0, 8, int(chain.right[8]), int(chain.left[8]))
    assert np.allclose(forest.evaluate(), before, rtol=1e-14)


def test_an_edit_that_is_forgotten_is_seen():
    """Negative control: of two nodes with other children only one is named."""
    rng, case = np.random.default_rng(4), random_case(9, 80, 4, 2)
    chain = Chain(9, 4, 2, rng)
    forest = forest_of(case.problem, [chain])
    other = chain.copy()
    other.lengths[:] *= 2
    forest.set_branch(0, 0, other.lengths[0])
    assert abs(forest.evaluate()[0] / other.reference(case.problem) - 1) > 1e-6


def regrafted_beside_branches(forget=False):
    """Relative errors of every generation's values: three lazy chains propose other topologies, half of which
    they accept, while the first mostly proposes branches; each against the same chain on the CPU, from
    scratch. forget: a node whose message lies in other columns than its own is taken for one that does
    not."""
    import torch

    from phloem.pruning.cpu.chain_state import STALE
    from phloem.pruning.cpu.evaluator import CpuEvaluator

    on_gpu = torch.cuda.is_available()
    size, n_steps = ((40, 3000, 4, 4), 300) if on_gpu else ((8, 60, 4, 2), 6)
    rng, problem = np.random.default_rng(11), random_case(*size).problem
    chains = [Chain(size[0], size[2], size[3], rng) for _ in range(4)]
    forest, errors = forest_of(problem, chains, lazy=True), []
    for step in range(n_steps):
        kinds = ["branches" if step % 3 else "regraft", *rng.choice(["interchange", "regraft", "both"], 3)]
        proposed = [propose(forest, h, c, kinds[h], rng) for h, c in enumerate(chains)]
        values = forest.evaluate()
        for value, chain in zip(values, proposed):
            ordered, lengths = chain.from_scratch(problem)
            errors.append(value / CpuEvaluator(ordered).log_likelihood(lengths, chain.model) - 1)
        accept = rng.random(4) < 0.5
        forest.settle(accept)
        chains = [b if yes else a for a, b, yes in zip(chains, proposed, accept)]
        if forget:
            forest.chains.trees.node[..., STALE] = 0
            forest.chains.trees.stale[:] = 0
    return np.abs(errors)


def test_every_generation_is_as_from_scratch():
    assert regrafted_beside_branches().max() < 1e-11


def test_a_message_in_other_columns_is_seen():
    assert regrafted_beside_branches(forget=True).max() > 1e-6
