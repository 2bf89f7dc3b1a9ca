"""Directed messages against the reference: values, best lengths, regrafts and second looks."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.patterns import site_patterns
from phloem.inference.ml.moves import Regraft, regraft, regraft_all
from phloem.inference.ml.optimize import optimize
from phloem.likelihood.problem import engine_problem
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.pruning.cpu.directed_messages import DirectedMessages
from phloem.tree.half_edges import half_edges, join, nexts, preorder, tree_of
from phloem.tree.random import taxon_names, uniform_unrooted

MODELS = {
    "GTR{1.2,4,0.7,0.9,5}+F{0.35,0.3,0.1,0.25}+G4{0.5}": "dna",
    "HKY{3}+FQ+I{0.3}+R2{0.3,0.2,0.7,1.4}": "dna",
    "LG+G2{0.8}": "protein",
    "LG4M*G4{0.7}": "protein",
    "MK+F{0.4,0.6}": "binary",
}
LETTERS = {"dna": "ACGTRN-", "protein": "ARNDCQEGBX", "binary": "01?"}


class Case:
    """A random tree and random characters, with every engine."""

    def __init__(self, model: str, n_taxa: int = 7, n_sites: int = 45, mean_length: float = 0.2) -> None:
        rng = np.random.default_rng(3)
        kind = MODELS.get(model, "dna")
        letters = rng.choice(list(LETTERS[kind]), (n_taxa, n_sites))
        letters = np.where(rng.random(letters.shape) < 0.3, letters, letters[0])
        rows = {name: "".join(row) for name, row in zip(taxon_names(n_taxa), letters)}
        constant = "".join(letters[0, :9])
        rows = {name: constant + row[9:] for name, row in rows.items()}
        self.alignment = alignment_from_sequences(rows, alphabet(kind))
        self.tree = uniform_unrooted(n_taxa, rng, mean_length)
        self.likelihood = self.reference(self.tree, model)
        self.model = self.likelihood.model
        patterns, none = site_patterns(self.alignment), np.zeros(0, np.int32)
        problem = engine_problem(patterns, self.model, (none, none))
        self.messages = DirectedMessages([problem], 4, threads=2)
        self.messages.set_models([self.model.evaluate()], [1.0])
        self.edges = half_edges(self.tree, self.alignment.taxa)
        self.order = preorder(self.edges.back)

    def reference(self, tree, model=None) -> TreeLikelihood:
        return TreeLikelihood(self.alignment, tree, model or self.model, engine="reference")

    def value(self, edges) -> float:
        return self.reference(tree_of(edges, self.alignment.taxa)).log_likelihood()


@pytest.mark.parametrize("model", MODELS)
def test_values_and_sites_are_the_references(model):
    case = Case(model)
    value = case.messages.fill(*case.edges, case.order)
    assert value == pytest.approx(case.likelihood.log_likelihood(), rel=1e-12)
    patterns = site_patterns(case.alignment)
    sites = case.messages.sites()[patterns.site_pattern]
    np.testing.assert_allclose(sites, case.likelihood.site_log_likelihoods(), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("model", list(MODELS)[:3])
def test_regrafts_score_as_the_changed_trees(model):
    case = Case(model)
    n, (back, lengths) = 7, case.edges
    pruned = np.arange(n, len(back))
    found = case.messages.regrafts(back, lengths, case.order, pruned, 4)
    every = list(zip(found.pruned.tolist(), found.out.tolist(), found.scores))
    assert len({(s, min(out, back[out])) for s, out, _ in every}) == len(every) > 60
    for s, out, score in every[::9]:
        edges = case.edges.copy()
        half = lengths[out] / 2
        regraft(edges, Regraft(s, out, (half, half, lengths[s]), 0.0))
        assert score == pytest.approx(case.value(edges), rel=1e-11)
    wrong = Regraft(every[0][0], every[0][1], (0.0, lengths[every[0][1]], lengths[every[0][0]]), 0.0)
    edges = case.edges.copy()
    regraft(edges, wrong)
    assert every[0][2] != pytest.approx(case.value(edges), rel=1e-6)  # the middle, not an end


def test_a_walk_reaches_every_branch_that_a_subtree_can_go_to():
    """2T-3 branches, less those in the subtree with its own and the two that meet where it was."""
    case = Case(next(iter(MODELS)))
    back, lengths = case.edges
    for s in range(7, len(back)):
        found = case.messages.regrafts(back, lengths, case.order, np.array([s]), 4)
        inside, waiting = 1, [back[s]]
        while waiting:
            h = waiting.pop()
            if h >= 7:
                inside += 2
                waiting += [back[g] for g in nexts(h, 7)]
        assert len(found.out) == 11 - inside - 2
    near = case.messages.regrafts(back, lengths, case.order, np.arange(7, len(back)), 1)
    assert len(near.out) < len(found.out) * 15 and (near.steps[:, 4] == 1).all()


@pytest.mark.parametrize("model", list(MODELS)[:3])
def test_a_second_look_fits_the_three_lengths(model):
    case = Case(model)
    back, lengths = case.edges
    pruned = np.arange(7, len(back))
    found = case.messages.regrafts(back, lengths, case.order, pruned, 4)
    rows = np.arange(0, len(found.scores), 11)
    fitted = case.messages.fitted(rows, found, back, lengths).found
    for row, (value, *three) in zip(rows, fitted):
        edges = case.edges.copy()
        regraft(edges, Regraft(int(found.pruned[row]), int(found.out[row]), tuple(three), 0.0))
        assert value == pytest.approx(case.value(edges), rel=1e-11)
    assert (fitted[:, 0] >= found.scores[rows] - 1e-6).all()
    assert (fitted[:, 0] > found.scores[rows] + 1e-2).any()


def interchanged(edges, h: int, resolution: int):
    """A copy where the second corner beside h has changed places with corner 1 + resolution."""
    new, n = edges.copy(), edges.n_tips
    mine, others = nexts(h, n)[1], nexts(int(edges.back[h]), n)
    if resolution:
        theirs = others[resolution - 1]
        x, y = int(new.back[mine]), int(new.back[theirs])
        join(new.back, new.lengths, mine, y, 0.1)
        join(new.back, new.lengths, theirs, x, 0.1)
    return new


@pytest.mark.parametrize("model", list(MODELS)[:3])
def test_resolutions_of_a_branch_with_their_five_lengths(model):
    case = Case(model)
    back, lengths = case.edges
    case.messages.fill(back, lengths, case.order)
    inner = case.order[(case.order >= 7) & (back[case.order] >= 7)]
    found = case.messages.resolutions(back, lengths, inner)
    assert len(inner) == 4 and found.sites.shape == (4, 3, len(case.messages.sites()))
    weights = site_patterns(case.alignment).weights
    np.testing.assert_allclose(found.sites @ weights, found.values, rtol=1e-12)
    for h, values, five in zip(inner.tolist(), found.values, found.lengths):
        for r in range(3):
            edges = interchanged(case.edges, h, r)
            places = [*nexts(h, 7), *nexts(int(back[h]), 7)]
            if r:  # corner 1 and corner 1 + r changed places
                places[1], places[1 + r] = places[1 + r], places[1]
            for corner, half in enumerate(places):
                join(edges.back, edges.lengths, half, int(edges.back[half]), float(five[r][corner]))
            join(edges.back, edges.lengths, h, int(edges.back[h]), float(five[r][4]))
            assert values[r] == pytest.approx(case.value(edges), rel=1e-11)
            edges.lengths[:] *= 1.01  # the values depend on the lengths that are handed out
            assert values[r] != pytest.approx(case.value(edges), rel=1e-11)
    assert found.values[:, 0].min() > case.likelihood.log_likelihood() - 1e-6


def test_the_five_lengths_are_the_best():
    case = Case("HKY{3}+FQ+I{0.3}+R2{0.3,0.2,0.7,1.4}", n_taxa=4)
    back, lengths = case.edges
    case.messages.fill(back, lengths, case.order)
    h = int(case.order[(case.order >= 4) & (back[case.order] >= 4)][0])
    found = case.messages.resolutions(back, lengths, np.array([h]))
    for r in range(3):
        tree = tree_of(interchanged(case.edges, h, r), case.alignment.taxa)
        best = optimize(case.reference(tree)).log_likelihood
        assert found.values[0, r] == pytest.approx(best, abs=0.02)


def test_sweeps_find_the_best_lengths():
    case = Case("HKY{3}+FQ+I{0.3}+R2{0.3,0.2,0.7,1.4}")
    back, lengths = case.edges
    case.messages.fill(back, lengths, case.order)
    values = [case.messages.sweep(back, lengths, case.order) for _ in range(30)]
    assert values[0] < values[-1] == pytest.approx(optimize(case.likelihood).log_likelihood, abs=1e-4)
    assert values[-1] == pytest.approx(case.value(case.edges), rel=1e-11)
    assert (np.diff(values) > -1e-9).all()


def test_columns_that_become_small_are_scaled_up():
    case = Case("JC", n_taxa=400, n_sites=20, mean_length=0.5)
    value = case.messages.fill(*case.edges, case.order)
    assert value == pytest.approx(case.likelihood.log_likelihood(), rel=1e-11)
    assert case.messages._messages.powers.min() < -300


def test_moves_in_each_others_way_are_not_done_together():
    case = Case(next(iter(MODELS)))
    back, lengths = case.edges
    found = case.messages.regrafts(back, lengths, case.order, np.arange(7, len(back)), 4)
    moves = [
        Regraft(int(s), int(out), (0.1, 0.1, 0.1), float(gain))
        for s, out, gain in zip(found.pruned, found.out, found.scores)
    ]
    edges = case.edges.copy()
    done = regraft_all(edges, moves)
    assert done[0] == max(moves, key=lambda m: m.gain) and len(done) < 3
    assert len(preorder(edges.back)) == 11
    assert regraft_all(case.edges.copy(), [moves[0]._replace(out=int(back[moves[0].pruned]))]) == []
