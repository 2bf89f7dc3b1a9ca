"""What was tried in vain is not tried again where it would be the same, and is where it would not."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.clustering.parsimony import Parsimony
from phloem.inference.ml.fusion import begun_from, branches
from phloem.inference.ml.moves import Interchange, interchange
from phloem.inference.ml.search import Place, climb, fit_lengths, improving
from phloem.inference.ml.searched import OneAlignment
from phloem.inference.ml.surroundings import surroundings
from phloem.inference.ml.tree_search import SearchSettings, _Search
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.grammar import parse_model
from phloem.tree.half_edges import HalfEdges, half_edges, nexts, preorder, topology_key, tree_of
from phloem.tree.random import uniform_unrooted

T = 60


def tree(seed: int, n: int = T) -> HalfEdges:
    made = uniform_unrooted(n, np.random.default_rng(seed))
    return half_edges(made, made.taxa)


def tips_behind(back, n: int) -> dict[int, frozenset]:
    """Of every half-edge, the tips away from tip 0 that its branch parts from the others."""
    found: dict[int, frozenset] = {}
    for h in preorder(back)[::-1].tolist():
        own = [h] if h < n else [t for g in nexts(h, n) for t in found[int(back[g])]]
        found[h] = found[int(back[h])] = frozenset(own)
    return found


def around(back, s: int, radius: int, n: int = T) -> tuple:
    """What `surroundings` stands for, set by set."""
    splits = tips_behind(back, n)

    def collect(starts, reach):
        level, seen = list(starts), []
        for k in range(reach + 1):
            seen += [splits[h] for h in level]
            level = [int(back[g]) for h in level if h >= n and k < reach for g in nexts(h, n)]
        return frozenset(seen)

    beside = [int(back[g]) for g in nexts(s, n)]
    return splits[s], collect(beside, radius), collect([int(back[s])], 2)


def changed_trees() -> tuple[np.ndarray, list[np.ndarray]]:
    one, rng = tree(1), np.random.default_rng(4)
    order = preorder(one.back)
    inner = order[(order >= T) & (one.back[order] >= T)]
    others = []
    for h in rng.choice(inner, 8, replace=False).tolist():
        other = one.copy()
        interchange(other, Interchange(h, int(rng.integers(1, 3)), np.ones(5), 0.0))
        others.append(other.back)
    return one.back, others


@pytest.mark.parametrize("radius", [1, 3])
def test_numbers_are_equal_where_and_only_where_the_branches_around_are(radius):
    one, others = changed_trees()
    subtrees, same, not_same = np.arange(T, 4 * T - 6), 0, 0
    keys = surroundings(one, subtrees, radius)
    before = {s: around(one, s, radius) for s in subtrees.tolist()}
    for other in others:
        for s, key, new in zip(subtrees.tolist(), keys, surroundings(other, subtrees, radius)):
            equal = before[s] == around(other, s, radius)
            assert (key == new) == equal
            same, not_same = same + equal, not_same + (not equal)
    assert same > 50 and not_same > 50
    distinct = {repr(sorted(map(sorted, s))) + repr(own) for own, s, _ in before.values()}
    assert len(distinct) <= len(set(keys.tolist()))


def test_numbers_do_not_depend_on_how_half_edges_are_numbered():
    one = tree(2, 12)
    taxa = tuple(map(str, range(12)))
    again = half_edges(tree_of(one, taxa), taxa)
    every = [np.sort(surroundings(x.back, np.arange(12, 42), 3)) for x in (one, again)]
    assert np.array_equal(*every)


@pytest.fixture(scope="module")
def search():
    truth = uniform_unrooted(20, np.random.default_rng(6), 0.1)
    data = simulate_alignment(truth, parse_model("HKY{3}+FQ", datatype="dna"), 900, seed=2)
    one = OneAlignment(data, model_for_alignment("HKY{3}+FQ", data))
    found = _Search(one, SearchSettings(threads=1), lambda *_: None)
    one.put(found._messages, {})
    return found


def start(search) -> Place:
    other = search._parsimony.random_tree(np.random.default_rng(8))
    return fit_lengths(search._messages, search._data.edges(other), 0.1, 3)


def test_a_climb_that_remembers_ends_where_one_that_does_not_ends_and_does_not_look_twice(
    search, monkeypatch
):
    begun, vain = start(search), set[int]()
    top = climb(search._messages, begun, 5, vain=vain)
    plain = climb(search._messages, begun, 5)
    assert topology_key(top.edges.back) == topology_key(plain.edges.back)
    assert len(vain) >= 3 * 18  # every subtree of the last tree, and some of those before

    def refuse(*_):
        raise AssertionError("asked")

    monkeypatch.setattr(type(search._messages), "regrafts", refuse)
    assert improving(search._messages, top, 5, vain=vain) == []
    for known in (set(), set(sorted(vain)[1:])):  # nothing is known, or one thing less
        with pytest.raises(AssertionError, match="asked"):
            improving(search._messages, top, 5, vain=known)
            improving(search._messages, begun, 5, vain=known)


def test_a_branch_without_a_length_is_no_place_to_go_to(search):
    begun = start(search)
    moves = improving(search._messages, begun, 5)
    out = max(moves, key=lambda move: move.gain).out
    edges = begun.edges.copy()
    edges.lengths[out] = edges.lengths[edges.back[out]] = 1e-8
    place = Place(edges, search._messages.fill(edges.back, edges.lengths, preorder(edges.back)))
    beside = improving(search._messages, place, 5)
    assert beside and out not in {move.out for move in beside}
    edges.lengths[out] = edges.lengths[edges.back[out]] = 1e-3
    place = Place(edges, search._messages.fill(edges.back, edges.lengths, preorder(edges.back)))
    assert out in {move.out for move in improving(search._messages, place, 5)}


def test_a_try_begins_with_what_no_try_began_with():
    best, other = tree(1, 12), tree(5, 12)
    best.lengths[:] = 0.1
    begun, every = set[int](), np.ones(len(other.back), bool)
    edges = begun_from(other.back, every, best, begun, 500)
    assert edges is not None and topology_key(edges.back) == topology_key(other.back)
    assert begun_from(other.back, every, best, begun, 500) is None
    elsewhere = best.copy()
    order = preorder(best.back)
    inner = int(order[(order >= 12) & (best.back[order] >= 12)][0])
    interchange(elsewhere, Interchange(inner, 1, np.full(5, 0.1), 0.0))
    assert begun_from(other.back, every, elsewhere, begun, 500) is not None  # another best tree
    assert begun_from(other.back, ~every, best, set(), 500) is None  # branches without a change say nothing
    assert begun_from(best.back, every, best, set(), 500) is None
    assert set(branches(edges)) == set(branches(other))


def test_a_parsimonious_tree_of_the_data_differs_from_the_best_by_parts(search):
    top = climb(search._messages, start(search), 5)
    back = search._data.edges(search._parsimony.tree(np.random.default_rng(3)).tree).back
    assert isinstance(search._parsimony, Parsimony)
    changed = search._parsimony.changed(back)
    assert changed.dtype == bool and np.array_equal(changed, changed[back])
    edges = begun_from(back, changed, top.edges, set(), 900)
    if edges is not None:
        assert set(branches(edges)) <= set(branches(top.edges)) | set(
            branches(HalfEdges(back, edges.lengths))
        )
