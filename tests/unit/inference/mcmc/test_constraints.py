"""Splits that all trees have: keys, random trees, and what contradicts."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.inference.mcmc.compiled.propose import obeys
from phloem.inference.mcmc.constraints import has_splits, sides_without_tip_0, split_rules
from phloem.inference.mcmc.settings import Constraints
from phloem.inference.mcmc.start import perturbed, random_tree
from phloem.pruning.cpu.column_classes import tip_keys

NESTED = ((2, 3), (2, 3, 4, 5), (0, 1, 2, 3, 4, 5))  # the last one is {6, 7} of eight tips
HARD = Constraints(NESTED)
LOOSE = Constraints(((6, 7),), (((0, 1), (4, 5)), ((2, 4), (0, 6))), ((2, 3), (0, 1, 2)))


def test_sides_are_without_tip_0_and_trivial_ones_are_left_out():
    assert sides_without_tip_0(NESTED, 8) == [frozenset({2, 3}), frozenset({6, 7}), frozenset({2, 3, 4, 5})]
    assert sides_without_tip_0(((3,), (0, 3), tuple(range(1, 8)), (0,)), 8) == [
        frozenset(set(range(1, 8)) - {3})
    ]
    assert len(split_rules(Constraints(), 8)) == 0


@pytest.mark.parametrize("asked", [HARD, LOOSE])
@pytest.mark.parametrize("seed", range(20))
def test_random_trees_have_the_splits_and_keep_them_when_they_are_perturbed(seed, asked):
    rng, keys = np.random.default_rng(seed), split_rules(asked, 8)
    tree = random_tree(8, rng, asked)
    assert has_splits(keys, tree.left, tree.right, tree.order)
    assert sorted(tree.order) == list(range(15)) and (tree.lengths > 0).sum() == 13
    for x in range(14):
        assert x in (tree.left[tree.parent[x]], tree.right[tree.parent[x]])
    for _ in range(5):
        tree = perturbed(tree, rng, keys)
        assert has_splits(keys, tree.left, tree.right, tree.order)


def test_other_trees_lack_them():
    """The controls: trees drawn without constraints, and interchanges that look at none."""
    rng, keys = np.random.default_rng(1), split_rules(HARD, 8)
    free = [random_tree(8, rng) for _ in range(50)]
    assert not all(has_splits(keys, t.left, t.right, t.order) for t in free)
    moved = [perturbed(random_tree(8, rng, HARD), rng) for _ in range(50)]
    assert not all(has_splits(keys, t.left, t.right, t.order) for t in moved)


def test_splits_that_no_tree_has_together_are_refused():
    with pytest.raises(InputError, match="contradict"):
        split_rules(Constraints(((1, 2), (2, 3))), 6)


def sides_of(tree) -> set[frozenset[int]]:
    """Both sides of every branch."""
    below = [frozenset([x]) if x < 8 else frozenset() for x in range(15)]
    for x in tree.order:
        if x >= 8:
            below[x] = below[tree.left[x]] | below[tree.right[x]]
    return {side for own in below for side in (own, frozenset(range(8)) - own)}


@pytest.mark.parametrize(
    "asked",
    [
        LOOSE,
        Constraints(partial=(((1, 2), (3, 4, 5)),)),
        Constraints(partial=(((0, 2), (3, 4)),)),
        Constraints(negative=((2, 3), (4, 5, 6, 7, 0, 1))),
    ],
)
def test_a_tree_obeys_as_its_branches_do(asked):
    """Free trees, some of which obey: against the sets of tips on either side of every branch, and so does
    the compiled form."""
    rng, rules, found = np.random.default_rng(4), split_rules(asked, 8), []
    for _ in range(600):
        tree = random_tree(8, rng)
        sides = sides_of(tree)
        truth = all(frozenset(x) in sides for x in asked.hard)
        truth &= not any(frozenset(x) in sides for x in asked.negative)
        for one, other in asked.partial:
            truth &= any(set(one) <= side and not set(other) & side for side in sides)
        keys = np.append(tip_keys(8), np.zeros(7, np.uint64))
        assert has_splits(rules, *tree[1:4]) == obeys(rules, 8, *tree[1:4], keys) == truth
        assert np.array_equal(keys[:8], tip_keys(8))
        found.append(truth)
    assert any(found) and not all(found)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (Constraints(negative=((3,),)), "every tree has"),
        (Constraints(partial=(((1, 2), (2, 3)),)), "on both sides"),
        (Constraints(((1, 2),), (), ((1, 2),)), "no tree was found"),
        (Constraints(((1, 2),), (((1, 3), (2, 4)),)), "no tree was found"),
    ],
)
def test_what_no_tree_obeys_is_refused(asked, told):
    with pytest.raises(InputError, match=told):
        random_tree(6, np.random.default_rng(1), asked)
