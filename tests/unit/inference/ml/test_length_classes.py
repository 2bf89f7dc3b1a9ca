"""Searches under classes of sites with branch lengths of their own (+H): messages, fits, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.patterns import site_patterns
from phloem.density.parts import Linkage
from phloem.errors import ModelError
from phloem.inference.ml.length_classes import shaken, shaken_best
from phloem.inference.ml.model_choice import ChoiceSettings, choose_model
from phloem.inference.ml.moves import Regraft, regraft
from phloem.inference.ml.optimize import optimize
from phloem.inference.ml.place import Place as Where
from phloem.inference.ml.search import Place, fit_lengths
from phloem.inference.ml.search_result import SearchSettings
from phloem.inference.ml.searched import OneAlignment, SearchedPart, SeveralParts
from phloem.inference.ml.tree_search import search_tree
from phloem.inference.ml.tree_starts import bionj_start
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.half_edges import HalfEdges, half_edges, preorder, tree_of
from phloem.tree.layout import tree_layout
from phloem.tree.random import taxon_names, uniform_unrooted
from phloem.tree.splits import robinson_foulds

N = 7
MODELS = (
    "GTR{1.2,4,0.7,0.9,5}+F{0.35,0.3,0.1,0.25}+H2{0.3,0.7}",
    "HKY{3}+FQ+I{0.2}+H3{0.2,0.3,0.5}",
    "MIX{JC,HKY{4}+F{0.4,0.1,0.2,0.3}}*H2{0.4,0.6}",
)


class Case:
    """A random tree with lengths of its own in every class, and random characters."""

    def __init__(self, model: str, n_sites: int = 60) -> None:
        rng = np.random.default_rng(5)
        letters = rng.choice(list("ACGTRN-"), (N, n_sites))
        letters = np.where(rng.random(letters.shape) < 0.4, letters, letters[0])
        rows = {name: "".join(row) for name, row in zip(taxon_names(N), letters)}
        self.alignment = alignment_from_sequences(rows, alphabet("dna"))
        self.model = model_for_alignment(model, self.alignment)
        self.data = OneAlignment(self.alignment, self.model)
        self.messages = self.data.messages(4, 2)
        self.data.put(self.messages, self.model.values())
        one = half_edges(uniform_unrooted(N, rng, 0.2), self.alignment.taxa)
        self.order = preorder(one.back)
        lengths = np.zeros((len(one.back), self.data.n_classes))
        lengths[self.order] = rng.exponential(0.2, (len(self.order), self.data.n_classes))
        lengths[one.back[self.order]] = lengths[self.order]
        self.edges = HalfEdges(one.back, lengths)

    def reference(self, edges: HalfEdges) -> TreeLikelihood:
        trees = [tree_of(HalfEdges(edges.back, own), self.alignment.taxa) for own in edges.lengths.T]
        found = TreeLikelihood(self.alignment, trees[0], self.model, engine="reference")
        by_class = [tree_layout(tree, self.alignment.taxa).tree.lengths[:-1] for tree in trees]
        found.set(branch_lengths=np.array(by_class))
        return found

    def value(self, edges: HalfEdges) -> float:
        return self.reference(edges).log_likelihood()


@pytest.mark.parametrize("model", MODELS)
def test_values_sites_and_scores_are_the_references(model):
    case = Case(model)
    back, lengths = case.edges
    value = case.messages.fill(back, lengths, case.order)
    reference = case.reference(case.edges)
    assert value == pytest.approx(reference.log_likelihood(), rel=1e-12)
    sites = case.messages.sites()[site_patterns(case.alignment).site_pattern]
    np.testing.assert_allclose(sites, reference.site_log_likelihoods(), rtol=1e-11, atol=1e-11)
    found = case.messages.regrafts(back, lengths, case.order, np.arange(N, len(back)), 4)
    for s, out, score in list(zip(found.pruned.tolist(), found.out.tolist(), found.scores))[::13]:
        edges, half = case.edges.copy(), lengths[out] / 2
        regraft(edges, Regraft(s, out, (half, half, lengths[s]), 0.0))
        assert score == pytest.approx(case.value(edges), rel=1e-11)
    swapped = HalfEdges(back, np.ascontiguousarray(lengths[:, ::-1]))
    assert value != pytest.approx(case.value(swapped), rel=1e-4)  # whose lengths they are is seen


@pytest.mark.parametrize("model", MODELS)
def test_second_looks_and_resolutions_fit_the_lengths_of_every_class(model):
    case = Case(model)
    back, lengths = case.edges
    found = case.messages.regrafts(back, lengths, case.order, np.arange(N, len(back)), 4)
    rows = np.arange(0, len(found.scores), 11)
    looks = case.messages.fitted(rows, found, back, lengths)
    assert looks.found.shape == (len(rows), 4, case.data.n_classes)
    for row, value, (_, *three) in zip(rows, looks.values, looks.found):
        edges = case.edges.copy()
        regraft(edges, Regraft(int(found.pruned[row]), int(found.out[row]), tuple(three), 0.0))
        assert value == pytest.approx(case.value(edges), rel=1e-11)
    assert (looks.values >= found.scores[rows] - 1e-6).all()
    assert (np.ptp(looks.found[:, 3], axis=1) > 0.01).any()  # classes have lengths of their own
    case.messages.fill(back, lengths, case.order)
    inner = case.order[(case.order >= N) & (back[case.order] >= N)]
    tried = case.messages.resolutions(back, lengths, inner)
    assert tried.lengths.shape == (len(inner), 3, 5, case.data.n_classes)
    assert (tried.values[:, 0] > case.value(case.edges)).all()
    weights = site_patterns(case.alignment).weights
    np.testing.assert_allclose(tried.sites @ weights, tried.values, rtol=1e-11)


@pytest.mark.parametrize("model", MODELS[:2])
def test_sweeps_end_where_no_length_of_any_class_can_gain(model):
    case = Case(model)
    place = fit_lengths(case.messages, case.edges.copy(), 1e-8, most=2000)
    assert place.log_likelihood == pytest.approx(case.value(place.edges), rel=1e-11)
    reference = case.reference(place.edges)
    slope = reference.gradient().branch_lengths
    inside = (reference.branch_lengths > 1e-6) & (reference.branch_lengths < 10.0)
    assert inside.sum() >= 8  # others are at a bound, as random characters make them
    assert np.abs((slope * reference.branch_lengths)[inside]).max() < 0.02
    before = case.reference(case.edges)
    assert np.abs(before.gradient().branch_lengths * before.branch_lengths).max() > 0.5


def test_one_class_less_makes_them_the_usual_messages():
    case = Case(MODELS[0])
    equal = HalfEdges(case.edges.back, np.repeat(case.edges.lengths[:, :1], 2, axis=1))
    plain = OneAlignment(case.alignment, model_for_alignment(MODELS[0].partition("+H")[0], case.alignment))
    messages = plain.messages(4, 1)
    plain.put(messages, plain.model.values())
    usual = messages.fill(equal.back, equal.lengths[:, 0].copy(), case.order)
    assert case.messages.fill(*equal, case.order) == pytest.approx(usual, rel=1e-12)


def test_a_shaken_tree_is_a_whole_one_and_a_copy():
    case, rng = Case(MODELS[0]), np.random.default_rng(1)
    before = case.edges.copy()
    for _ in range(9):
        new = shaken(case.edges, rng)
        np.testing.assert_array_equal(new.lengths, new.lengths[new.back])
        assert (new.lengths[case.order] != before.lengths[case.order]).any()
    np.testing.assert_array_equal(case.edges.lengths, before.lengths)


def heterotachous(n_sites: int = 800) -> tuple:
    """Two classes of sites on one tree: branches that are long in one are short in the other (Kolaczkowski
    and Thornton 2004)."""
    rng = np.random.default_rng(8)
    tree = uniform_unrooted(8, rng, 0.1)
    taxa, states = tree.taxa, rng.integers(0, 4, (tree.n_nodes, 2, n_sites // 2))
    long = rng.random(tree.n_nodes) < 0.5
    for x in range(tree.n_nodes - 2, -1, -1):
        for k in range(2):
            t = 0.4 if long[x] == bool(k) else 0.04
            change = rng.random(n_sites // 2) < 1 - np.exp(-4 / 3 * t)
            above = states[tree.parent[x], k]
            states[x, k] = np.where(change, rng.integers(0, 4, n_sites // 2), above)
    rows = {name: "".join(np.array(list("ACGT"))[states[i].ravel()]) for i, name in enumerate(taxa)}
    return alignment_from_sequences(rows, alphabet("dna")), tree


def test_a_search_finds_the_tree_and_the_classes():
    data, tree = heterotachous()
    model = model_for_alignment("JC+H2", data)
    found = search_tree(data, model, settings=SearchSettings(patience=1, threads=1))
    own = optimize(TreeLikelihood(data, tree, model))
    assert found.optimum.log_likelihood >= own.log_likelihood - 0.01
    assert robinson_foulds(found.optimum.tree, tree) == 0
    likelihood = found.likelihood
    assert isinstance(likelihood, TreeLikelihood)
    assert likelihood.log_likelihood() == pytest.approx(found.optimum.log_likelihood, rel=1e-12)
    lengths = likelihood.branch_lengths
    assert lengths.shape[0] == 2 and np.corrcoef(lengths)[0, 1] < 0  # long in one, short in the other
    assert lengths[0].sum() <= lengths[1].sum()  # in this order
    weights = np.asarray(likelihood.parameters["weights"])
    np.testing.assert_allclose(weights, 0.5, atol=0.1)
    without = search_tree(data, model_for_alignment("JC", data), settings=SearchSettings(patience=0))
    assert found.optimum.bic < without.optimum.bic - 50
    assert found.optimum.n_free == without.optimum.n_free + 13 + 1


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads():
    data, _ = heterotachous(200)
    model = model_for_alignment("JC+H2", data)
    one, two = (search_tree(data, model, settings=SearchSettings(patience=0, threads=n)) for n in (1, 2))
    np.testing.assert_array_equal(one.optimum.branch_lengths, two.optimum.branch_lengths)


def test_shaking_leads_to_better_classes_where_a_fit_is_stuck():
    data, _ = heterotachous(400)
    model = model_for_alignment("JC+H2", data)
    one = OneAlignment(data, model)
    start = search_tree(data, model_for_alignment("JC", data), settings=SearchSettings(patience=0)).optimum
    flat = half_edges(start.tree, data.taxa)
    alike = HalfEdges(flat.back, np.repeat(flat.lengths[:, None], 2, axis=1))  # a saddle: no fit leaves it
    stuck = one.refined(one.likelihood(alike, model.start_values(), 1))
    best = Place(one.edges_of(stuck), stuck.log_likelihood)
    rng = np.random.default_rng(2)
    found = shaken_best(one, best, None, one.values_of(stuck), rng, 4, 1)
    assert found is not None and found.log_likelihood > best.log_likelihood + 10
    plain = OneAlignment(data, model_for_alignment("JC", data))
    assert shaken_best(plain, best, None, {}, rng, 4, 1) is None


def test_where_no_class_can_have_lengths_of_its_own_it_is_refused():
    data, _ = heterotachous(100)
    model = model_for_alignment("JC+H2", data)
    with pytest.raises(ModelError, match="a search on a GPU knows one"):
        OneAlignment(data, model, Where("gpu"))
    with pytest.raises(ModelError, match="a search with parts knows one"):
        SeveralParts([SearchedPart("a", data, model)], Linkage("linked"))
    with pytest.raises(ModelError, match="a choice of models knows one"):
        choose_model(data, bionj_start(data), ChoiceSettings(families=("JC+H2",)))
