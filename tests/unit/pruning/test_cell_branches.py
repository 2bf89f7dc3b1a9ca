"""A branch as a function of its length, and scores of insertions, against the NumPy reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conformance.cells import part_of, trees_of
from conformance.problems import case_of
from phloem.pruning.cpu.forest import Forest
from phloem.pruning.reference.evaluator import ReferenceEvaluator

BOUND = 1e-9
CASES = [
    "5 tips, 63 patterns, 8 states",
    "5 tips, 1000 patterns, 20 states",
    "5 tips, 63 patterns, 61 states",
    "one column, 4 states",
    "lengths 1e-8, 4 states",
    "lengths 1e-8, 20 states",
    "two lengths zero",
    "no data in a tip and a column",
    "invariable sites, 4 states",
    "invariable sites, 20 states",
    "ascertained, 8 states",
    "mixture of processes and lengths, 4 states",
    "mixture of processes and lengths, 20 states",
    "64 tips, 63 patterns, 8 states",
]


def forest_of(case) -> Forest:
    forest = Forest([part_of(case.problem, case.model)], 1, hangs=False)
    forest.propose_model(0, 0, case.model)
    forest.from_scratch(trees_of(case.problem.left, case.problem.right, case.lengths))
    return forest


def value(problem, lengths, model) -> float:
    return ReferenceEvaluator(problem).log_likelihood(lengths, model)


@pytest.mark.parametrize("name", CASES)
def test_a_branch_by_its_length(name):
    case = case_of(name)
    forest, rng = forest_of(case), np.random.default_rng(1)
    every = np.atleast_2d(case.lengths)
    reference = ReferenceEvaluator(case.problem)
    gradient = np.atleast_2d(reference.gradient(case.lengths, case.model).branch_lengths)
    curvature = np.atleast_2d(reference.second_derivatives(case.lengths, case.model))
    for node in rng.choice(every.shape[1] - 1, 3, replace=False):
        row = int(rng.integers(len(every)))
        curve = forest.branch(0, int(node), row)
        f, slope, bend = curve.at(every[row, node])
        assert f == pytest.approx(value(case.problem, case.lengths, case.model), rel=BOUND)
        assert abs(slope - gradient[row, node]) < 1e-8 * np.abs(gradient).max()
        assert abs(bend - curvature[row, node]) < 1e-8 * np.abs(curvature).max()
        for length in (1e-8, 0.03, 0.7, 20.0):
            other = every.copy()
            other[row, node] = length
            wanted = value(case.problem, other if len(every) > 1 else other[0], case.model)
            assert curve.at(length)[0] == pytest.approx(wanted, rel=BOUND), length


def regrafted(problem, lengths: np.ndarray, subtree: int, at: int, pendant: np.ndarray):
    """Problem and lengths (K, N) of the tree with the subtree in the middle of a branch; every node keeps its
    meaning: the subtree's parent moves along."""
    n_tips, n_nodes = len(problem.tip_codes), lengths.shape[1]
    children = {n_tips + k: [int(a), int(b)] for k, (a, b) in enumerate(zip(problem.left, problem.right))}
    parent = {c: x for x, pair in children.items() for c in pair}
    own, new = parent[subtree], lengths.copy()
    (sibling,) = (c for c in children[own] if c != subtree)
    above = parent[own]
    children[above] = [sibling if c == own else c for c in children[above]]
    parent[sibling] = above
    new[:, sibling] += lengths[:, own]
    above = parent[at]
    children[above] = [own if c == at else c for c in children[above]]
    children[own] = [at, subtree]
    new[:, own] = new[:, at] / 2
    new[:, at] = new[:, at] / 2
    new[:, subtree] = pendant
    order, pending = [], [n_nodes - 1]
    while pending:
        order.append(pending.pop())
        pending += children.get(order[-1], [])
    inner = [x for x in reversed(order) if x >= n_tips]
    number = {x: x for x in range(n_tips)} | {x: n_tips + k for k, x in enumerate(inner)}
    left, right = (np.array([number[children[x][side]] for x in inner], np.int32) for side in (0, 1))
    moved = np.empty_like(new)
    moved[:, [number[x] for x in range(n_nodes)]] = new
    return replace(problem, left=left, right=right), moved if len(moved) > 1 else moved[0]


def differences(case, forest: Forest, subtree: int, pendant: np.ndarray) -> list[float]:
    """Relative, of every branch that the pruned tree has."""
    lengths, found = np.atleast_2d(case.lengths), forest.insertions(0, subtree, pendant)
    inside, n_tips = {subtree}, len(case.problem.tip_codes)
    own = next(n_tips + k for k, p in enumerate(zip(case.problem.left, case.problem.right)) if subtree in p)
    for k in range(n_tips - 2, -1, -1):
        if n_tips + k in inside:
            inside |= {int(case.problem.left[k]), int(case.problem.right[k])}
    result = []
    for x in range(lengths.shape[1]):
        if x in inside or x in (own, lengths.shape[1] - 1):
            assert np.isnan(found[x])
            continue
        wanted = value(*regrafted(case.problem, lengths, subtree, x, pendant), case.model)
        result.append(abs(found[x] / wanted - 1))
    return result


def prunable(case) -> np.ndarray:
    root = np.atleast_2d(case.lengths).shape[1] - 1
    return np.setdiff1d(np.arange(root), [case.problem.left[-1], case.problem.right[-1]])


@pytest.mark.parametrize("name", CASES)
def test_scores_of_insertions(name):
    case, rng = case_of(name), np.random.default_rng(2)
    forest, sets = forest_of(case), len(np.atleast_2d(case.lengths))
    for subtree in rng.choice(prunable(case), 2, replace=False):
        assert max(differences(case, forest, int(subtree), rng.exponential(0.1, sets))) < BOUND
    with pytest.raises(ValueError):
        forest.insertions(0, int(case.problem.left[-1]), 0.1)


def test_a_wrong_message_is_seen():
    """Negative control: one number of the messages, and one of the transition matrices, is a little off."""
    case = case_of("no data in a tip and a column")
    subtree, pendant = int(prunable(case)[0]), np.array([0.1])
    for planted in ("matrices", "eigen_left"):
        forest = forest_of(case)
        assert max(differences(case, forest, subtree, pendant)) < BOUND
        getattr(forest.cells[0][0], planted)[...] *= 1 + 1e-5
        assert max(differences(case, forest, subtree, pendant)) > 10 * BOUND


def test_a_forest_of_two_parts_sums_them():
    """The curve and the scores of a chain are those of all its parts."""
    one = case_of("invariable sites, 4 states")
    two = case_of("invariable sites, 20 states")
    two = replace(two, problem=replace(two.problem, left=one.problem.left, right=one.problem.right))
    forest = Forest([part_of(c.problem, c.model) for c in (one, two)], 1, hangs=False)
    for i, case in enumerate((one, two)):
        forest.propose_model(0, i, case.model)
    forest.from_scratch(trees_of(one.problem.left, one.problem.right, one.lengths))
    alone = [forest_of(replace(case, lengths=one.lengths)) for case in (one, two)]
    subtree = int(prunable(one)[0])
    total = sum(f.insertions(0, subtree, 0.2) for f in alone)
    np.testing.assert_allclose(forest.insertions(0, subtree, 0.2), total, rtol=1e-12)
    separate = np.sum([f.branch(0, 1).at(0.3) for f in alone], 0)
    np.testing.assert_allclose(forest.branch(0, 1).at(0.3), separate, rtol=1e-12)
