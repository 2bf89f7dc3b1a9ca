"""Binary trees for the kernels; virtual branches are marked and map back to nothing."""

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.tree.layout import binary_children, resolve, tree_layout
from phloem.tree.random import uniform_unrooted


def test_basal_trifurcation_costs_one_virtual_branch():
    tree = uniform_unrooted(12, np.random.default_rng(1))
    layout = tree_layout(tree, tree.taxa)
    left, right = layout.children
    assert left.dtype == right.dtype == np.int32 and left.shape == right.shape == (11,)
    assert np.flatnonzero(layout.origin < 0).tolist() == [21]
    assert layout.binary.lengths[21] == 0
    assert np.all(left < np.arange(12, 23)) and np.all(right < np.arange(12, 23))
    assert sorted([*left, *right]) == list(range(22))
    np.testing.assert_array_equal(layout.to_branches(layout.binary.lengths), tree.lengths[:-1])
    np.testing.assert_array_equal(layout.to_nodes(tree.lengths[:-1]), layout.binary.lengths)


def test_binary_trees_pass_unchanged():
    (tree,) = parse_newick("((a:1,b:2):3,c:4);")
    binary, origin = resolve(tree)
    assert (origin >= 0).all()
    assert binary.parent.tolist() == tree.parent.tolist()


def test_multifurcations_on_request_only():
    (tree,) = parse_newick("((a:1,b:1,c:1,d:1)0.9:2,(e:1,f:1,g:1):2,h:1,i:1);")
    with pytest.raises(InputError, match="4 children") as caught:
        resolve(tree)
    assert "--multifurcations" in caught.value.hint
    layout = tree_layout(tree, tree.taxa, multifurcations=True)
    binary, virtual = layout.binary, layout.origin < 0
    assert binary.is_binary and binary.n_nodes == 17
    assert virtual.sum() == 5
    assert np.all(binary.parent[:-1] > np.arange(16))
    assert np.all(binary.lengths[virtual] == 0)
    np.testing.assert_array_equal(layout.to_branches(binary.lengths), tree.lengths[:-1])
    assert binary.labels[int(np.flatnonzero(layout.origin == 9)[0])] == "0.9"


def test_a_rooted_trifurcation_is_a_multifurcation():
    (tree,) = parse_newick("[&R](a:1,b:1,c:1);")
    with pytest.raises(InputError):
        resolve(tree)


def test_children_of_a_tree_that_is_not_binary():
    with pytest.raises(InputError, match="not binary"):
        binary_children(parse_newick("(a,b,c);")[0])
