"""Splits against sets of names, over more than one word of bits."""

import numpy as np
import pytest

from phloem.io.newick import parse_newick
from phloem.tree.random import caterpillar, uniform_rooted, uniform_unrooted
from phloem.tree.reroot import root_at_branch, unroot
from phloem.tree.splits import robinson_foulds, split_members, split_sizes, tip_bits, tree_splits


def split_sets(tree):
    below = [frozenset([x]) for x in range(tree.n_tips)] + [frozenset()] * (tree.n_nodes - tree.n_tips)
    for x in range(tree.n_nodes - 1):
        below[tree.parent[x]] |= below[x]
    everything = frozenset(range(tree.n_tips))
    found = set()
    for group in below[:-1]:
        side = everything - group if not tree.rooted and 0 in group else group
        if 1 < len(side) < tree.n_tips - (0 if tree.rooted else 1):
            found.add(side)
    return found


@pytest.mark.parametrize("n", [4, 20, 63, 64, 65, 150])
@pytest.mark.parametrize("make", [uniform_rooted, uniform_unrooted])
def test_packed_bits_are_the_sets(n, make):
    tree = make(n, np.random.default_rng(n))
    splits = tree_splits(tree)
    assert splits.dtype == np.uint64 and splits.shape[1] == (n + 63) // 64
    found = {frozenset(np.flatnonzero(row).tolist()) for row in split_members(splits, n)}
    assert found == split_sets(tree)
    assert sorted(split_sizes(splits)) == sorted(map(len, found))
    assert len(splits) == (n - 2 if tree.rooted else n - 3)


def test_robinson_foulds_by_sets():
    rng = np.random.default_rng(8)
    for _ in range(20):
        a, b = uniform_unrooted(10, rng), uniform_unrooted(10, rng)
        assert robinson_foulds(a, b) == len(split_sets(a) ^ split_sets(b))
        assert robinson_foulds(a, a) == 0


def test_rooting_does_not_matter_without_a_root():
    tree = uniform_unrooted(12, np.random.default_rng(9))
    for node in range(0, 21, 5):
        rooted = root_at_branch(tree, node)
        assert robinson_foulds(tree, unroot(rooted)) == 0
    bifurcating = type(tree)(rooted.taxa, rooted.parent, rooted.lengths, rooted=False)
    assert robinson_foulds(tree, bifurcating) == 0


def test_order_of_tips_does_not_matter():
    a, b = parse_newick("((a,b),(c,d),e);")[0], parse_newick("((d,c),(b,a),e);")[0]
    assert robinson_foulds(a, b) == 0


def test_bits():
    bits = tip_bits(65)
    assert bits[3].tolist() == [8, 0] and bits[64].tolist() == [0, 1]


def test_deep_tree():
    assert len(tree_splits(caterpillar(500))) == 498
