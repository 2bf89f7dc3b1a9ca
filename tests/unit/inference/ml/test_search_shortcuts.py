"""What the search leaves out of its work changes nothing that it finds: screens, messages, local sweeps."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.clustering.parsimony import Parsimony
from phloem.clustering.starting_tree import starting_tree
from phloem.inference.ml.fusion import branches, lengths_of_other
from phloem.inference.ml.moves import Interchange, interchange, interchange_all
from phloem.inference.ml.search import _around, _interchanged, climb, fit_lengths, improving
from phloem.inference.ml.searched import OneAlignment
from phloem.inference.ml.tree_search import SearchSettings, _Search
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.simulation import simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.grammar import parse_model
from phloem.pruning.cpu import directed_messages
from phloem.pruning.cpu.directed_lengths import FIT, LEAVE, PASS
from phloem.tree.half_edges import half_edges, preorder, topology_key, tree_of
from phloem.tree.random import uniform_unrooted

MODEL = "HKY{3}+FQ"


class Case:
    """Twenty simulated taxa, their messages, and the tree of their distances with a part of it shaken."""

    def __init__(self) -> None:
        truth = uniform_unrooted(20, np.random.default_rng(6), 0.1)
        self.data = simulate_alignment(truth, parse_model(MODEL, datatype="dna"), 900, seed=2)
        one = OneAlignment(self.data, model_for_alignment(MODEL, self.data))
        self.messages = _Search(one, SearchSettings(threads=1), lambda *_: None)._messages
        one.put(self.messages, {})
        edges = half_edges(starting_tree(self.data).tree, self.data.taxa)
        self.place = fit_lengths(self.messages, edges, 0.01)

    def value(self, edges) -> float:
        tree = tree_of(edges, self.data.taxa)
        return TreeLikelihood(self.data, tree, MODEL, engine="reference").log_likelihood()

    def scored(self, slack: float = np.inf):
        back, lengths = self.place.edges
        return self.messages.regrafts(back, lengths, preorder(back), np.arange(20, len(back)), 4, slack)


@pytest.fixture(scope="module")
def case():
    return Case()


def by_place(found):
    return dict(zip(zip(found.pruned.tolist(), found.out.tolist()), found.scores.tolist()))


def test_a_screen_keeps_what_is_within_the_slack_and_scores_it_alike(case, monkeypatch):
    every, least = by_place(case.scored()), case.place.log_likelihood - 15.0
    good = {key for key, score in every.items() if score > least}
    screened = case.scored(15.0)
    kept = by_place(screened)
    assert good <= kept.keys() and len(kept) < len(every) / 2
    for key, score in kept.items():
        assert score == pytest.approx(every[key], rel=1e-12) or (score == -np.inf and key not in good)
    monkeypatch.setattr(directed_messages, "_SCREENS", ((2, 0.01), (16, np.inf)))  # far too strict
    assert not good <= by_place(case.scored(15.0)).keys()


def test_second_looks_need_no_messages_that_a_screen_left_out(case):
    back, lengths = case.place.edges
    found = case.scored(15.0)
    rows = np.flatnonzero(found.scores > -np.inf)
    lazy = case.messages.fitted(rows, found, back, lengths).found
    values = case.messages._messages.values.copy()
    case.messages.fill(back, lengths, preorder(back))
    assert (values != case.messages._messages.values).any()  # some were left out
    np.testing.assert_array_equal(lazy, case.messages.fitted(rows, found, back, lengths).found)
    case.messages._messages.values[:] *= 1.001
    assert (lazy != case.messages.fitted(rows, found, back, lengths).found).any()
    case.messages._stands = directed_messages._NOWHERE


def test_messages_of_another_tree_or_model_are_not_taken_for_this_ones(case):
    back, lengths = case.place.edges
    first = case.scored().scores
    other = lengths.copy()
    other[[0, back[0]]] *= 3
    case.messages.fill_half(back, other, preorder(back))
    np.testing.assert_array_equal(case.scored().scores, first)
    case.messages._stands = back.copy(), lengths.copy()  # as if they were this tree's
    case.messages._messages.values[:] *= 1.001
    assert (case.scored().scores != first).any()
    case.messages._stands = directed_messages._NOWHERE


def test_sweeps_around_a_change_leave_the_rest(case):
    edges = case.place.edges.copy()
    back, order = edges.back, preorder(edges.back)
    inner = int(order[(order >= 20) & (back[order] >= 20)][-1])
    interchange(edges, Interchange(inner, 1, np.full(5, 0.3), 0.0))
    order = preorder(edges.back)
    todo = _around(edges.back, case.place.edges.back, order)
    assert {LEAVE, PASS, FIT} >= set(todo[order].tolist()) >= {LEAVE, FIT}
    far = order[todo[order] != FIT]
    before = edges.lengths.copy()
    near = fit_lengths(case.messages, edges, 0.01, 2, case.place.edges.back)
    np.testing.assert_array_equal(near.edges.lengths[far], before[far])
    assert (near.edges.lengths != before).sum() >= 10
    assert near.log_likelihood == pytest.approx(case.value(near.edges), rel=1e-11)
    whole = fit_lengths(case.messages, edges.copy(), 0.01, 2)
    assert (whole.edges.lengths[far] != before[far]).any()
    assert whole.log_likelihood - 5 < near.log_likelihood <= whole.log_likelihood + 1e-6


def test_interchanges_are_the_resolutions_and_have_their_values(case):
    back, lengths = case.place.edges
    order = preorder(back)
    case.messages.fill(back, lengths, order)
    inner = order[(order >= 20) & (back[order] >= 20)][[2, 9]]
    found = case.messages.resolutions(back, lengths, inner)
    moves = []
    for h, values, own in zip(inner.tolist(), found.values, found.lengths):
        for r in (1, 2):
            edges = case.place.edges.copy()
            interchange(edges, Interchange(h, r, own[r], 0.0))
            assert case.value(edges) == pytest.approx(values[r], rel=1e-11)
            interchange(edges, Interchange(h, 3 - r, own[r], 0.0))
            assert case.value(edges) != pytest.approx(values[r], rel=1e-11)
        moves.append(Interchange(h, 1, own[1], float(values[1])))
    edges = case.place.edges.copy()
    done = interchange_all(edges, [*moves, moves[0]._replace(resolution=2, gain=-np.inf)])
    assert 1 <= len(done) <= 2 and len(preorder(edges.back)) == 37


def test_a_close_climb_undoes_an_interchange_that_second_looks_may_miss(case, monkeypatch):
    top = climb(case.messages, case.place, 4, closely=True)
    edges = top.edges.copy()
    order = preorder(edges.back)
    inner = int(order[(order >= 20) & (edges.back[order] >= 20)][4])
    interchange(edges, Interchange(inner, 1, np.full(5, 0.05), 0.0))
    wrong = fit_lengths(case.messages, edges, 0.01)
    better = _interchanged(case.messages, wrong)
    assert better is not None and topology_key(better.edges.back) == topology_key(top.edges.back)
    assert better.log_likelihood == pytest.approx(case.value(better.edges), rel=1e-11)
    assert _interchanged(case.messages, top) is None
    monkeypatch.setattr("phloem.inference.ml.search.improving", lambda *_, **__: [])
    again = climb(case.messages, wrong, 4, closely=True)
    assert topology_key(again.edges.back) == topology_key(top.edges.back)
    assert climb(case.messages, wrong, 4) is wrong


def test_lengths_of_known_branches_are_taken_over(case):
    known = branches(case.place.edges)
    other = Parsimony(case.data).tree(np.random.default_rng(3)).tree
    edges = lengths_of_other(half_edges(other, case.data.taxa), known)
    found = branches(edges)
    shared = found.keys() & known.keys()
    assert len(shared) >= 20 and all(found[x] == known[x] for x in shared)
    new = {found[x] for x in found.keys() - known.keys()}
    assert new <= {0.1 * np.mean(list(known.values()))}


def test_the_ratchet_ends_on_another_tree_of_as_few_changes(case):
    counting, rng = Parsimony(case.data), np.random.default_rng(1)
    start = counting.tree(rng)
    back = half_edges(start.tree, case.data.taxa).back
    kept, keys = back.copy(), set()
    for _ in range(8):
        other = counting.ratcheted(back, rng)
        tree = tree_of(case.place.edges._replace(back=other), case.data.taxa)
        assert counting.score(tree) <= start.score + 6  # characters left out are back again
        keys.add(topology_key(other))
    np.testing.assert_array_equal(back, kept)
    assert len(keys) > 1
    assert counting.score(start.tree) == start.score
    again = [counting.ratcheted(back, np.random.default_rng(7)) for _ in range(2)]
    np.testing.assert_array_equal(*again)


def test_moves_are_the_same_with_a_screen_and_without(case, monkeypatch):
    moves = improving(case.messages, case.place, 4)
    monkeypatch.setattr(directed_messages, "_SCREENS", ((16, np.inf),))
    plain = improving(case.messages, case.place, 4)
    assert [m[:2] for m in moves] == [m[:2] for m in plain]
    np.testing.assert_allclose([m.gain for m in moves], [m.gain for m in plain], rtol=1e-9, atol=1e-9)
