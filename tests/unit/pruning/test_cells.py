"""Cells of trees that hang from tip 0, as in the sampler: gradients of accepted states and of proposals."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_features

from conformance.cells import part_of, trees_of
from gpu.random_problems import random_case
from oracle.small_problems import named_arrays, random_mixture
from phloem.inference.mcmc.compiled.propose import mark_moved
from phloem.pruning.cpu.cell import settle_cell
from phloem.pruning.cpu.cell_loops import PROPOSE, propose_cell
from phloem.pruning.cpu.cell_records import ForestTrees, ProposedTree
from phloem.pruning.cpu.chain_state import tip_keys
from phloem.pruning.cpu.forest import Forest
from phloem.pruning.reference.evaluator import ReferenceEvaluator

BOUND = 1e-8  # of the largest entry


def hanging(n_tips: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """left, right (T-1,) of a random tree whose root has tip 0 and the node N-2 as its children."""
    free, children = list(range(1, n_tips)), []
    while len(free) > 1:
        a, b = (free.pop(rng.integers(len(free))) for _ in range(2))
        children.append((a, b))
        free.append(n_tips + len(children) - 1)
    children.append((0, free[0]) if rng.random() < 0.5 else (free[0], 0))
    left, right = np.array(children, np.int64).T
    return left, right


def hanging_case(n_tips: int, n_patterns: int, n_states: int, seed: int = 1, sets: int = 1, **options):
    """Three processes over several sets of branch lengths, or one; some lengths are 1e-8."""
    case, rng = (
        random_case(n_tips, n_patterns, n_states, 4, seed=seed, **options),
        np.random.default_rng(seed),
    )
    left, right = hanging(n_tips, rng)
    lengths = rng.exponential(0.2, (sets, 2 * n_tips - 1))
    lengths[:, [1, n_tips]] = 1e-8
    lengths[:, -2:] = 0.0
    model, n = case.model, case.problem.n_categories
    if sets > 1:
        model = random_mixture(rng, n_states, n_lengths=sets, invariant=0.1)
        n = model.n_categories
    problem = replace(case.problem, left=left.astype(np.int32), right=right.astype(np.int32), n_categories=n)
    return replace(case, problem=problem, model=model, lengths=lengths if sets > 1 else lengths[0])


class Chain:
    """One chain of one part, proposed and settled as a sampler's loop does it."""

    def __init__(self, case) -> None:
        self.case, self.keys = case, None
        self.forest = Forest([part_of(case.problem, case.model)], 1)
        self.forest.set_model(0, 0, 1, case.model)
        self.forest.provide(PROPOSE)
        self.scratch = self.forest.scratch()
        self.trees = trees_of(case.problem.left, case.problem.right, case.lengths)
        self.value = self.propose(self.trees, everything=True, model_changed=True)
        self.settle()

    def propose(self, trees: ForestTrees, everything: bool = False, model_changed: bool = False) -> float:
        n_nodes = trees.left.shape[1]
        n_tips, moved, keys = (n_nodes + 1) // 2, np.zeros(n_nodes, np.uint8), np.zeros(n_nodes, np.int64)
        keys[:n_tips] = tip_keys(n_tips)
        old, self.proposed = self.trees, trees
        with np.errstate(over="ignore"):
            known = keys.copy() if self.keys is None else self.keys
            children = old.left[0], old.right[0]
            mark_moved(n_tips, children, trees.left[0], trees.right[0], trees.order[0], known, keys, moved)
        self.new_keys = keys
        tree = ProposedTree(
            trees.left[0], trees.right[0], trees.parent[0], trees.order[0], 1, moved, trees.lengths[0],
            old.lengths[0],
        )  # fmt: skip
        own, at = self.forest.numbers[0, 0], self.forest.addresses[0, 0]
        return propose_cell(own, at, tree, model_changed, everything, self.scratch)

    def settle(self) -> None:
        settle_cell(self.forest.numbers[0, 0], self.forest.addresses[0, 0])
        self.trees, self.keys = self.proposed, self.new_keys

    def gradient(self, parameters: bool = False):
        return self.forest.gradient(parameters=parameters, trees=self.trees)


def reference(case, trees: ForestTrees):
    n_tips = len(case.problem.tip_codes)
    number = np.empty(2 * n_tips - 1, np.int64)  # the reference wants children below parents
    number[:n_tips] = np.arange(n_tips)
    inner = [x for x in trees.order[0] if x >= n_tips]
    number[inner] = np.arange(n_tips, 2 * n_tips - 1)
    left, right = (number[side[0][inner]].astype(np.int32) for side in (trees.left, trees.right))
    lengths = np.empty_like(trees.lengths[0])
    lengths[:, number] = trees.lengths[0]
    found = ReferenceEvaluator(replace(case.problem, left=left, right=right)).gradient(
        lengths if len(lengths) > 1 else lengths[0], case.model, True
    )
    return found, np.atleast_2d(found.branch_lengths)[:, number]


def difference(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def interchanged(trees: ForestTrees, seed: int) -> ForestTrees:
    """After a nearest-neighbour interchange below the root's child, with one other length."""
    rng, left, right, parent = np.random.default_rng(seed), *(a.copy() for a in trees[:3])
    n_tips = (left.shape[1] + 1) // 2
    inner = [x for x in range(n_tips, left.shape[1]) if parent[0, x] >= 0 and parent[0, parent[0, x]] >= 0]
    x = rng.choice(inner)
    above, below = parent[0, x], left[0, x]
    beside = right if left[0, above] == x else left
    other = beside[0, above]
    beside[0, above], left[0, x], parent[0, below], parent[0, other] = below, other, above, x
    order, pending = [], [left.shape[1] - 1]
    while pending:
        order.append(pending.pop())
        pending += [c for c in (left[0, order[-1]], right[0, order[-1]]) if c >= 0]
    lengths = trees.lengths.copy()
    lengths[..., x] += 0.05
    return ForestTrees(left, right, parent, np.array(order[::-1])[None], lengths)


CASES = {
    "2 states": lambda: hanging_case(6, 40, 2),  # with four lanes as long a row as four states'
    "3 states": lambda: hanging_case(7, 40, 3),
    "4 states": lambda: hanging_case(9, 60, 4),
    "4 states, guarded": lambda: hanging_case(60, 30, 4, mean_length=1.0),
    "4 states, invariable sites": lambda: hanging_case(5, 60, 4, invariant=0.2),
    "4 states, sets of lengths": lambda: hanging_case(7, 40, 4, sets=2),
    "3 tips": lambda: hanging_case(3, 20, 4),
    "8 states, ascertained": lambda: hanging_case(6, 41, 8, ascertained=True),
    "20 states": lambda: hanging_case(7, 60, 20, invariant=0.1),
    "20 states, sets of lengths": lambda: hanging_case(7, 40, 20, sets=3),
    "61 states, fewer patterns than codes": lambda: hanging_case(6, 5, 61),
}


@pytest.mark.skipif(
    platform.machine() != "x86_64" or not get_host_cpu_features().get("avx512f"),
    reason="of processors whose vectors are longer: others have these anyway",
)
@pytest.mark.parametrize("states", [(4,), pytest.param((2, 3), marks=pytest.mark.slow)])  # another kernel
def test_vectors_of_four_numbers(states, tmp_path):
    """Chains on a processor with AVX2 alone, which this one is not. All is compiled anew for it."""
    features = "+avx2,+fma,+bmi,+bmi2,+popcnt,+sse4.2"
    narrow = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": str(tmp_path)}
    chosen = [f"{__file__}::test_gradient_of_a_chain[{n} states]" for n in states]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *chosen]
    done = subprocess.run(command, env=os.environ | narrow, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and f"{len(states)} passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", CASES)
def test_gradient_of_a_chain(name):
    case = CASES[name]()
    chain = Chain(case)
    wanted, branches = reference(case, chain.trees)
    assert chain.value == pytest.approx(wanted.log_likelihood, rel=1e-9)
    for parameters in (False, True):
        values, lengths = chain.gradient(parameters)
        assert values[0, 0] == pytest.approx(wanted.log_likelihood, rel=1e-9)
        assert difference(lengths[0], branches) < BOUND
    expected = named_arrays(wanted.site_model)
    for key, array in named_arrays(chain.forest.site_model_gradient(0, 0)).items():
        assert np.abs(array - expected[key]).max() < BOUND * max(1.0, np.abs(expected[key]).max()), key


@pytest.mark.parametrize("name", ["4 states", "20 states"])
def test_gradients_follow_proposals(name):
    """Interchanges taken over and dropped: orders of columns are those of the topology of the moment."""
    case = CASES[name]()
    chain = Chain(case)
    chain.gradient()
    for seed in range(8):
        before = chain.gradient()[1]
        chain.propose(interchanged(chain.trees, seed))
        if seed % 2:
            assert np.array_equal(chain.gradient()[1], before)
        else:
            chain.settle()
            wanted, branches = reference(case, chain.trees)
            values, lengths = chain.gradient()
            assert values[0, 0] == pytest.approx(wanted.log_likelihood, rel=1e-9)
            assert difference(lengths[0], branches) < BOUND


def test_stale_orders_are_seen():
    """Negative control: orders that belong to other columns."""
    case = CASES["4 states"]()
    chain = Chain(case)
    chain.gradient()
    down = chain.forest.down[0][0]
    chain.propose(interchanged(chain.trees, 0))
    chain.settle()
    branches = reference(case, chain.trees)[1]
    assert difference(chain.gradient()[1][0], branches) < BOUND
    row, n_patterns = chain.forest.cells[0][0].column_start[chain.trees.left.shape[1] - 1], 60
    for order in (down.left_order, down.right_order):
        order[row : row + n_patterns] = np.roll(order[row : row + n_patterns], 1)
    assert difference(chain.gradient()[1][0], branches) > 1e3 * BOUND


@pytest.mark.parametrize("name", ["4 states", "20 states, sets of lengths"])
def test_branches_and_insertions_where_trees_hang(name):
    """As in the same tree without that form, which the reference is held against (test_cell_branches.py)."""
    case = CASES[name]()
    chain, plain = Chain(case), Forest([part_of(case.problem, case.model)], 1, hangs=False)
    plain.propose_model(0, 0, case.model)
    plain.from_scratch(chain.trees)
    root = chain.trees.left.shape[1] - 1
    for node in (0, 1, len(case.problem.tip_codes)):
        found, wanted = chain.forest.branch(0, node, trees=chain.trees), plain.branch(0, node)
        np.testing.assert_allclose(found.at(0.3), wanted.at(0.3), rtol=1e-9)
    for subtree in (1, 2, len(case.problem.tip_codes)):
        found = chain.forest.insertions(0, subtree, 0.2, trees=chain.trees)
        np.testing.assert_allclose(found, plain.insertions(0, subtree, 0.2), rtol=1e-9)
        assert np.isfinite(found).sum() > 3 and np.isnan(found[root])


def several_parts(n_chains: int, threads: int) -> tuple[Forest, ForestTrees, list]:
    """Four states, twenty, and four again with lengths of its own, under chains of different lengths."""
    cases = [hanging_case(8, p, s, seed=2) for p, s in ((40, 4), (30, 20), (90, 4))]
    parts = [part_of(c.problem, c.model, first) for c, first in zip(cases, (0, 0, 1))]
    forest = Forest(parts, n_chains, hangs=False, threads=threads)
    one = trees_of(cases[0].problem.left, cases[0].problem.right, np.stack([cases[0].lengths] * 2))
    trees = ForestTrees(*(np.repeat(array, n_chains, 0) for array in one))
    trees.lengths[:] *= np.arange(1, 2 * n_chains + 1).reshape(n_chains, 2, 1) / 2
    for h in range(n_chains):
        for i, case in enumerate(cases):
            forest.propose_model(h, i, case.model)
    return forest, trees, cases


def test_parts_and_chains_sum_and_threads_change_nothing():
    forest, trees, cases = several_parts(3, 1)
    values = forest.from_scratch(trees)[0]
    gradients = forest.gradient(parameters=True)[1]
    for h in range(3):
        wanted = np.zeros_like(gradients[h])
        for i, (case, row) in enumerate(zip(cases, (0, 0, 1))):
            problem = replace(case.problem, left=cases[0].problem.left, right=cases[0].problem.right)
            found = ReferenceEvaluator(problem).gradient(trees.lengths[h, row], case.model)
            assert values[h, i] == pytest.approx(found.log_likelihood, rel=1e-9)
            wanted[row] += found.branch_lengths
        assert difference(gradients[h], wanted) < BOUND
    other, _, _ = several_parts(3, 3)
    assert np.array_equal(other.from_scratch(trees)[0], values)
    assert np.array_equal(other.gradient(parameters=True)[1], gradients)


def test_a_mask_leaves_chains_alone():
    forest, trees, _ = several_parts(3, 1)
    with pytest.raises(RuntimeError):
        forest.gradient()
    values = forest.from_scratch(trees)[0]
    gradients = forest.gradient()[1]
    mask = np.array([False, True, False])
    changed = trees._replace(lengths=trees.lengths * 1.5)
    proposed = forest.evaluate(changed, mask)
    assert np.array_equal(proposed[~mask], values[~mask]) and (proposed[1] != values[1]).all()
    assert not forest.gradient(mask)[1][~mask].any()
    forest.settle(mask)
    after = forest.gradient()[1]
    assert np.array_equal(after[~mask], gradients[~mask])
    fresh, _, _ = several_parts(3, 1)
    fresh.from_scratch(changed)
    assert np.array_equal(after[1], fresh.gradient()[1][1])
    forest.evaluate(trees)
    forest.settle(np.zeros(3, bool))
    assert np.array_equal(forest.gradient()[1], after)
