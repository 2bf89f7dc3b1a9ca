"""Keys of trees: what counts as the same tree."""

import numpy as np
import pytest

from phloem.io.newick import parse_newick
from phloem.tree.half_edges import HalfEdges, half_edges, topology_key, tree_key

TAXA = tuple("abcdef")


def edges(text: str) -> HalfEdges:
    return half_edges(parse_newick(text, taxa=TAXA)[0], TAXA)


@pytest.mark.parametrize("length, same", [(0.0, True), (1e-7, True), (1e-3, False)])
def test_ways_to_resolve_a_point_are_one_tree(length, same):
    one = edges(f"(a:1,b:1,((c:1,d:1):{length},(e:1,f:1):1):1);")
    other = edges(f"(a:1,b:1,((c:1,(e:1,f:1):1):{length},d:1):1);")
    assert topology_key(one.back) != topology_key(other.back)
    assert (tree_key(one) == tree_key(other)) is same


def test_tips_without_a_length_and_points_elsewhere_do_not_join_other_trees():
    one = edges("(a:0,b:1,((c:1,d:1):0,(e:1,f:1):1):1);")
    other = edges("(a:0,b:1,((c:1,d:1):1,(e:1,f:1):0):1);")
    assert tree_key(one) != tree_key(other)


def test_a_branch_is_one_if_some_part_of_the_data_has_a_length_there():
    one, other = (
        edges(text)
        for text in ("(a:1,b:1,((c:1,d:1):0,(e:1,f:1):1):1);", "(a:1,b:1,((c:1,(e:1,f:1):1):0,d:1):1);")
    )
    both = [HalfEdges(x.back, np.stack([x.lengths, x.lengths + 0.1], -1)) for x in (one, other)]
    assert tree_key(one) == tree_key(other)
    assert tree_key(both[0]) != tree_key(both[1])
