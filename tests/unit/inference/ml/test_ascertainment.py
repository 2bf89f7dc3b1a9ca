"""A search under +ASC: characters that could not be observed are patterns, as many as are expected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.data.alignment import Alignment, alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.patterns import site_patterns
from phloem.inference.ml.moves import Regraft, regraft
from phloem.inference.ml.optimize import optimize
from phloem.inference.ml.tree_search import SearchSettings, search_tree
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.problem import engine_problem
from phloem.likelihood.simulation import simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.grammar import parse_model
from phloem.pruning.cpu.directed_messages import DirectedMessages
from phloem.tree.half_edges import half_edges, preorder, tree_of
from phloem.tree.random import taxon_names, uniform_unrooted

MODELS = {
    "MK+ASC+G2{0.6}": "binary",
    "MK+F{0.4,0.6}+ASC{0}": "binary",
    "GTR{1.2,4,0.7,0.9,5}+F{0.35,0.3,0.1,0.25}+ASC": "dna",
}
LETTERS = {"dna": "ACGTR-", "binary": "01?"}


def characters(kind: str, rng: np.random.Generator) -> Alignment:
    """Sixty random ones of six taxa, none of which can be constant."""
    letters = rng.choice(list(LETTERS[kind]), (6, 60))
    letters = np.where(rng.random(letters.shape) < 0.25, letters, letters[0])
    letters[0], letters[-1] = ("A", "C") if kind == "dna" else ("0", "1")
    rows = {name: "".join(row) for name, row in zip(taxon_names(6), letters)}
    return alignment_from_sequences(rows, alphabet(kind))


class Case:
    def __init__(self, text: str, alignment: Alignment | None = None) -> None:
        rng = np.random.default_rng(4)
        self.alignment = alignment or characters(MODELS[text], rng)
        self.tree = replace(uniform_unrooted(6, rng, 0.2), taxa=self.alignment.taxa)
        self.likelihood = TreeLikelihood(self.alignment, self.tree, text, engine="reference")
        self.model = self.likelihood.model
        patterns, none = site_patterns(self.alignment), np.zeros(0, np.int32)
        self.patterns = patterns
        self.messages = DirectedMessages([engine_problem(patterns, self.model, (none, none))], 4)
        self.messages.set_models([self.model.evaluate()], [1.0])
        self.edges = half_edges(self.tree, self.alignment.taxa)
        self.order = preorder(self.edges.back)

    def value(self, edges) -> float:
        tree = tree_of(edges, self.alignment.taxa)
        return TreeLikelihood(self.alignment, tree, self.model, engine="reference").log_likelihood()


@pytest.mark.parametrize("text", MODELS)
def test_values_and_sites_are_the_references(text):
    case = Case(text)
    value = case.messages.fill(*case.edges, case.order)
    assert value == pytest.approx(case.likelihood.log_likelihood(), rel=1e-12)
    sites = case.messages.sites()[case.patterns.site_pattern]
    np.testing.assert_allclose(sites, case.likelihood.site_log_likelihoods(), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("text", MODELS)
def test_scores_are_never_above_the_changed_trees_and_close(text):
    """The control: the tree at hand is right, what is unseen is not followed to the changed trees."""
    case = Case(text)
    back, lengths = case.edges
    pruned = np.arange(case.edges.n_tips, len(back))
    found = case.messages.regrafts(back, lengths, case.order, pruned, 4)
    unseen, weights = case.messages._unseen, case.messages._columns.weights
    whole = case.value(case.edges)
    assert weights @ case.messages._sites + unseen.constant == pytest.approx(whole, rel=1e-12)
    weights[unseen._parts[0][1]], unseen.constant = 0.0, 0.0
    unseen.constant = whole - weights @ case.messages._sites
    blind = case.messages.regrafts(back, lengths, case.order, pruned, 4)
    apart, control = [], []
    for row in range(0, len(found.scores), 3):
        edges, out, s = case.edges.copy(), int(found.out[row]), int(found.pruned[row])
        regraft(edges, Regraft(s, out, (lengths[out] / 2, lengths[out] / 2, lengths[s]), 0.0))
        value = case.value(edges)
        apart.append(value - found.scores[row])
        control.append(abs(value - blind.scores[row]))
    assert min(apart) > -1e-8
    assert max(apart) < 0.3 * max(control)


def test_sweeps_climb_to_the_optimum():
    text = "MK+F{0.4,0.6}+ASC"
    tree = uniform_unrooted(6, np.random.default_rng(4), 0.2)
    case = Case(text, simulate_alignment(tree, parse_model(text, datatype="binary"), 300, seed=2))
    back, lengths = case.edges
    values = [case.messages.fill(back, lengths, case.order)]
    values += [case.messages.sweep(back, lengths, case.order) for _ in range(50)]
    assert (np.diff(values) > -1e-9).all() and values[-1] > values[0] + 1.0
    best = optimize(TreeLikelihood(case.alignment, case.tree, case.model, engine="cpu")).log_likelihood
    assert values[-1] == pytest.approx(best, abs=1e-2)
    assert values[-1] == pytest.approx(case.value(case.edges), rel=1e-11)


def test_resolutions_are_worth_what_their_sites_say():
    case = Case(next(iter(MODELS)))
    back, lengths = case.edges
    case.messages.fill(back, lengths, case.order)
    n = case.edges.n_tips
    inner = case.order[(case.order >= n) & (back[case.order] >= n)]
    found = case.messages.resolutions(back, lengths, inner)
    weights = np.append(case.patterns.weights, [0.0, 0.0])
    np.testing.assert_allclose(found.sites @ weights, found.values, rtol=1e-12)
    assert found.values[:, 0].min() > case.value(case.edges) - 1e-6


def test_the_best_of_all_trees_of_five_taxa_is_found():
    tree = uniform_unrooted(5, np.random.default_rng(2), 0.3)
    data = simulate_alignment(tree, parse_model("MK+ASC", datatype="binary"), 120, seed=3)
    found = search_tree(data, model_for_alignment("MK+ASC", data), settings=SearchSettings(patience=3))
    values = []
    for k in range(60):  # all fifteen are among them
        one = uniform_unrooted(5, np.random.default_rng(k), 0.3)
        values.append(optimize(TreeLikelihood(data, one, "MK+ASC", engine="cpu")).log_likelihood)
    assert found.optimum.log_likelihood == pytest.approx(max(values), abs=1e-3)
    assert min(values) < max(values) - 1.0
