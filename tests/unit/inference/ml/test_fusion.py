"""Two trees that err in different parts become one that errs in neither; subtrees near a change are found."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.inference.ml.fusion import branches, compatible, exchanges, fused, tree_of_branches
from phloem.inference.ml.search import fit_lengths, near
from phloem.inference.ml.searched import OneAlignment
from phloem.inference.ml.tree_search import SearchSettings, _Search
from phloem.io.trees import parse_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.grammar import parse_model
from phloem.tree.half_edges import half_edges, node_of, topology_key
from phloem.tree.random import uniform_unrooted

TAXA = tuple("abcdefghij")
RIGHT = "((a:.1,b:.1):.1,(c:.1,d:.1):.1,(((g:.1,h:.1):.1,(i:.1,j:.1):.1):.1,(e:.1,f:.1):.1):.2);"
LEFT_WRONG = "((a:.1,c:.1):.1,(b:.1,d:.1):.1,(((g:.1,h:.1):.1,(i:.1,j:.1):.1):.1,(e:.1,f:.1):.1):.2);"
RIGHT_WRONG = "((a:.1,b:.1):.1,(c:.1,d:.1):.1,(((g:.1,i:.1):.1,(h:.1,j:.1):.1):.1,(e:.1,f:.1):.1):.2);"


def edges(text):
    return half_edges(parse_trees(text)[0], TAXA)


@pytest.mark.parametrize("n", [3, 4, 9, 70])
def test_a_tree_is_made_of_its_branches(n):
    tree = uniform_unrooted(n, np.random.default_rng(n))
    one = half_edges(tree, tree.taxa)
    found = branches(one)
    again = tree_of_branches(found)
    assert topology_key(again.back) == topology_key(one.back) and len(found) == 2 * n - 3
    assert branches(again) == pytest.approx(found)
    assert all(compatible(x, y) for x in found for y in found)


def test_fewer_branches_are_resolved_by_none_of_any_length():
    found = branches(edges(RIGHT))
    inner = next(x for x in found if x.bit_count() == 4)
    again = branches(tree_of_branches({x: length for x, length in found.items() if x != inner}))
    assert set(found) - set(again) <= {inner} and len(again) == len(found)
    assert sum(length == 0 for length in again.values()) == 1


def test_differences_are_parted_where_they_do_not_conflict():
    one, other = branches(edges(LEFT_WRONG)), branches(edges(RIGHT_WRONG))
    parts = exchanges(one, other, 0.01)
    assert sorted((len(p.taken), len(p.dropped)) for p in parts) == [(2, 2), (2, 2)]
    for part in parts:
        assert all(any(not compatible(x, y) for y in part.dropped) for x in part.taken)
    assert exchanges(one, one, 0.01) == []
    tiny = {x: (length if x in one else 1e-6) for x, length in other.items()}
    assert exchanges(one, tiny, 0.01) == []  # branches of no length say nothing


@pytest.fixture(scope="module")
def search():
    tree = parse_trees(RIGHT)[0]
    data = simulate_alignment(tree, parse_model("HKY{3}+FQ", datatype="dna"), 500, seed=1)
    assert data.taxa == tree.taxa
    rows = [data.taxa.index(name) for name in TAXA]
    data = data.__class__(TAXA, data.alphabet, np.ascontiguousarray(data.codes[rows]), data.state_sets)
    one = OneAlignment(data, model_for_alignment("HKY{3}+FQ", data))
    found = _Search(one, SearchSettings(threads=1), lambda *_: None)
    one.put(found._messages, {})
    return found


def placed(search, text):
    return fit_lengths(search._messages, edges(text), 0.01)


def test_what_each_has_right_is_in_the_fused_tree(search):
    right, one, other = (placed(search, text) for text in (RIGHT, LEFT_WRONG, RIGHT_WRONG))
    both = fused(search._messages, one, other, 500)
    assert both is not None and topology_key(both.edges.back) == topology_key(right.edges.back)
    assert both.log_likelihood == pytest.approx(right.log_likelihood, abs=0.1)
    assert both.log_likelihood > max(one.log_likelihood, other.log_likelihood) + 1


def test_nothing_is_gained_from_a_tree_that_is_worse_everywhere(search):
    right, one = placed(search, RIGHT), placed(search, LEFT_WRONG)
    assert fused(search._messages, right, one, 500) is None
    assert fused(search._messages, right, right, 500) is None


def test_near_a_change():
    one, other = edges(RIGHT), edges(RIGHT_WRONG)
    assert len(near(one.back, one.back)) == 0
    found = near(other.back, one.back)
    everything = np.arange(10, len(one.back))
    assert 0 < len(found) < len(everything)
    changed = np.flatnonzero(one.back != other.back)
    assert set(changed[changed >= 10]) <= set(found.tolist())
    nodes = node_of(np.arange(len(one.back)), 10)
    assert {int(x) for x in nodes[found]} >= {int(x) for x in nodes[changed] if x >= 10}
