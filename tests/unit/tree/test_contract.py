"""Branches without a length taken out of a tree."""

from __future__ import annotations

import numpy as np

from phloem.io.trees import newick_text, parse_trees
from phloem.tree.prune import contracted
from phloem.tree.splits import tree_splits

TEXT = "(a:0,b:1,(((c:1,d:2)80:0,e:1)70:1e-9,(f:1,(g:1,h:1)x:0.5)60:0.2)50);"


def test_short_inner_branches_are_taken_out_and_nothing_else():
    (tree,) = parse_trees(TEXT)
    less, n = contracted(tree, 1e-6)
    assert n == 2
    assert (
        newick_text([less]).strip() == "(a:0.0,b:1.0,(c:1.0,d:2.0,e:1.0,(f:1.0,(g:1.0,h:1.0)x:0.5)60:0.2)50);"
    )
    rest = {row.tobytes() for row in tree_splits(less)}
    assert rest < {row.tobytes() for row in tree_splits(tree)} and len(rest) == 3
    less, n = contracted(tree, 0.3)
    assert n == 3 and len(less.children(less.n_nodes - 1)) == 3
    assert contracted(tree, 0.0)[0] is tree


def test_branches_without_lengths_and_annotations_stay():
    (tree,) = parse_trees("((a,b)[&p=1],((c:1,d:1)[&p=2]:0,(e:1,f:1)[&p=3]:1)[&p=4]:2);")
    less, n = contracted(tree, 1.0)
    assert n == 1
    assert sorted(values["p"] for values in less.annotations.values()) == [1, 3, 4]
    assert [less.annotations[x]["p"] for x in np.flatnonzero(less.lengths == 2)] == [4]
