"""The same texts through DendroPy, Biopython and newick: same splits, lengths and names."""

import io

import numpy as np
import pytest

from phloem.io.newick import parse_newick
from phloem.io.newick_text import write_newick
from phloem.io.trees import nexus_text, parse_trees
from phloem.tree.random import caterpillar, uniform_rooted, uniform_unrooted

RNG = np.random.default_rng(20)
TREES = (
    [uniform_unrooted(n, RNG) for n in (3, 4, 9, 40)]
    + [uniform_rooted(n, RNG) for n in (2, 5, 33)]
    + [caterpillar(50)]
)


def clades(tree):
    """{tip names below a node: length above it}, the root left out."""
    below = [frozenset([name]) for name in tree.taxa] + [frozenset()] * (tree.n_nodes - tree.n_tips)
    for x in range(tree.n_nodes - 1):
        below[tree.parent[x]] |= below[x]
    return {below[x]: tree.lengths[x] for x in range(tree.n_nodes - 1)}


@pytest.mark.parametrize("tree", TREES)
def test_dendropy_reads_the_same(tree):
    dendropy = pytest.importorskip("dendropy")
    for text, schema in ((write_newick(tree), "newick"), (nexus_text([tree, tree]), "nexus")):
        theirs = dendropy.Tree.get(data=text, schema=schema, preserve_underscores=True)
        found = {
            frozenset(leaf.taxon.label for leaf in node.leaf_iter()): node.edge_length
            for node in theirs.preorder_node_iter()
            if node is not theirs.seed_node
        }
        assert found == clades(parse_trees(text)[0]) == clades(tree)


@pytest.mark.parametrize("tree", TREES)
def test_biopython_reads_the_same(tree):
    phylo = pytest.importorskip("Bio.Phylo")
    theirs = phylo.read(io.StringIO(write_newick(tree)), "newick")
    found = {
        frozenset(leaf.name for leaf in node.get_terminals()): node.branch_length
        for node in theirs.find_clades()
        if node is not theirs.root
    }
    assert found == pytest.approx(clades(tree))


@pytest.mark.parametrize("tree", TREES)
def test_newick_package_reads_the_same(tree):
    newick = pytest.importorskip("newick")
    (theirs,) = newick.loads(write_newick(tree))
    found = {
        frozenset(leaf.name for leaf in node.get_leaves()): node.length
        for node in theirs.walk()
        if node.ancestor is not None
    }
    assert found == pytest.approx(clades(tree))


@pytest.mark.parametrize(
    "text",
    [
        "(A:1,(B:2,C:3)0.9:4,D:5);",
        "('a b':1,('c''d':2,e_f:3):1e-3);",
        "[&R] ((A[&rate=0.1]:1,B:2)[&x={1,2}]:3,C:4);",
        "((A:1[c],B:2):3,(C:1.5E+1,D:.5):0);",
    ],
)
def test_dendropy_agrees_on_difficult_text(text):
    dendropy = pytest.importorskip("dendropy")
    theirs = dendropy.Tree.get(data=text, schema="newick", preserve_underscores=True)
    found = {
        frozenset(leaf.taxon.label for leaf in node.leaf_iter()): node.edge_length
        for node in theirs.preorder_node_iter()
        if node is not theirs.seed_node
    }
    (tree,) = parse_newick(text)
    assert found == clades(tree)


def test_a_swapped_length_would_be_seen():
    tree = TREES[3]
    swapped = tree.lengths.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    other = type(tree)(tree.taxa, tree.parent, swapped, rooted=False)
    assert clades(other) != clades(tree)
