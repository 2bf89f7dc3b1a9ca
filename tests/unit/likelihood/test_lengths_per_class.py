"""Branch lengths per class (+H), from the user's side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.errors import InputError, ModelError
from phloem.inference.ml.optimize import optimize
from phloem.io.alignment import read_alignment
from phloem.io.trees import parse_trees
from phloem.likelihood.simulation import simulate_alignment
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.grammar import parse_model

NEWICK = "(a:0.1,b:0.2,(c:0.15,d:0.3):0.05);"
TREE = parse_trees(NEWICK)[0]
FASTA = ">a\nACGTACGTAAGGTTACGA\n>b\nACGTACGAAAGGTCACGT\n>c\nACTTACGAAAGCTAACTA\n>d\nGCTTACCAAAGCCATCTA\n"


@pytest.fixture(scope="module")
def alignment(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "a.fasta"
    path.write_text(FASTA)
    return read_alignment(path)


@pytest.fixture
def likelihood(alignment):
    return lambda model, engine="reference": TreeLikelihood(alignment, TREE, model, engine=engine, threads=1)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_equal_lengths_are_the_model_without_classes(likelihood, engine):
    plain, classes = likelihood("HKY{3}+FQ", engine), likelihood("HKY{3}+FQ+H3{0.2,0.3,0.5}", engine)
    assert classes.log_likelihood() == pytest.approx(plain.log_likelihood(), rel=1e-12)
    assert classes.branch_lengths.shape == (3, 5) and len(classes.trees) == 3
    gradient, wanted = classes.gradient(), plain.gradient()
    shares = np.array([0.2, 0.3, 0.5])[:, None] * wanted.branch_lengths
    np.testing.assert_allclose(gradient.branch_lengths, shares, rtol=1e-9)
    np.testing.assert_allclose(gradient.branch_rates, wanted.branch_rates, rtol=1e-9)
    assert gradient.root_frequencies is not None


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_a_class_is_the_tree_with_its_lengths(likelihood, engine):
    """log L_site = log Σ_k w_k L_site(lengths of class k)."""
    lengths = np.array([[0.1, 0.2, 0.15, 0.3, 0.05], [0.5, 0.01, 0.7, 0.02, 0.4]])
    both = likelihood("HKY{3}+FQ+H2{0.3,0.7}", engine)
    both.set(branch_lengths=lengths)
    one = likelihood("HKY{3}+FQ", engine)
    mixed = np.zeros(18)
    for weight, own in zip((0.3, 0.7), lengths):
        one.set(branch_lengths=own)
        mixed += weight * np.exp(one.site_log_likelihoods())
    np.testing.assert_allclose(both.site_log_likelihoods(), np.log(mixed), rtol=1e-12)
    both.set(branch_lengths=lengths[::-1])
    assert np.abs(both.site_log_likelihoods() - np.log(mixed)).max() > 1e-3  # classes are told apart


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_derivatives_and_proposals(likelihood, engine):
    both, h = likelihood("K80{3}*H2{0.3,0.7}+I{0.1}", engine), 1e-6
    start = np.array([[0.1, 0.2, 0.15, 0.3, 0.05], [0.5, 0.01, 0.7, 0.02, 0.4]])
    both.set(branch_lengths=start, branch_rates={"a": 2.0})
    found = both.gradient()
    by_site = both.site_branch_derivatives()
    np.testing.assert_allclose(by_site.sum(-1), found.branch_lengths, rtol=1e-9, atol=1e-9)
    for k, b in np.ndindex(2, 5):
        step = np.zeros_like(start)
        step[k, b] = h
        ends = []
        for sign in (1, -1):
            both.set(branch_lengths=start + sign * step)
            ends.append(both.gradient())
        slope = (ends[0].log_likelihood - ends[1].log_likelihood) / (2 * h)
        assert found.branch_lengths[k, b] == pytest.approx(slope, rel=1e-5, abs=1e-5)
        both.set(branch_lengths=start)
        curve = (ends[0].branch_lengths[k, b] - ends[1].branch_lengths[k, b]) / (2 * h)
        assert both.second_derivatives()[k, b] == pytest.approx(curve, rel=1e-4, abs=1e-4)
    before = both.log_likelihood()
    value = both.propose(branch_lengths={"a": [0.3, 0.4]})
    both.accept()
    assert value != before and value == pytest.approx(both.log_likelihood(), rel=1e-12)
    assert both.branch_lengths[:, both.branch_names.index("a")].tolist() == [0.3, 0.4]


def test_shapes(likelihood):
    both = likelihood("K80{3}+H2{0.3,0.7}")
    both.set(branch_lengths=[0.1, 0.2, 0.3, 0.4, 0.5])
    assert both.branch_lengths.tolist() == [[0.1, 0.2, 0.3, 0.4, 0.5]] * 2
    with pytest.raises(InputError, match="in 2 sets"):
        both.set(branch_lengths=np.ones((3, 5)))
    with pytest.raises(InputError, match="branch 'b' is -1"):
        both.set(branch_lengths={"b": [1.0, -1.0]})
    both.set(branch_lengths={"a": [0.2, 1.2]})
    assert both.tree.lengths[0] == pytest.approx(0.3 * 0.2 + 0.7 * 1.2)  # the mean over sites
    assert [tree.lengths[0] for tree in both.trees] == [0.2, 1.2]


def test_a_fit_finds_classes_that_were_mixed():
    """Half of the sites evolve on one set of lengths and half on another; one class cannot say that."""
    other = parse_trees("(a:0.6,b:0.02,(c:0.5,d:0.02):0.05);")[0]
    model = parse_model("JC", datatype="dna")
    parts = [simulate_alignment(tree, model, 600, seed) for seed, tree in enumerate((TREE, other), 1)]
    data = replace(parts[0], codes=np.hstack([part.codes for part in parts]))
    one = optimize(TreeLikelihood(data, TREE, "JC", engine="cpu", threads=1))
    two = optimize(TreeLikelihood(data, TREE, "JC+H2", engine="cpu", threads=1))
    assert two.converged and two.log_likelihood > one.log_likelihood + 5
    assert two.n_free == one.n_free + 5 + 1
    assert two.branch_lengths.shape == (2, 5)


def test_one_tree_is_not_enough_to_simulate():
    with pytest.raises(ModelError, match="2 sets of branch lengths"):
        simulate_alignment(TREE, parse_model("JC+H2{0.5,0.5}", datatype="dna"), 10)
