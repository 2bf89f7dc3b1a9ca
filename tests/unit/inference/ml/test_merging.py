"""Merging of parts: steps against all pairs worked out anew, fits with lengths held against the reference."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences, side_by_side
from phloem.data.alphabet import alphabet
from phloem.errors import InputError
from phloem.inference.ml.criteria import criteria
from phloem.inference.ml.merging import Fitted, Merger, MergeSettings, fit_group
from phloem.io.newick import parse_newick
from phloem.likelihood.simulation import simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.grammar import parse_model

SITES = [100, 300, 120, 250, 90, 60]
RATES = np.array([0.1, 0.11, 1.0, 1.2, 30.0, 0.1])
KINDS = ["dna"] * 5 + ["protein"]
N_LENGTHS = 17
GREEDY = MergeSettings()


def made_up(members):
    """Parts of unlike rates lose by being merged, in proportion to their sites."""
    sites, rates = np.array([SITES[i] for i in members]), np.log(RATES[list(members)])
    mean = sites @ rates / sites.sum()
    loss = sites @ (rates - mean) ** 2
    return Fitted(-float(10 * sites.sum() + 0.3 * loss), 9, float(np.exp(mean)), {})


def merger(lengths="proportional", settings=GREEDY, fit=made_up):
    return Merger(KINDS, fit, lengths, N_LENGTHS, sum(SITES), "bic", settings)


def value(groups, lengths):
    fits = [made_up(g) for g in groups]
    extra = {"linked": N_LENGTHS, "proportional": N_LENGTHS - 1, "unlinked": 0}[lengths]
    n_free = sum(f.n_free for f in fits) + extra
    return criteria(sum(f.log_likelihood for f in fits), n_free, sum(SITES)).bic


@pytest.mark.parametrize("lengths", ["linked", "proportional", "unlinked"])
def test_greedy_steps_are_the_best_of_all_pairs(lengths):
    found = merger(lengths).run()
    groups = [(i,) for i in range(6)]
    for k, step in enumerate(found.steps):
        assert step.value == pytest.approx(value(groups, lengths)) and step.groups == len(groups)
        rivals = {}
        for a, b in combinations(groups, 2):
            if (5,) not in (a, b):  # the protein
                rivals[a, b] = value([g for g in groups if g not in (a, b)] + [a + b], lengths)
        best = min(rivals, key=rivals.get)
        if k + 1 == len(found.steps):
            assert rivals[best] >= step.value and found.refused.value == pytest.approx(rivals[best])
        else:
            assert found.steps[k + 1].joined == best and rivals[best] < step.value
            groups = sorted([g for g in groups if g not in best] + [tuple(sorted(sum(best, ())))])
    assert found.groups == ((0, 1), (2, 3), (4,), (5,)) == tuple(groups)
    assert [step.tried for step in found.steps] == [0, 10, 3]  # each pair is fitted once


def test_what_is_told_is_of_the_scheme_so_far():
    """The value of all groups, which falls with every merging; none before all parts are fitted."""
    told = []

    def told_of(members):
        told.append(None if one.so_far is None else one.so_far.log_likelihood)
        return made_up(members)

    one = merger(fit=told_of)
    steps = one.run().steps
    assert told[:6] == [None] * 6
    expected = [step.log_likelihood for step in steps]
    assert list(dict.fromkeys(told[6:])) == expected and expected == sorted(set(expected), reverse=True)


def test_a_merging_that_does_not_pay_is_not_done():
    costly = merger(
        fit=lambda g: made_up(g)._replace(log_likelihood=made_up(g).log_likelihood - 40 * len(g) ** 2)
    )
    assert costly.run().groups == tuple((i,) for i in range(6))
    alone = Merger(["a", "b"], made_up, "linked", 3, 400, "aic", MergeSettings()).run()
    assert alone.groups == ((0,), (1,)) and alone.refused is None


def test_relaxed_clustering_tries_the_most_alike():
    every, few = (
        merger(settings=MergeSettings("relaxed", 100)).run(),
        merger(settings=MergeSettings("relaxed", 10)).run(),
    )
    assert every.groups == few.groups == merger().run().groups
    assert [step.tried for step in every.steps] == [0, 10, 3] and [step.tried for step in few.steps] == [
        0,
        1,
        1,
    ]
    assert few.steps[1].joined == ((0,), (1,))
    for percent in (0, -3, 100.5, float("nan")):
        with pytest.raises(InputError, match="percent"):
            MergeSettings("relaxed", percent)


@pytest.fixture(scope="module")
def data():
    (tree,) = parse_newick("(a:.1,b:.2,((c:.1,d:.3):.1,(e:.2,f:.1):.05):.1);")
    return tree, simulate_alignment(tree, parse_model("HKY{3}+FQ", datatype="dna"), 400, seed=3)


@pytest.mark.parametrize("lengths", ["linked", "proportional"])
def test_lengths_that_are_held_keep_their_proportions(data, lengths):
    tree, alignment = data
    tree = replace(tree, lengths=tree.lengths * 2)
    likelihood = TreeLikelihood(alignment, tree, "HKY+F", "cpu", threads=1)
    before = likelihood.branch_lengths.ravel().copy()
    found = fit_group(likelihood, [{}, {"kappa": 1.0}], lengths)
    rate = found.tree_length / before.sum()
    assert rate == pytest.approx(0.5, rel=0.2) if lengths == "proportional" else rate == 1.0
    assert found.n_free == 1 + 3 + (lengths == "proportional")

    def by_reference(times=1.0, kappa=1.0):
        other = TreeLikelihood(
            alignment, replace(tree, lengths=tree.lengths * rate * times), "HKY+F", "reference"
        )
        other.set(parameters={"kappa": float(found.parameters["kappa"]) * kappa})
        return other.log_likelihood()

    assert found.log_likelihood == pytest.approx(by_reference(), rel=1e-10)
    assert max(by_reference(kappa=0.97), by_reference(kappa=1.03)) < found.log_likelihood - 1e-3
    slope = (by_reference(1.01) - by_reference(0.99)) / 0.02
    assert abs(slope) < 0.5 if lengths == "proportional" else abs(slope) > 20


def test_lengths_of_its_own_are_fitted(data):
    tree, alignment = data
    likelihood = TreeLikelihood(alignment, tree, "HKY+F", "cpu", threads=1)
    own = fit_group(likelihood, [{}], "unlinked")
    held = fit_group(TreeLikelihood(alignment, tree, "HKY+F", "cpu", threads=1), [{}], "proportional")
    assert own.n_free == 9 + 4 and own.log_likelihood > held.log_likelihood + 0.1


def test_columns_side_by_side_mean_what_they_did():
    dna = alphabet("dna")
    one = alignment_from_sequences({"a": "ACRN", "b": "YGT-"}, dna)
    two = alignment_from_sequences({"a": "WKAC", "b": "RRSA"}, dna)
    both = side_by_side([one, two])
    whole = alignment_from_sequences({"a": "ACRNWKAC", "b": "YGT-RRSA"}, dna)
    np.testing.assert_array_equal(both.state_sets[both.codes], whole.state_sets[whole.codes])
    assert not np.array_equal(both.state_sets[both.codes], whole.state_sets[whole.codes][:, ::-1])
    with pytest.raises(InputError, match="unlike"):
        side_by_side([one, alignment_from_sequences({"a": "AC", "c": "YG"}, dna)])
