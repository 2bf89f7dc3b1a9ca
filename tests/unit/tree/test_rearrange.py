"""Neighbourhood sizes of Allen and Steel 2001, and nothing lost on the way."""

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.tree.random import uniform_rooted, uniform_unrooted
from phloem.tree.rearrange import nni_neighbours, spr_neighbours, tbr_neighbours, topology_key
from phloem.tree.splits import robinson_foulds


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_sizes_and_inclusion(n):
    tree = uniform_unrooted(n, np.random.default_rng(n))
    nni, spr, tbr = (
        {topology_key(new) for new in neighbours(tree)}
        for neighbours in (nni_neighbours, spr_neighbours, tbr_neighbours)
    )
    assert len(nni) == 2 * (n - 3)
    assert len(spr) == 2 * (n - 3) * (2 * n - 7)
    assert nni <= spr <= tbr
    assert topology_key(tree) not in tbr
    assert (spr == tbr) == (n < 6)


@pytest.mark.parametrize("neighbours", [nni_neighbours, spr_neighbours, tbr_neighbours])
def test_tree_length_is_kept(neighbours):
    tree = uniform_unrooted(7, np.random.default_rng(3))
    for new in neighbours(tree):
        assert new.lengths.sum() == pytest.approx(tree.lengths.sum())
        assert new.n_nodes == tree.n_nodes and new.taxa == tree.taxa


def test_neighbourhood_is_symmetric():
    tree = uniform_unrooted(6, np.random.default_rng(4))
    for neighbours in (nni_neighbours, spr_neighbours, tbr_neighbours):
        for new in neighbours(tree):
            assert topology_key(tree) in {topology_key(back) for back in neighbours(new)}


def test_nni_changes_one_split():
    tree = uniform_unrooted(8, np.random.default_rng(5))
    assert {robinson_foulds(tree, new) for new in nni_neighbours(tree)} == {2}


def test_nni_reaches_all_topologies():
    seen, frontier = set(), [uniform_unrooted(6, np.random.default_rng(6))]
    while frontier:
        tree = frontier.pop()
        if topology_key(tree) not in seen:
            seen.add(topology_key(tree))
            frontier += nni_neighbours(tree)
    assert len(seen) == 105


def test_other_trees_are_refused():
    with pytest.raises(InputError):
        nni_neighbours(uniform_rooted(5, np.random.default_rng(1)))
    with pytest.raises(InputError):
        spr_neighbours(parse_newick("(a:1,b:1,c:1,d:1);")[0])
