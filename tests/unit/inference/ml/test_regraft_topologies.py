"""Numbers of the topologies that regrafts lead to, beside the regrafts done."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.inference.ml import regraft_topologies
from phloem.inference.ml.moves import Regraft, regraft
from phloem.inference.ml.regraft_topologies import regraft_numbers, topology_number
from phloem.pruning.cpu.directed_regrafts import BEHIND, OUT, PRUNED, list_steps
from phloem.tree.half_edges import HalfEdges, half_edges, nexts, topology_key
from phloem.tree.random import uniform_unrooted


def all_steps(edges: HalfEdges, radius: int) -> np.ndarray:
    subtrees, stack = np.arange(edges.n_tips, len(edges.back)), np.zeros((2 * radius + 4, 4), np.int64)
    steps = np.zeros((0, 7), np.int64)
    count = list_steps(subtrees, edges.back, edges.n_tips, radius, steps, stack)
    steps = np.zeros((count, 7), np.int64)
    list_steps(subtrees, edges.back, edges.n_tips, radius, steps, stack)
    return steps


def done(edges: HalfEdges, steps: np.ndarray) -> list[HalfEdges]:
    result = []
    for step in steps:
        other = edges.copy()
        regraft(other, Regraft(int(step[PRUNED]), int(step[OUT]), (0.1, 0.1, 0.1), 0.0))
        result.append(other)
    return result


@pytest.mark.parametrize("n_tips", [4, 5, 9, 40])
def test_regrafts_have_the_numbers_of_their_topologies(n_tips, monkeypatch):
    tree = uniform_unrooted(n_tips, np.random.default_rng(n_tips))
    edges = half_edges(tree, tree.taxa)
    steps = all_steps(edges, 6)
    trees, found = done(edges, steps), regraft_numbers(edges.back, steps)
    wanted = np.array([topology_number(other.back) for other in trees], np.uint64)
    np.testing.assert_array_equal(found, wanted)
    keys = [topology_key(other.back) for other in trees]
    assert len(set(zip(keys, found.tolist()))) == len(set(keys)) == len(set(found.tolist()))
    # planted: a walk sets out from the other of the two branches
    turned = steps.copy()
    a, b = nexts(steps[:, PRUNED], n_tips)
    turned[:, BEHIND] = np.where(steps[:, BEHIND] == a, b, a)
    assert (regraft_numbers(edges.back, turned) != wanted).any()
    right = regraft_topologies._either_side  # planted: a number of one side of a split, not of both
    monkeypatch.setattr(regraft_topologies, "_either_side", lambda side, _: right(side, 0 * side))
    assert (regraft_numbers(edges.back, steps) != wanted).any()


def test_the_number_is_of_the_topology_alone():
    tree = uniform_unrooted(12, np.random.default_rng(3))
    edges = half_edges(tree, tree.taxa)
    move = Regraft(*all_steps(edges, 4)[-1][[PRUNED, OUT]].tolist(), (0.1, 0.1, 0.1), 0.0)
    other = edges.copy()
    regraft(other, move)
    assert topology_number(other.back) != topology_number(edges.back)
    inner = edges.copy()  # two inner nodes' half-edges named otherwise
    rename = np.arange(len(edges.back))
    rename[[12, 13, 14, 15, 16, 17]] = [15, 16, 17, 13, 14, 12]
    inner.back[rename] = rename[edges.back]
    assert (inner.back != edges.back).any() and topology_number(inner.back) == topology_number(edges.back)
