"""Trees that chains start from: the root beside tip 0, repaired, perturbed."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.inference.mcmc.samples import renumbered
from phloem.inference.mcmc.start import (
    START_LENGTH,
    StartTree,
    n_interchanges,
    perturbed,
    random_tree,
    rooted_beside_tip,
)
from phloem.io.newick import parse_newick
from phloem.tree.random import coalescent, uniform_unrooted, yule
from phloem.tree.reroot import unroot
from phloem.tree.sample import TreeSample, sample_of_trees
from phloem.tree.splits import is_trivial, sample_splits, unique_splits
from phloem.tree.tree import Tree

BOUNDS = (1e-8, 100.0)


def as_splits(tree: StartTree, n: int) -> set[bytes]:
    parent, lengths = renumbered(tree.parent, tree.lengths, tree.order)
    sample = TreeSample(tuple(f"t{i + 1}" for i in range(n)), parent[None], lengths[None], False)
    splits = sample_splits(sample)[0]
    return set(map(bytes, unique_splits(splits[~is_trivial(splits, n, False)])[0]))


def splits_of(tree: Tree) -> set[bytes]:
    tree = unroot(tree) if tree.rooted else tree
    splits = sample_splits(sample_of_trees([tree]))[0]
    return set(map(bytes, unique_splits(splits[~is_trivial(splits, tree.n_tips, False)])[0]))


def check_consistent(tree: StartTree, n: int) -> None:
    inner, root = np.arange(n, 2 * n - 1), 2 * n - 2
    assert (tree.parent[tree.left[inner]] == inner).all() and (tree.parent[tree.right[inner]] == inner).all()
    assert tree.right[root] == 0 and tree.parent[root] == -1 and (tree.left[:n] == -1).all()
    assert tree.lengths[root] == tree.lengths[tree.left[root]] == 0
    place = np.empty(2 * n - 1, int)
    place[tree.order] = np.arange(2 * n - 1)
    assert (place[:root] < place[tree.parent[:root]]).all()


@pytest.mark.parametrize("make", [uniform_unrooted, coalescent, yule])
@pytest.mark.parametrize("n", [3, 4, 5, 30])
def test_a_tree_keeps_its_splits_and_its_length(make, n):
    tree = make(n, np.random.default_rng(n))
    hung = rooted_beside_tip(tree, BOUNDS)
    check_consistent(hung, n)
    assert as_splits(hung, n) == splits_of(tree)
    assert hung.lengths.sum() == pytest.approx(tree.lengths.sum())


def test_random_trees_have_the_same_layout():
    check_consistent(random_tree(9, np.random.default_rng(1)), 9)


def test_multifurcations_are_resolved_and_lengths_repaired():
    tree = parse_newick("(t1:0.1,t2:-0.3,t3,t4:500,(t5:0,t6:0.2,t7:0.1):0.3);", allow_negative=True)[0]
    hung = rooted_beside_tip(tree, BOUNDS)
    check_consistent(hung, 7)
    assert splits_of(tree) <= as_splits(hung, 7)
    assert hung.lengths[[1, 2, 3, 4]].tolist() == [1e-8, START_LENGTH, 100.0, 1e-8]
    assert (np.delete(hung.lengths, [12, hung.left[12]]) >= 1e-8).all()


def test_perturbed_trees_are_near_and_differ():
    tree = rooted_beside_tip(uniform_unrooted(40, np.random.default_rng(1)), BOUNDS)
    found = [perturbed(tree, np.random.default_rng(k)) for k in range(20)]
    for one in found:
        check_consistent(one, 40)
        distance = len(as_splits(one, 40) ^ as_splits(tree, 40))
        assert 0 < distance <= 2 * n_interchanges(40) == 16
        assert np.array_equal(one.lengths, tree.lengths)
    assert len({one.parent.tobytes() for one in found}) == 20
    far = random_tree(40, np.random.default_rng(1))
    assert len(as_splits(far, 40) ^ as_splits(tree, 40)) > 2 * n_interchanges(40)


def test_all_neighbours_of_four_tips_are_reached():
    tree = rooted_beside_tip(uniform_unrooted(4, np.random.default_rng(1)), BOUNDS)
    reached = {frozenset(as_splits(perturbed(tree, np.random.default_rng(k)), 4)) for k in range(40)}
    assert len(reached) == 2 and frozenset(as_splits(tree, 4)) not in reached


def test_three_tips_have_nothing_to_interchange():
    tree = rooted_beside_tip(uniform_unrooted(3, np.random.default_rng(1)), BOUNDS)
    assert np.array_equal(perturbed(tree, np.random.default_rng(1)).parent, tree.parent)
