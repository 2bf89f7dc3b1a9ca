"""The maximum clade credibility tree against a plain count over sets, and its heights."""

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.summary.splits import split_table
from phloem.summary.trees import log_clade_credibility, maximum_clade_credibility, sample_heights
from phloem.tree.random import uniform_unrooted, yule
from phloem.tree.rearrange import topology_key
from phloem.tree.sample import sample_of_trees
from phloem.tree.tree import node_heights


def clade_sets(tree):
    below = [frozenset([x]) for x in range(tree.n_tips)] + [frozenset()] * (tree.n_nodes - tree.n_tips)
    for x in range(tree.n_nodes - 1):
        below[tree.parent[x]] |= below[x]
    return below


def test_credibility_is_the_product_of_frequencies():
    rng = np.random.default_rng(5)
    trees = [yule(5, rng) for _ in range(40)]
    counted = [frozenset(clade_sets(tree)) for tree in trees]
    share = {clade: np.mean([clade in own for own in counted]) for own in counted for clade in own}
    expected = [sum(np.log(share[clade]) for clade in own) for own in counted]
    sample = sample_of_trees(trees)
    np.testing.assert_allclose(log_clade_credibility(split_table(sample)), expected)
    best = trees[int(np.argmax(expected))]
    assert topology_key(maximum_clade_credibility(sample)) == topology_key(best)


def test_heights_of_samples():
    rng = np.random.default_rng(6)
    trees = [yule(7, rng) for _ in range(5)]
    heights = sample_heights(sample_of_trees(trees))
    for row, tree in zip(heights, trees):
        np.testing.assert_allclose(row, node_heights(tree), atol=1e-12)


@pytest.mark.parametrize("choice", ["mean", "median"])
def test_heights_condition_on_the_clade(choice):
    text = (
        "[&R]((a:1,b:1):3,(c:2,d:2):2);" * 2 + "[&R]((a:2,b:2):6,(c:3,d:3):5);[&R](((a:6,c:6):1,b:7):1,d:8);"
    )
    tree = maximum_clade_credibility(sample_of_trees(parse_newick(text)), choice)
    middle = np.mean if choice == "mean" else np.median
    heights = node_heights(tree)
    clades = clade_sets(tree)
    by_clade = {clade: heights[x] for x, clade in enumerate(clades)}
    assert by_clade[frozenset({0, 1})] == pytest.approx(middle([1, 1, 2]))
    assert by_clade[frozenset({2, 3})] == pytest.approx(middle([2, 2, 3]))
    assert by_clade[frozenset({0, 1, 2, 3})] == pytest.approx(middle([4, 4, 8, 8]))
    node = clades.index(frozenset({0, 1}))
    assert tree.annotations[node]["prob"] == 0.75
    assert tree.annotations[node]["height_95%_HPD"] == (1, 2)


def test_common_ancestor_heights_use_every_tree():
    text = "[&R]((a:1,b:1):3,(c:2,d:2):2);" * 3 + "[&R](((a:6,c:6):1,b:7):1,d:8);"
    tree = maximum_clade_credibility(sample_of_trees(parse_newick(text)), "common-ancestor")
    heights = dict(zip(clade_sets(tree), node_heights(tree)))
    assert heights[frozenset({0, 1})] == pytest.approx((1 * 3 + 7) / 4)
    assert heights[frozenset({2, 3})] == pytest.approx((2 * 3 + 8) / 4)


def test_kept_heights_and_no_negative_branches():
    rng = np.random.default_rng(9)
    trees = [yule(12, rng) for _ in range(60)]
    sample = sample_of_trees(trees)
    kept = maximum_clade_credibility(sample, "keep")
    assert any(np.allclose(np.sort(kept.lengths), np.sort(tree.lengths)) for tree in trees)
    for choice in ("mean", "median", "common-ancestor"):
        assert np.all(maximum_clade_credibility(sample, choice).lengths >= 0)


def test_unrooted_trees_get_mean_lengths():
    text = "((a:1,b:2):3,c:4,d:5);((a:3,b:2):5,c:4,d:5);((a:5,c:2):5,b:4,d:5);"
    tree = maximum_clade_credibility(sample_of_trees(parse_newick(text)))
    assert tree.lengths.tolist() == [3, pytest.approx(8 / 3), pytest.approx(10 / 3), 5, 4, 0]
    with pytest.raises(InputError, match="common ancestors"):
        maximum_clade_credibility(
            sample_of_trees([uniform_unrooted(5, np.random.default_rng(1))]), "common-ancestor"
        )


def test_trees_without_lengths_have_no_numbers_of_them():
    for root in ("", "[&R]"):
        tree = maximum_clade_credibility(sample_of_trees(parse_newick(f"{root}((a,b),(c,d));" * 3)))
        assert {key for of in tree.annotations.values() for key in of} == {"prob"}
