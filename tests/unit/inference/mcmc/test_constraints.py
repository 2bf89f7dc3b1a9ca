"""Splits that all trees have: keys, random trees, and what contradicts."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.inference.mcmc.constraints import has_splits, sides_without_tip_0, split_keys
from phloem.inference.mcmc.start import perturbed, random_tree

NESTED = ((2, 3), (2, 3, 4, 5), (0, 1, 2, 3, 4, 5))  # the last one is {6, 7} of eight tips


def test_sides_are_without_tip_0_and_trivial_ones_are_left_out():
    assert sides_without_tip_0(NESTED, 8) == [frozenset({2, 3}), frozenset({6, 7}), frozenset({2, 3, 4, 5})]
    assert sides_without_tip_0(((3,), (0, 3), tuple(range(1, 8)), (0,)), 8) == [
        frozenset(set(range(1, 8)) - {3})
    ]
    assert len(split_keys((), 8)) == 0


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_have_the_splits_and_keep_them_when_they_are_perturbed(seed):
    rng, keys = np.random.default_rng(seed), split_keys(NESTED, 8)
    tree = random_tree(8, rng, NESTED)
    assert has_splits(keys, tree.left, tree.right, tree.order)
    assert sorted(tree.order) == list(range(15)) and (tree.lengths > 0).sum() == 13
    for x in range(14):
        assert x in (tree.left[tree.parent[x]], tree.right[tree.parent[x]])
    for _ in range(5):
        tree = perturbed(tree, rng, keys)
        assert has_splits(keys, tree.left, tree.right, tree.order)


def test_other_trees_lack_them():
    """The controls: trees drawn without constraints, and interchanges that look at none."""
    rng, keys = np.random.default_rng(1), split_keys(NESTED, 8)
    free = [random_tree(8, rng) for _ in range(50)]
    assert not all(has_splits(keys, t.left, t.right, t.order) for t in free)
    moved = [perturbed(random_tree(8, rng, NESTED), rng) for _ in range(50)]
    assert not all(has_splits(keys, t.left, t.right, t.order) for t in moved)


def test_splits_that_no_tree_has_together_are_refused():
    with pytest.raises(InputError, match="contradict"):
        split_keys(((1, 2), (2, 3)), 6)
