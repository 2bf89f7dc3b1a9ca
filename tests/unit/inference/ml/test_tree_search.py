"""The search: best trees of few taxa, data of other programs, what it refuses, same seed same tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import InputError, ModelError
from phloem.inference.ml import tree_search, tree_starts
from phloem.inference.ml.moves import Regraft, regraft
from phloem.inference.ml.optimize import optimize
from phloem.inference.ml.search import climb, hilltop, worth_a_look
from phloem.inference.ml.searched import OneAlignment
from phloem.inference.ml.tree_search import SearchSettings, Start, _Search, search_tree
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.simulation import simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.grammar import parse_model
from phloem.pruning.cpu.directed_storage import LANES
from phloem.tree.half_edges import half_edges, preorder, topology_key, tree_of
from phloem.tree.random import taxon_names, uniform_unrooted
from phloem.tree.splits import robinson_foulds

FEW = SearchSettings(patience=2)


@pytest.fixture(scope="module")
def truth():
    return uniform_unrooted(12, np.random.default_rng(5), 0.15)


@pytest.fixture(scope="module")
def simulated(truth):
    return simulate_alignment(truth, parse_model("HKY{3}+FQ", datatype="dna"), 600, seed=3)


def test_the_true_tree_is_found_from_a_wrong_one(truth, simulated):
    wrong = uniform_unrooted(12, np.random.default_rng(8), 0.1)
    model = model_for_alignment("HKY+FQ", simulated)
    wrong = tree_of(half_edges(wrong, truth.taxa), simulated.taxa)
    assert robinson_foulds(wrong, truth) > 8
    result = search_tree(simulated, model, Start(wrong), FEW)
    assert robinson_foulds(result.optimum.tree, truth) == 0
    at_truth = optimize(TreeLikelihood(simulated, truth, "HKY+FQ", engine="cpu", threads=1))
    assert result.optimum.log_likelihood == pytest.approx(at_truth.log_likelihood, abs=2e-4)
    again = TreeLikelihood(simulated, result.optimum.tree, result.optimum.model_text, engine="reference")
    assert again.log_likelihood() == pytest.approx(result.optimum.log_likelihood, rel=1e-10)
    assert result.optimum.converged and result.origin == "the tree given"


def test_the_best_of_all_trees_of_five_taxa():
    rng = np.random.default_rng(2)
    letters = rng.choice(list("ACGT"), (5, 60))
    letters = np.where(rng.random(letters.shape) < 0.4, letters, letters[0])
    rows = {name: "".join(row) for name, row in zip("abcde", letters)}
    data = alignment_from_sequences(rows, alphabet("dna"))
    found = search_tree(data, model_for_alignment("JC", data), settings=FEW).optimum
    every: dict[tuple, float] = {}
    while len(every) < 15:
        tree = uniform_unrooted(5, rng)
        tree = tree_of(half_edges(tree, tree.taxa), data.taxa)
        key = tuple(sorted(tuple(sorted(c)) for c in _clades(tree)))
        if key not in every:
            fit = optimize(TreeLikelihood(data, tree, "JC", engine="cpu", threads=1))
            every[key] = fit.log_likelihood
    assert found.log_likelihood == pytest.approx(max(every.values()), abs=2e-4)
    assert min(every.values()) < found.log_likelihood - 1


def test_further_searches_follow_where_few_tries_lead_back_to_the_best_tree(simulated):
    def found(data, patience: int):
        settings = SearchSettings(patience=patience, threads=1)
        return search_tree(data, model_for_alignment("JC", data), settings=settings)

    letters = np.random.default_rng(1).choice(list("ACGT"), (30, 60))
    rows = {name: "".join(row) for name, row in zip(taxon_names(30), letters)}
    easy, noise = found(simulated, 8), alignment_from_sequences(rows, alphabet("dna"))
    assert len(easy.starts) == 1 and easy.tries - max((b.number for b in easy.found), default=0) == 8
    hard = found(noise, 2)
    assert len(hard.starts) > 1 and hard.starts[1].origin.startswith("parsimony")
    assert max(one.log_likelihood for one in hard.starts) <= hard.optimum.log_likelihood + 0.01
    assert hard.optimum.log_likelihood > hard.starts[0].log_likelihood + 1
    for data in (simulated, noise):
        once = found(data, 0)
        assert len(once.starts) == 1 and once.tries == 0


def _clades(tree):
    below = [{x} if x < tree.n_tips else set() for x in range(tree.n_nodes)]
    for x in range(tree.n_nodes - 1):
        below[tree.parent[x]] |= below[x]
    return [b if 0 not in b else set(range(tree.n_tips)) - b for b in below[tree.n_tips : -1]]


def test_same_seed_same_tree_whatever_the_threads(simulated):
    model = model_for_alignment("HKY+FQ", simulated)
    one, two = (
        search_tree(simulated, model, settings=SearchSettings(patience=3, seed=4, threads=n)) for n in (1, 2)
    )
    assert one.optimum.log_likelihood == two.optimum.log_likelihood
    np.testing.assert_array_equal(one.optimum.branch_lengths, two.optimum.branch_lengths)
    assert one.origin.startswith("BIONJ") and one.tries == two.tries >= 3


def test_of_many_taxa_a_tree_of_few_changes_is_climbed_from_once(truth, simulated, monkeypatch):
    model = model_for_alignment("HKY+FQ+G4", simulated)
    few = search_tree(simulated, model, settings=SearchSettings(patience=0, threads=1))
    for module in (tree_starts, tree_search):
        monkeypatch.setattr(module, "MANY", 12)
    climbs = []

    def counted(*given, **words):
        climbs.append(words.get("closely", False))
        return climb(*given, **words)

    monkeypatch.setattr(tree_search, "climb", counted)
    one, two = (search_tree(simulated, model, settings=SearchSettings(patience=0, threads=n)) for n in (1, 2))
    assert climbs == [False, False] and "changes" in one.origin and "changes" not in few.origin
    assert one.optimum.log_likelihood == two.optimum.log_likelihood
    np.testing.assert_array_equal(one.optimum.branch_lengths, two.optimum.branch_lengths)
    assert robinson_foulds(one.optimum.tree, truth) == 0 and one.optimum.converged
    assert one.optimum.log_likelihood == pytest.approx(few.optimum.log_likelihood, abs=2e-4)
    again = TreeLikelihood(simulated, one.optimum.tree, one.optimum.model_text, engine="reference")
    assert again.log_likelihood() == pytest.approx(one.optimum.log_likelihood, rel=1e-10)
    # planted: a start without lengths that is taken for one with near ones ends on the same tree all the same
    bad = Start(uniform_unrooted(12, np.random.default_rng(8), 3.0), near=True)
    bad = replace(bad, tree=replace(bad.tree, taxa=simulated.taxa))
    found = search_tree(simulated, model, bad, SearchSettings(patience=2, threads=1)).optimum
    assert found.log_likelihood == pytest.approx(few.optimum.log_likelihood, abs=0.01)


def test_a_shaken_tree_is_another_tree_of_the_same_taxa(simulated):
    search = _Search(OneAlignment(simulated, model_for_alignment("JC", simulated)), FEW, lambda *_: None)
    place = search._placed(half_edges(starting_tree(simulated).tree, simulated.taxa))
    top, rng = hilltop(search._messages, place, 5), np.random.default_rng(1)
    assert top.chances.sum() == pytest.approx(1.0)
    assert top.chances[top.found.scores.argmax()] > 1e3 * top.chances[top.found.scores.argmin()]
    before = place.edges.copy()
    for moves in (1, 6):
        other = top.shaken(rng, moves)
        assert len(preorder(other.back)) == 21
        distance = robinson_foulds(tree_of(other, simulated.taxa), tree_of(before, simulated.taxa))
        assert 0 < distance <= 18
        assert topology_key(other.back) != topology_key(before.back)
    np.testing.assert_array_equal(place.edges.back, before.back)


def test_topologies_are_known_by_their_keys(truth):
    edges = half_edges(truth, truth.taxa)
    again = half_edges(tree_of(edges, truth.taxa), truth.taxa)
    assert topology_key(edges.back) == topology_key(again.back)
    rng = np.random.default_rng(4)
    keys = {topology_key(half_edges(uniform_unrooted(5, rng), taxon_names(5)).back) for _ in range(400)}
    assert len(keys) == 15


def test_a_climb_ends_on_a_hilltop_that_is_known(simulated):
    search = _Search(OneAlignment(simulated, model_for_alignment("JC", simulated)), FEW, lambda *_: None)
    start = search._placed(half_edges(starting_tree(simulated).tree, simulated.taxa))
    top = climb(search._messages, start, 5)
    assert climb(search._messages, start, 5, {topology_key(start.edges.back)}) is start
    assert climb(search._messages, top, 5).log_likelihood == top.log_likelihood


def test_three_taxa_have_one_tree(simulated):
    rows = {"a": "ACGTACGTAA", "b": "ACGTACGTCA", "c": "ACGAACGTAT"}
    data = alignment_from_sequences(rows, alphabet("dna"))
    result = search_tree(data, model_for_alignment("JC", data), settings=FEW)
    assert result.tries == 0 and result.optimum.converged


def test_what_the_search_cannot_do_is_refused(simulated):
    with pytest.raises(ModelError, match="not reversible"):
        search_tree(simulated, model_for_alignment("UNREST", simulated))
    pair = alignment_from_sequences({"a": "ACGT", "b": "ACGA"}, alphabet("dna"))
    with pytest.raises(InputError, match="three taxa"):
        search_tree(pair, model_for_alignment("JC", pair))
    with pytest.raises(InputError, match="patience"):
        SearchSettings(patience=-1)


def test_every_interchange_gets_one_second_look(simulated):
    search = _Search(OneAlignment(simulated, model_for_alignment("JC", simulated)), FEW, lambda *_: None)
    place = search._placed(half_edges(starting_tree(simulated).tree, simulated.taxa))
    back, lengths = place.edges
    found = search._messages.regrafts(back, lengths, preorder(back), np.arange(12, len(back)), 1)

    def topologies(rows) -> list[int]:
        keys = []
        for row in rows:
            edges = place.edges.copy()
            regraft(edges, Regraft(int(found.pruned[row]), int(found.out[row]), (0.1, 0.1, 0.1), 0.0))
            keys.append(topology_key(edges.back))
        return keys

    keys, every = topologies(worth_a_look(found, -np.inf, 9)), topologies(range(len(found.scores)))
    assert len(keys) == len(set(keys)) == 2 * (12 - 3) == len(set(every)) < len(every)


def test_more_messages_than_memory_are_refused(simulated, monkeypatch):
    model = model_for_alignment("JC+G4", simulated)
    patterns = len(np.unique(simulated.codes, axis=1).T)
    padded = -(-patterns // len(LANES)) * len(LANES)
    needed = (4 * 12 - 6) * 16 * 8 * (padded + 2 * 4)  # messages, and two matrices a branch
    monkeypatch.setattr("phloem.hardware.limits.available_bytes", lambda: needed - 1)
    with pytest.raises(InputError, match="messages of 12 taxa"):
        search_tree(simulated, model)
    monkeypatch.setattr("phloem.hardware.limits.available_bytes", lambda: needed)
    _Search(OneAlignment(simulated, model), FEW, lambda *_: None)
