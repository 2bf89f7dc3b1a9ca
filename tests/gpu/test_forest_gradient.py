"""Gradients of chains on a device: after proposals of every kind, against the reference, alone and in
company."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu.conftest import LATER, steps
from gpu.random_edits import children_first
from gpu.random_problems import random_case
from gpu.test_forest import KINDS, Chain, forest_of, propose
from oracle.small_problems import named_arrays, with_process
from phloem.errors import DeviceError
from phloem.pruning.cpu.chain_state import LEFT, N_EDITS, RIGHT, ROWS_WRITTEN
from phloem.pruning.cpu.chain_sums import CLASSES, MADE_FROM
from phloem.pruning.reference.evaluator import ReferenceEvaluator


def reference(problem, chain):
    """(K, N) under the chain's own numbers of nodes."""
    problem, lengths = chain.from_scratch(replace(problem, precision="float64"))
    found = ReferenceEvaluator(problem).gradient(lengths, chain.model).branch_lengths
    return np.atleast_2d(found)[:, children_first(chain.left, chain.right)[2]]


def error(found, wanted):
    return np.abs(found - wanted).max() / np.abs(wanted).max()


def compare(forest, problem, chains, mask, bound):
    found = forest.gradient(mask)
    for h, chain in enumerate(chains):
        if mask[h]:
            assert error(found[h], reference(problem, chain)) < bound
        else:
            assert not found[h].any()


def walk(case, n_chains, n_steps, seed, bound=1e-10, mixture=(1, 1), lazy=False, compare=compare):
    """Chains that propose, and gradients of some of them while proposals wait and after they are settled."""
    rng, problem = np.random.default_rng(seed), case.problem
    sizes = len(problem.tip_codes), problem.state_sets.shape[1], problem.n_categories
    chains = [Chain(*sizes, rng, mixture) for _ in range(n_chains)]
    forest = forest_of(problem, chains, lazy)
    for _ in range(n_steps):
        kinds = rng.choice(KINDS, n_chains)
        proposed = [propose(forest, h, c, kinds[h], rng) for h, c in enumerate(chains)]
        forest.evaluate()
        other_trees = forest.change.counts[:, N_EDITS] > 0
        if lazy and (forest.chains.trees.pending & other_trees).any():
            with pytest.raises(RuntimeError, match="pending"):
                forest.gradient()
        else:
            compare(forest, problem, proposed, rng.random(n_chains) < 0.4, bound)
        accept = rng.random(n_chains) < 0.5
        forest.settle(accept)
        chains = [b if yes else a for a, b, yes in zip(chains, proposed, accept)]
        compare(forest, problem, chains, rng.random(n_chains) < 0.6, bound)
    compare(forest, problem, chains, np.ones(n_chains, bool), bound)
    return forest, chains


SIZES = [
    (8, 60, 4, 2),
    *(pytest.param(size, marks=LATER) for size in ((7, 150, 4, 1), (6, 25, 20, 1))),
    (3, 20, 4, 1),
    (2, 9, 4, 2),
    (5, 30, 61, 1),
]


@pytest.mark.parametrize("size", SIZES)
def test_a_walk_of_several_chains(size, poisoned):
    if size[0] > 2:
        walk(random_case(*size, ascertained=size[0] == 6), 3, steps(4, 2), seed=size[0])
    else:
        rng, case = np.random.default_rng(1), random_case(*size)
        chain = Chain(size[0], size[2], size[3], rng)
        compare(forest_of(case.problem, [chain]), case.problem, [chain], np.ones(1, bool), 1e-10)


def test_columns_that_are_numbered_late(poisoned):
    forest, _ = walk(random_case(8, 60, 4, 2), 3, steps(4, 2), seed=3, lazy=True)
    assert not forest.chains.trees.stale[forest.chains.trees.accepted, np.arange(3)].any()


def test_columns_that_nothing_made_stale_reach_the_device(poisoned):
    """Where all columns are distinct, accepted topologies leave no message to make anew, and class rows that
    the device has not got."""
    walk(random_case(6, 3, 4, 2), 2, 3, seed=4, lazy=True, compare=compare_numbers)


def test_without_distinct_columns_and_in_blocks_of_states(poisoned):
    case = random_case(5, 20, 4, 2)
    walk(replace(case, problem=replace(case.problem, repeats=False)), 2, steps(4, 2), seed=1)
    walk(random_case(4, 40, 122, 1), 1, steps(3, 1), seed=2)


@pytest.mark.parametrize(
    "size, mixture", [((6, 30, 4, 3), (2, 1)), pytest.param((5, 20, 20, 4), (2, 2), marks=LATER)]
)
def test_mixtures(size, mixture, poisoned):
    walk(random_case(*size, invariant=0.1), 2, steps(4, 2), seed=6, mixture=mixture)


@pytest.mark.parametrize("size", [(6, 300, 4, 1), pytest.param((6, 500, 20, 1), marks=LATER)])
def test_many_pieces_and_tiles(size, poisoned, monkeypatch):
    """Short sums and narrow tiles: classes with several groups fill more than one tile."""
    from phloem.pruning.gpu import forest as room

    whole = room.tiling
    monkeypatch.setattr(room, "tiling", lambda *what: replace(whole(*what), pre_tile=16, longest=1))
    forest, _ = walk(random_case(*size), 1, 1, seed=7)
    trees = forest.chains.trees
    inner = size[0] <= trees.node[trees.accepted[0], 0, :, [LEFT, RIGHT]].T
    assert (forest._gradients.sums.of[0, :, inner, CLASSES]).max() > 16


def test_nothing_is_launched_for_no_chain(poisoned, monkeypatch):
    """Nobody would wait for it: the next list would be written while it is being read."""
    from phloem.pruning.gpu.forest_gradient import ForestGradients

    rng, case = np.random.default_rng(5), random_case(6, 20, 4, 1)
    chain = Chain(6, 4, 1, rng)
    forest = forest_of(case.problem, [chain])
    launched, launch = [], ForestGradients._launch

    def counted(self, key, parameters):
        launched.append(key)
        launch(self, key, parameters)

    monkeypatch.setattr(ForestGradients, "_launch", counted)
    for parameters in (False, True):
        assert not forest.gradient(np.zeros(1, bool), parameters).any()
    assert not launched and not forest.gradients._graphs
    compare(forest, case.problem, [chain], np.ones(1, bool), 1e-10)
    assert launched


def test_messages_that_are_rescaled(poisoned):
    rng, case = np.random.default_rng(8), random_case(70, 12, 20, 1)
    chain = Chain(70, 20, 1, rng)
    chain.lengths[:] = rng.uniform(2.0, 4.0, chain.lengths.shape)
    forest = forest_of(case.problem, [chain])
    for kind in ("nothing", "interchange"):
        chain = propose(forest, 0, chain, kind, rng)
        forest.evaluate()
        forest.settle([True])
        compare(forest, case.problem, [chain], np.ones(1, bool), 1e-10)


def test_float32(poisoned):
    walk(random_case(6, 40, 4, 2, "float32"), 2, steps(4, 2), seed=3, bound=1e-4)


def test_company_and_history_change_no_bit():
    """What a chain finds after a walk, in company and under a mask, is what it finds alone from scratch; and
    the same once more."""
    forest, chains = walk(random_case(7, 100, 4, 2), 2, steps(4, 2), seed=4)
    together = forest.gradient()
    assert np.array_equal(forest.gradient(), together)
    for h, chain in enumerate(chains):
        mask = np.arange(2) == h
        assert np.array_equal(forest.gradient(mask)[h], together[h])
        alone = copy_of(forest, chain, h)
        assert np.array_equal(alone.gradient()[0], together[h])


def copy_of(forest, chain, h):
    """Chain h of a forest in a forest of its own. Its nodes keep their numbers: these decide about the order
    of children, and thus of sums."""
    from phloem.pruning.gpu.forest import GpuForest

    start = random_start(len(forest.problem.tip_codes))
    other = GpuForest(forest.problem, *(side[None] for side in start))
    trees = forest.chains.trees
    node = trees.node[trees.accepted[h], h]
    other.start(chain.lengths[None], [chain.model])
    for x in range(len(forest.problem.tip_codes), len(node)):
        other.set_children(0, x, int(node[x, LEFT]), int(node[x, RIGHT]))
    for x in range(len(node) - 1):
        other.set_branch(0, x, chain.lengths[x])
    other.evaluate()
    other.settle([True])
    return other


def random_start(n_tips):
    from gpu.random_problems import random_topology

    return random_topology(n_tips, np.random.default_rng(11))


def test_only_the_lists_of_the_path_are_made_anew():

    rng, case = np.random.default_rng(2), random_case(9, 80, 4, 1)
    chain = Chain(9, 4, 1, rng)
    forest = forest_of(case.problem, [chain])
    forest.gradient()
    made = forest._gradients.sums.of
    before = made.copy()
    proposed = propose(forest, 0, chain, "interchange", rng)
    forest.evaluate()
    forest.settle([False])
    forest.gradient()
    assert np.array_equal(made, before)
    proposed = propose(forest, 0, chain, "interchange", rng)
    forest.evaluate()
    forest.settle([True])
    compare(forest, case.problem, [proposed], np.ones(1, bool), 1e-10)
    assert 2 <= (made[0, ..., 0, MADE_FROM] != before[0, ..., 0, MADE_FROM]).sum() <= 4


def test_lists_of_another_tree_are_seen():
    """Negative control: what an interchange makes void is taken for valid."""

    rng, case = np.random.default_rng(2), random_case(9, 80, 4, 1)
    chain = Chain(9, 4, 1, rng)
    forest = forest_of(case.problem, [chain])
    forest.gradient()
    of, places = forest._gradients.sums.of, forest.chains.places.of
    of[:, 1] = of[:, 0]
    proposed = propose(forest, 0, chain, "interchange", rng)
    forest.evaluate()
    of[0, 1, :, :, MADE_FROM] = places[0, 1, :, ROWS_WRITTEN, None]
    assert not error(forest.gradient()[0], reference(case.problem, proposed)) < 1e-3


def numbers_error(found, wanted):
    """The largest difference of any number, relative to the largest of its kind."""
    found, wanted = named_arrays(found), named_arrays(wanted)
    largest = {key: max(1.0, np.abs(array).max()) for key, array in wanted.items()}
    return np.max([np.abs(found[key] - wanted[key]).max() / largest[key] for key in wanted])


def of_numbers(forest, problem, chain, h):
    """How far the gradient by the numbers of chain h's model is off."""
    ordered, lengths = chain.from_scratch(problem)
    wanted = ReferenceEvaluator(ordered).gradient(lengths, chain.model, parameters=True).site_model
    return numbers_error(forest.site_model_gradient(h), wanted)


def compare_numbers(forest, problem, chains, mask, bound):
    found = forest.gradient(mask, parameters=True)
    for h, chain in enumerate(chains):
        if mask[h]:
            assert error(found[h], reference(problem, chain)) < bound
            assert of_numbers(forest, problem, chain, h) < bound
        else:
            with pytest.raises(RuntimeError, match="not asked"):
                forest.site_model_gradient(h)


@pytest.mark.parametrize(
    "size, mixture",
    [
        ((7, 60, 4, 2), (1, 1)),
        pytest.param((6, 30, 4, 3), (2, 1), marks=LATER),
        pytest.param((5, 20, 20, 4), (2, 2), marks=LATER),
    ],
)
def test_numbers_of_models(size, mixture, poisoned):
    case = random_case(*size, invariant=0.1, ascertained=size[0] == 7)
    walk(case, 2, steps(3, 1), seed=9, mixture=mixture, compare=compare_numbers)


def test_numbers_of_models_in_blocks_of_states_and_of_branches(poisoned, monkeypatch):
    from phloem.pruning.gpu import gradient

    walk(random_case(4, 40, 122, 1), 1, steps(2, 1), seed=2, compare=compare_numbers)
    monkeypatch.setattr(gradient, "ADJOINT_BYTES", 2000)  # a few branches at a time
    walk(random_case(6, 30, 4, 2), 2, steps(2, 1), seed=5, compare=compare_numbers)


def test_models_without_a_real_eigensystem(poisoned):
    """The host makes their matrices; chains beside them have others."""
    rng, case = np.random.default_rng(4), random_case(6, 40, 4, 2)
    chains = [Chain(6, 4, 2, rng) for _ in range(2)]
    chains[0].model = with_process(chains[0].model, eigen=None)
    forest = forest_of(case.problem, chains)
    for kind in ("branches", "both", "nothing"):
        chains = [propose(forest, h, chain, kind, rng) for h, chain in enumerate(chains)]
        values = forest.evaluate()
        assert np.allclose(values, [c.reference(case.problem) for c in chains], rtol=1e-11)
        forest.settle([True, True])
    compare_numbers(forest, case.problem, chains, np.ones(2, bool), 1e-10)
    with pytest.raises(DeviceError, match="eigensystem"):
        forest.gradients.leapfrog.run(0, np.zeros(2), 0, 1, np.ones(2, bool))


def test_columns_of_another_class_are_seen(monkeypatch):
    """Negative control: adjoints that take the columns of u for those of a node shift one tip's codes."""
    from phloem.pruning.gpu.forest_parameters import ParameterSums

    rng, case = np.random.default_rng(2), random_case(7, 80, 4, 2)
    chain, whole = Chain(7, 4, 2, rng), ParameterSums._of_branches
    forest = forest_of(case.problem, [chain])

    def shifted(self, *what):
        jobs = whole(self, *what)
        jobs[0, 3, 7] += 1
        return jobs

    monkeypatch.setattr(ParameterSums, "_of_branches", shifted)
    forest.gradient(parameters=True)
    assert not of_numbers(forest, case.problem, chain, 0) < 1e-6
    monkeypatch.undo()
    forest.gradient(parameters=True)
    assert of_numbers(forest, case.problem, chain, 0) < 1e-10


def test_gradients_before_any_value_are_refused():
    from phloem.pruning.gpu.forest import GpuForest

    problem = random_case(4, 10, 4, 1).problem
    with pytest.raises(RuntimeError, match="nothing was evaluated"):
        GpuForest(problem, problem.left[None], problem.right[None]).gradient()
