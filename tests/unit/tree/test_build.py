"""Any numbering becomes tips first, children before parents, root last."""

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.newick_text import write_newick
from phloem.tree.build import node_levels, tree_from_children, tree_from_edges, tree_from_parents
from phloem.tree.random import uniform_rooted
from phloem.tree.rearrange import topology_key


def test_parents_in_any_numbering():
    tree = tree_from_parents(
        [None, "c", "x", "a", "b"], [-1, 0, 0, 2, 2], [0, 5, 1, 2, 3], taxa=["a", "b", "c"]
    )
    assert tree.parent.tolist() == [3, 3, 4, 4, -1]
    assert tree.lengths.tolist() == [2, 3, 5, 1, 0]
    assert tree.labels == (None, None, None, "x", None)


def test_shuffled_numbers_give_the_same_tree():
    rng = np.random.default_rng(2)
    tree = uniform_rooted(30, rng)
    new = rng.permutation(tree.n_nodes)
    parent, lengths, names = np.empty(59, int), np.empty(59), [None] * 59
    for x in range(59):
        parent[new[x]] = new[tree.parent[x]] if x < 58 else -1
        lengths[new[x]] = tree.lengths[x]
        names[new[x]] = tree.taxa[x] if x < 30 else None
    again = tree_from_parents(names, parent, lengths, taxa=tree.taxa)
    assert np.all(again.parent[:-1] > np.arange(58))
    assert topology_key(again) == topology_key(tree)
    np.testing.assert_allclose(np.sort(again.lengths), np.sort(tree.lengths))


def test_children_lists_and_edges():
    tree = tree_from_children(
        {10: [7, 3], 3: [1, 2]}, {7: "a", 1: "b", 2: "c"}, {7: 1.0, 3: 2.0, 1: 3.0, 2: 4.0}
    )
    assert write_newick(tree) in ("(a:1.0,(b:3.0,c:4.0):2.0);", "((b:3.0,c:4.0):2.0,a:1.0);")
    star = tree_from_edges(["a", "b", "c"], [(3, 0), (1, 3), (3, 2)], [1, 2, 3])
    assert star.parent.tolist() == [3, 3, 3, -1] and star.lengths.tolist() == [1, 2, 3, 0]
    assert not star.rooted


@pytest.mark.parametrize(
    ("names", "parent"),
    [
        (["a", "b", None], [2, 2, 0]),
        (["a", "b", None], [-1, -1, -1]),
        (["a", "a", None], [2, 2, -1]),
        (["a", None, None], [2, 2, -1]),
        (["a", "b", None, None, None], [4, 4, 3, 2, -1]),
    ],
)
def test_what_is_no_tree(names, parent):
    with pytest.raises(InputError):
        tree_from_parents(names, parent)


def test_levels_by_doubling():
    assert node_levels(np.array([1, 2, 3, 4, -1])).tolist() == [4, 3, 2, 1, 0]
