from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.target import Target
from phloem.errors import InputError
from phloem.inference.ml.optimize import SHORTEST, fit_parameterisation, optimize
from phloem.inference.ml.starts import restarts
from phloem.io.trees import parse_trees
from phloem.likelihood.term import LikelihoodTerm
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.site_rates import MOST_ALPHA

SEQUENCES = {
    "a": "ACGTACGTAAGGTTCCAAGTGA",
    "b": "ACGTACGAAAGGTTCCAACTGA",
    "c": "ACTTACGAAAGCTTCCATCTAG",
    "d": "GCTTACCAAAGCTTCGATCTAG",
    "e": "GCTTATCAACGCTACGTTCTAG",
}


def likelihood(model: str, sequences=SEQUENCES, newick="((a:0.1,b:0.1):0.1,c:0.1,(d:0.1,e:0.1):0.1);"):
    alignment = alignment_from_sequences(sequences, alphabet("dna"))
    return TreeLikelihood(alignment, parse_trees(newick)[0], model, engine="reference")


def target_of(l) -> Target:
    p = fit_parameterisation(l)
    return Target(p.free_space, (LikelihoodTerm(l, p),))


@pytest.mark.parametrize("model", ["GTR+FO+I+G4", "HKY+F+R3", "TVM+FO+I+R2", "UNREST"])
def test_derivative_in_free_coordinates(model):
    newick = "((a:0.1,b:0.1):0.1,(c:0.1,(d:0.1,e:0.1):0.1):0.05);"
    target = target_of(likelihood(model, newick=newick))
    space = target.space
    x = space.to_coordinates(space.start())
    rng = np.random.default_rng(2)
    x = np.clip(x + 0.2 * rng.normal(size=len(x)), *space.coordinate_bounds().T)
    found = target.at(x, jacobian=False)[1]
    step = 1e-6 * np.eye(len(x))
    numeric = [(target.at(x + h, False)[0] - target.at(x - h, False)[0]) / 2e-6 for h in step]
    np.testing.assert_allclose(found, numeric, rtol=1e-4, atol=1e-5)
    natural = target.gradient(space.from_coordinates(x))[1]
    elsewhere = space.pull_back(space.from_coordinates(x + 0.1), natural)  # the slopes of another point
    assert np.abs(elsewhere - numeric).max() > 1e-2


def test_a_fit_begins_where_the_likelihood_stands():
    l = likelihood("GTR+FO+I+R3")
    p = fit_parameterisation(l)
    values = p.space.unpack(p.space.from_coordinates(p.space.to_coordinates(p.space.start())))
    np.testing.assert_allclose(p.effective_lengths(values, 0), l.branch_lengths)
    read = p.model_values(values, 0)
    for name, value in l.model.start_values().items():
        np.testing.assert_allclose(read[name], value, rtol=1e-9)


def test_two_taxa_under_jukes_cantor_have_a_known_optimum():
    """Jukes and Cantor 1969: the distance is -3/4 log(1 - 4p/3) and both branches share it."""
    sequences = {"a": "A" * 80 + "C" * 20, "b": "A" * 80 + "G" * 20, "c": "N" * 100}
    l = likelihood("JC", sequences, "(a:0.3,b:0.3,c:0.1);")
    found = dict(zip(l.branch_names, optimize(l).branch_lengths))
    assert found["a"] + found["b"] == pytest.approx(-0.75 * np.log(1 - 0.8 / 3), rel=1e-4)


def test_identical_sequences_have_no_length():
    same = dict.fromkeys("abcde", "ACGTACGTAAGGTTCCAAGTGA")
    result = optimize(likelihood("JC", same))
    assert result.converged and result.branch_lengths.max() < 1e-4
    assert result.branch_lengths.min() >= SHORTEST * (1 - 1e-9)
    assert result.log_likelihood == pytest.approx(22 * np.log(0.25), abs=1e-3)
    assert result.largest_derivative < 1e-2  # every length is at its bound, and log L falls from there


def test_a_shape_at_its_bound_is_the_bound():
    """As many changes as there would be without rate variation: every site has one, at most."""
    rows = {"a": "A" * 40, "b": "A" * 30 + "C" * 10, "c": "A" * 20 + "C" * 10 + "A" * 10, "d": "AC" * 20}
    l = likelihood("JC+G4", rows, "(a:0.1,b:0.1,(c:0.1,d:0.1):0.1);")
    result = optimize(l)
    assert result.parameters["alpha"] == MOST_ALPHA and result.converged
    assert result.model_text == "JC+G4{1000.0}"
    one = optimize(likelihood("JC", rows, "(a:0.1,b:0.1,(c:0.1,d:0.1):0.1);"))
    assert 0 < one.log_likelihood - result.log_likelihood < 0.01
    l.set(parameters={"alpha": 100.0})
    assert one.log_likelihood - l.log_likelihood() > 0.02  # a tenth of the bound would be seen


def test_free_rates_come_out_sorted_with_mean_one_and_at_least_as_good_as_one_rate():
    result = optimize(likelihood("HKY+F+R2"))
    weights, rates = result.parameters["weights"], result.parameters["rates"]
    assert weights @ rates == pytest.approx(1.0) and (np.diff(rates) >= 0).all()
    assert result.log_likelihood > optimize(likelihood("HKY+F")).log_likelihood - 1e-4
    assert result.n_free == 7 + 1 + 3 + 1 + 1


def test_only_parameters_without_a_value_move():
    result = optimize(likelihood("HKY{3.5}+F+G4{0.7}"))
    assert result.parameters["kappa"] == 3.5 and result.parameters["alpha"] == 0.7
    assert result.n_free == 7 + 3  # +F counts three frequencies in the data
    assert result.aic == 20 - 2 * result.log_likelihood
    assert result.aicc == pytest.approx(result.aic + 20 * 11 / (22 - 11))
    assert result.bic == pytest.approx(10 * np.log(22) - 2 * result.log_likelihood)


def test_two_basal_branches_count_once_where_the_root_is_free():
    rooted = "((a:0.1,b:0.1):0.1,(c:0.1,(d:0.1,e:0.1):0.1):0.05);"
    free, fixed = optimize(likelihood("JC", newick=rooted)), optimize(likelihood("UNREST", newick=rooted))
    assert free.n_free == 7 and fixed.n_free == 8 + 11


def test_restarts_where_there_are_several_peaks():
    names = [len(restarts(likelihood(m).model.free)) for m in ("JC", "HKY+F+G4", "HKY+F+I+G4", "HKY+F+R3")]
    assert names == [1, 2, 3, 4]


@pytest.mark.parametrize("length", [0.0, 1e-6, 70.0, 3e6])
def test_lengths_in_years_or_none_at_all_lead_to_the_same_optimum(length):
    newick = "((a:0.1,b:0.1):0.1,c:0.1,(d:0.1,e:0.1):0.1);"
    expected = optimize(likelihood("HKY+FQ", newick=newick)).log_likelihood
    found = optimize(likelihood("HKY+FQ", newick=newick.replace("0.1", repr(length))))
    assert found.log_likelihood == pytest.approx(expected, abs=1e-4)
    assert found.branch_lengths.max() < 5


@pytest.mark.parametrize("tolerance", [0.0, -1.0, float("nan")])
def test_the_tolerance_is_a_positive_number(tolerance):
    with pytest.raises(InputError, match="tolerance must be a positive number"):
        optimize(likelihood("JC"), tolerance)
