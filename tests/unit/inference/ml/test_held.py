"""A tree that is held: its fit and supports beside those of likelihoods, points that stay points, lengths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from phloem.density.parts import Linkage
from phloem.errors import InputError
from phloem.inference.ml.branch_tests import (
    ALRT,
    SupportSettings,
    local_bootstrap,
    parametric_alrt,
)
from phloem.inference.ml.held import HeldData, fit_held, held_tree
from phloem.inference.ml.held_lengths import _AtLengths
from phloem.inference.ml.optimize import optimize
from phloem.inference.ml.searched import OneAlignment, SearchedPart
from phloem.inference.ml.tree_search import SearchSettings, search_tree
from phloem.io.trees import parse_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.simulation import simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.grammar import parse_model
from phloem.tree.random import uniform_unrooted

NONE = SupportSettings()
STAR = "((t1:1,t2:1,t3:1,t4:1)0.9:0.1,(t5:.1,t6:.1):.2,(t7:.1,t8:.1):.1);"  # a point of five branches


@pytest.fixture(scope="module")
def simulated():
    tree = uniform_unrooted(8, np.random.default_rng(2), 0.15)
    return simulate_alignment(tree, parse_model("HKY{3}+FQ", datatype="dna"), 300, seed=3)


def of(alignment, tree, model="HKY+F+G4", lengths="fitted"):
    tree = parse_trees(tree)[0] if isinstance(tree, str) else tree
    part = SearchedPart("", alignment, model_for_alignment(model, alignment))
    return HeldData(held_tree(tree, alignment.taxa, "t.nwk", lengths), [part], None, threads=1)


def test_a_search_s_tree_has_its_numbers_and_supports_when_it_is_held(simulated):
    model, wanted = (
        model_for_alignment("HKY+F+G4", simulated),
        SupportSettings(alrt=500, abayes=True, lbp=500),
    )
    settings = SearchSettings(patience=1, threads=1)
    searched = search_tree(simulated, model, settings=settings, supports=wanted)
    plain = replace(searched.optimum.tree, lengths=np.full(searched.optimum.tree.n_nodes, np.nan))
    data = OneAlignment(simulated, model)
    held = fit_held(of(simulated, plain), data, wanted, settings.seed)
    assert held.optimum.log_likelihood == pytest.approx(searched.optimum.log_likelihood, abs=1e-3)
    assert held.optimum.n_free == searched.optimum.n_free and held.starts == () and held.tries == 0
    for name, shares in searched.supports.items():
        assert shares.keys() == held.supports[name].keys()
        assert [held.supports[name][s] for s in shares] == pytest.approx(list(shares.values()), abs=0.01)


def test_a_multifurcation_stays_a_point(simulated):
    held = of(simulated, STAR)
    assert held.held.multifurcations == 1
    found = fit_held(held, None, NONE, 1)
    likelihood = TreeLikelihood(
        simulated, held.held.tree, held.parts[0].model, "cpu", threads=1, multifurcations=True
    )
    assert found.optimum.log_likelihood == pytest.approx(optimize(likelihood).log_likelihood, abs=1e-4)
    assert found.optimum.tree.n_nodes == held.held.tree.n_nodes and found.optimum.n_free == 11 + 4 + 1
    drawn_out = "((t1:1,(t2:1,(t3:1,t4:1):0):0):0.1,(t5:.1,t6:.1):.2,(t7:.1,t8:.1):.1);"  # planted: resolved
    better = fit_held(of(simulated, drawn_out), None, NONE, 1).optimum
    assert better.log_likelihood > found.optimum.log_likelihood + 0.1 and better.n_free == 18


def test_only_branches_between_nodes_of_three_branches_are_supported(simulated):
    held = of(simulated, STAR)
    data = OneAlignment(simulated, held.parts[0].model)
    shares = fit_held(held, data, SupportSettings(alrt=100, parametric_alrt=True), 1).supports[ALRT]
    assert len(shares) == 2 and shares.keys() == held.held.resolved_branches()
    whole = of(simulated, uniform_unrooted(8, np.random.default_rng(4), 0.1))
    assert len(whole.held.resolved_branches()) == 5


def test_a_root_is_left_out_and_labels_do_not_come_along(simulated):
    rooted = "(((t1:1,t2:1)77:1,(t3:1,t4:1)88:1)99:1,((t5:.1,t6:.1)1:.2,(t7:.1,t8:.1)2:.1)99:1);"
    held = of(simulated, rooted).held
    assert held.rooted and not held.tree.rooted and held.tree.n_nodes == 14 and held.tree.labels is None


@pytest.mark.parametrize("lengths", ["given", "scaled"])
def test_lengths_stay_as_they_are_or_in_proportion(simulated, lengths):
    free = fit_held(of(simulated, STAR), None, NONE, 1).optimum
    times = replace(free.tree, lengths=free.tree.lengths * (3.0 if lengths == "scaled" else 1.0))
    found = fit_held(of(simulated, times, lengths=lengths), None, NONE, 1).optimum
    assert found.log_likelihood == pytest.approx(free.log_likelihood, abs=1e-3)
    assert found.n_free == 3 + 2 + (lengths == "scaled")  # frequencies, kappa and alpha
    if lengths == "given":
        assert np.array_equal(found.tree.lengths, free.tree.lengths)
    else:
        ratio = found.tree.lengths[:-1] / free.tree.lengths[:-1]
        assert ratio == pytest.approx(ratio[0], rel=1e-12) and ratio[0] == pytest.approx(1, rel=1e-3)


def test_nothing_is_fitted_where_nothing_is_free(simulated):
    held = of(simulated, STAR, "JC", "given")
    found = fit_held(held, None, NONE, 1).optimum
    model, tree = held.parts[0].model, held.held.tree
    value = TreeLikelihood(simulated, tree, model, multifurcations=True).log_likelihood()
    assert found.log_likelihood == pytest.approx(value, abs=1e-9) and found.n_free == 0
    assert found.converged and found.bic == pytest.approx(-2 * value, abs=1e-8)


def test_slopes_of_the_factor_are_those_of_differences(simulated):
    halves = replace(simulated, codes=np.ascontiguousarray(simulated.codes[:, ::2]))
    named = {"a": simulated, "b": halves}
    parts = [SearchedPart(k, one, model_for_alignment("HKY+F+G4", one)) for k, one in named.items()]
    held = held_tree(parse_trees(STAR)[0], simulated.taxa, "t.nwk", "scaled")
    likelihood = HeldData(held, parts, Linkage("proportional"), threads=1).likelihood()
    search = _AtLengths(likelihood, True, None, 1e-4)
    x = np.array([0.3, -0.2, 0.5, 0.1, -0.3, 0.4])
    assert len(x) == search._space.n_coordinates  # kappa and alpha of both, a rate, the factor
    slope = search._objective(x)[1]
    for k in range(len(x)):
        step = np.eye(len(x))[k] * 1e-5
        by_difference = (search._objective(x + step)[0] - search._objective(x - step)[0]) / 2e-5
        assert slope[k] == pytest.approx(by_difference, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize(
    ("tree", "lengths", "said"),
    [
        ("(t1,t2,(t3,t4));", "fitted", "t5"),
        ("((t1,t2),(t3,t4),((t5,t6),(t7,t8)));", "given", "13 of 13 branches have none"),
        ("((t1:0,t2:0):0,(t3:0,t4:0):0,((t5:0,t6:0):0,(t7:0,t8:0):0):0);", "scaled", "all lengths are 0"),
    ],
)
def test_trees_that_cannot_be_held_are_refused(simulated, tree, lengths, said):
    with pytest.raises(InputError, match=said):
        held_tree(parse_trees(tree)[0], simulated.taxa, "t.nwk", lengths)


def test_parametric_alrt_is_the_largest_of_three_of_half_chi_squared():
    ahead = np.array([0.0, 0.1, 1.0, 2.7, 10.0])
    values = np.stack([np.full(5, -50.0), -50 - ahead, -90.0 - ahead], 1)
    wanted = (0.5 + 0.5 * chi2.cdf(2 * ahead, 1)) ** 3
    assert parametric_alrt(values) == pytest.approx(wanted, abs=1e-12)
    assert (parametric_alrt(values[1:, ::-1]) == 0).all()  # another resolution is ahead
    assert parametric_alrt(np.array([[-1e4 - 1e-9, -1e4, -1e4]])) == pytest.approx(1 / 8)  # rounding
    drawn = np.random.default_rng(3).normal(size=(40_000, 3))
    largest = np.maximum(drawn, 0).max(1) ** 2  # twice a lead under no branch
    shares = [(largest <= 2 * a).mean() for a in ahead]
    assert parametric_alrt(values) == pytest.approx(shares, abs=0.01)
    bound = 1 - 3 * 0.5 * chi2.sf(2 * ahead, 1)  # three P-values added: other numbers
    assert np.abs(bound - shares).max() > 0.05


def test_local_bootstrap_is_the_share_of_replicates_that_are_ahead():
    rng = np.random.default_rng(1)
    sites, counts = rng.normal(-3, 1, (4, 3, 7)), rng.poisson(2.0, (50, 7)).astype(float)
    wanted = [np.mean([max(range(3), key=lambda k: n @ one[k]) == 0 for n in counts]) for one in sites]
    assert local_bootstrap(sites, counts) == pytest.approx(wanted)
