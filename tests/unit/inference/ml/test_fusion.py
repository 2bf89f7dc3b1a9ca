"""Two trees that err in different parts become one that errs in neither; subtrees near a change are found."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.inference.ml.fusion import (
    Around,
    branches,
    compatible,
    exchanged,
    exchanges,
    fused,
    marked,
    tree_of_branches,
)
from phloem.inference.ml.search import Place, climb, fit_lengths, moved_far, near
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


def unfitted(text):
    """Where every branch has a length, so that it says something."""
    return Place(edges(text), -4100.0)


def test_parts_that_did_not_gain_in_a_tree_are_not_put_into_it_again(search):
    right, one = placed(search, RIGHT), placed(search, LEFT_WRONG)
    tested: set[int] = set()
    two_wrong = "((a:.1,c:.1):.1,(b:.1,d:.1):.1,(((g:.1,i:.1):.1,(h:.1,j:.1):.1):.1,(e:.1,f:.1):.1):.2);"
    assert fused(search._messages, right, unfitted(two_wrong), 500, tested) is None
    assert len(tested) == 2
    both = fused(search._messages, one, placed(search, RIGHT_WRONG), 500, tested)  # keys are of one tree
    assert both is not None and topology_key(both.edges.back) == topology_key(right.edges.back)
    high = placed(search, RIGHT_WRONG)
    parts = exchanges(branches(high.edges), branches(one.edges), 0.1 / 500)
    keys = {part.key(topology_key(high.edges.back)) for part in parts}
    assert high.log_likelihood > one.log_likelihood and keys.isdisjoint(tested)
    assert fused(search._messages, one, high, 500, tested | keys) is None


def test_a_part_of_another_hilltop_is_climbed_from_once(search):
    """The wrong left half is put in, whatever it costs; a second time it is not tried."""
    right, wrong = placed(search, RIGHT), unfitted(LEFT_WRONG)
    fitted = placed(search, LEFT_WRONG)
    better = exchanged(search._messages, fitted, [right], Around(500, 5, (), set(), set()))
    assert better is not None and better.log_likelihood == pytest.approx(right.log_likelihood, abs=0.1)
    around = Around(500, 5, (), set(), set())
    found = exchanged(search._messages, right, [wrong], around)
    assert found is not None and found.log_likelihood < right.log_likelihood - 12.0
    assert len(around.tested) == 1 and exchanged(search._messages, right, [wrong], around) is None


def test_branches_that_are_not_known_are_marked():
    right, wrong = edges(RIGHT), edges(LEFT_WRONG)
    before = marked(wrong, branches(right))
    assert (before == -1).sum() == 4  # two branches, at both ends
    assert (before[before >= 0] == wrong.back[before >= 0]).all()
    assert (marked(right, branches(right)) == right.back).all()


def test_what_a_climb_by_few_nodes_misses_is_moved_far(search):
    """From a tip of one half in the other, six nodes away, interchanges alone lead nowhere."""
    text = "((b:.1,k:.1):.1,(c:.1,d:.1):.1,(((g:.1,h:.1):.1,(i:.1,j:.1):.1):.1,(e:.1,f:.1):.1):.2);"
    away = placed(search, text.replace("(b:.1,k:.1):.1", "b:.2").replace("i:.1", "(i:.05,a:.1):.05"))
    right = placed(search, RIGHT)
    moved = moved_far(search._messages, away, 1)
    assert moved is not None and moved.log_likelihood == pytest.approx(right.log_likelihood, abs=0.1)
    assert moved_far(search._messages, right, 1) is None
    assert climb(search._messages, right, 1).edges is right.edges
