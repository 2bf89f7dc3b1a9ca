from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.clustering.starting_tree import starting_tree
from phloem.data.alignment import Alignment
from phloem.data.alphabet import Alphabet
from phloem.errors import InputError, ModelError, NumericalError
from phloem.io.trees import parse_trees
from phloem.likelihood.tree_likelihood import TreeLikelihood

SEQUENCES = {
    "a": "ACGTACGTAAGGTTCCAAGT-A",
    "b": "ACGTACGAAAGGTTCCAACTRA",
    "c": "ACTTACGAAAGCTTCCATCTAG",
    "d": "GCTTACCAAAGCTTCGATCTAG",
    "e": "GCTTATCAACGCTACGTTCTNG",
}
TREE = "((a:0.1,b:0.12):0.05,c:0.2,(d:0.08,e:0.25):0.11);"
MODEL = "GTR{1.2,4.0,0.7,0.9,5.0}+F{0.35,0.30,0.10,0.25}+I{0.15}+G4{0.8}"


def dna(sequences=SEQUENCES) -> Alignment:
    sets = np.vstack([np.eye(4), np.ones(4), [1, 0, 1, 0]]).astype(bool)
    code = {**{c: i for i, c in enumerate("ACGT")}, "-": 4, "N": 4, "R": 5}
    codes = np.array([[code[c] for c in s] for s in sequences.values()], np.uint8)
    return Alignment(tuple(sequences), Alphabet("dna", tuple("ACGT")), codes, sets)


def tree(newick: str = TREE):
    return parse_trees(newick)[0]


def likelihood(model: str = MODEL, newick: str = TREE, **options) -> TreeLikelihood:
    return TreeLikelihood(dna(), tree(newick), model, **{"engine": "reference"} | options)


def test_sites_sum_to_the_value_and_stand_by_site():
    l = likelihood()
    sites = l.site_log_likelihoods()
    assert sites.shape == (22,)
    assert sites.sum() == pytest.approx(l.log_likelihood(), rel=1e-13)
    assert sites[0] != sites[1] and sites[4] == pytest.approx(sites[8])  # both AAAAA


def test_taxa_are_matched_by_name():
    other_order = "(c:0.2,(e:0.25,d:0.08):0.11,(b:0.12,a:0.1):0.05);"
    one, other = likelihood(), likelihood(newick=other_order)
    assert other.log_likelihood() == pytest.approx(one.log_likelihood(), rel=1e-12)
    mine = dict(zip(one.branch_names, one.gradient().branch_lengths))
    theirs = dict(zip(other.branch_names, other.gradient().branch_lengths))
    assert set(mine) == set(theirs) == {*"abcde", "mrca(a,b)", "mrca(d,e)"}
    for name in mine:
        assert mine[name] == pytest.approx(theirs[name], rel=1e-9)
    swapped = TREE.replace("a:", "x:").replace("c:", "a:").replace("x:", "c:")
    assert abs(likelihood(newick=swapped).log_likelihood() - one.log_likelihood()) > 0.1


def test_gradient_of_lengths_rates_and_parameters_against_differences():
    l = likelihood(branch_rates={"a": 1.7, "mrca(d,e)": 0.4})
    g, h = l.gradient(), 1e-6
    for what, found in (("branch_lengths", g.branch_lengths), ("branch_rates", g.branch_rates)):
        start = getattr(l, what)
        for x, name in enumerate(l.branch_names):
            values = []
            for sign in (1, -1):
                l.set(**{what: {name: start[x] + sign * h}})
                values.append(l.log_likelihood())
            l.set(**{what: start})
            assert found[x] == pytest.approx((values[0] - values[1]) / (2 * h), rel=1e-5, abs=1e-5)
    for name in ("rate_AC", "rate_CT", "alpha", "p_invariable"):
        values, start = [], l.parameters[name]
        for sign in (1, -1):
            l.set(parameters={name: start + sign * h})
            values.append(l.log_likelihood())
        l.set(parameters={name: start})
        assert g.parameters[name] == pytest.approx((values[0] - values[1]) / (2 * h), rel=1e-5, abs=1e-6)
    z = np.log(l.parameters["frequencies"])
    values = []
    for sign in (1, -1):
        x = np.exp(z + sign * h * np.array([0, 1, 0, 0]))
        l.set(parameters={"frequencies": x / x.sum()})
        values.append(l.log_likelihood())
    assert g.parameters["frequency_C"] == pytest.approx((values[0] - values[1]) / (2 * h), rel=1e-5)


def test_site_derivatives_and_curvature():
    l = likelihood(branch_rates={"a": 1.7})
    by_site = l.site_branch_derivatives()
    assert by_site.shape == (7, 22)
    np.testing.assert_allclose(by_site.sum(1), l.gradient().branch_lengths, rtol=1e-9, atol=1e-9)
    curvature, h = l.second_derivatives(), 1e-5
    for x, start in enumerate(l.branch_lengths):
        slopes = []
        for sign in (1, -1):
            l.set(branch_lengths={l.branch_names[x]: start + sign * h})
            slopes.append(l.gradient().branch_lengths[x])
        l.set(branch_lengths={l.branch_names[x]: start})
        assert curvature[x] == pytest.approx((slopes[0] - slopes[1]) / (2 * h), rel=1e-5)


def test_propose_accept_reject():
    l = likelihood()
    start = l.log_likelihood()
    changed = l.propose(branch_lengths={"a": 0.4}, parameters={"alpha": 0.3})
    l.reject()
    assert l.log_likelihood() == start and l.parameters["alpha"] == 0.8
    assert l.propose(branch_lengths={"a": 0.4}, parameters={"alpha": 0.3}) == changed != start
    l.accept()
    assert l.log_likelihood() == pytest.approx(changed, rel=1e-13)
    assert dict(zip(l.branch_names, l.branch_lengths))["a"] == 0.4
    fresh = likelihood(MODEL.replace("0.8", "0.3"), TREE.replace("a:0.1", "a:0.4"))
    assert fresh.log_likelihood() == pytest.approx(changed, rel=1e-12)
    with pytest.raises(InputError, match="no proposal"):
        l.accept()
    l.propose(branch_lengths={"a": 0.1})
    with pytest.raises(InputError, match="pending"):
        l.log_likelihood()


def test_branches_alone_and_a_subtree():
    l = likelihood()
    alone = l.gradient(parameters=False)
    np.testing.assert_allclose(alone.branch_lengths, l.gradient().branch_lengths, rtol=1e-12)
    assert alone.parameters == {} and alone.root_frequencies is None
    assert set(l.subtree("mrca(d,e)")) == {"d", "e", "mrca(d,e)"} and l.subtree("a") == ("a",)


def test_covarion_hides_a_switch_behind_every_state():
    """Eight states, of which the tips show four."""
    covarion = "JC+COV{switch_on=0.5,switch_off=0.8}"
    l = likelihood(covarion)
    assert l.model.n_states == 8 and l.ancestral_states().shape == (22, 4)
    np.testing.assert_allclose(l.ancestral_states().sum(1), 1.0, rtol=1e-12)
    assert l.site_log_likelihoods().sum() == pytest.approx(l.log_likelihood(), rel=1e-12)
    start, h = l.branch_lengths[0], 1e-6
    up = l.propose(branch_lengths={"a": start + h})
    l.reject()
    down = l.propose(branch_lengths={"a": start - h})
    l.reject()
    assert l.gradient().branch_lengths[0] == pytest.approx((up - down) / (2 * h), rel=1e-5)


def test_propose_another_topology():
    l = likelihood()
    newick = "((a:0.1,c:0.12):0.05,b:0.2,(d:0.08,e:0.25):0.11);"
    value = l.propose(tree=tree(newick))
    assert value == pytest.approx(likelihood(newick=newick).log_likelihood(), rel=1e-12)
    l.accept()
    assert "mrca(a,c)" in l.branch_names and l.log_likelihood() == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_an_impossible_site_is_named_and_the_proposal_undone(engine):
    l = likelihood("JC", engine=engine)
    before = l.log_likelihood()
    with pytest.raises(NumericalError, match="site 1 "):
        l.propose(branch_lengths=np.zeros(7))
    assert l.log_likelihood() == before
    impossible = likelihood("JC", "((a:0,b:0):0,c:0,(d:0,e:0):0);", engine=engine)
    asked = (
        impossible.log_likelihood,
        impossible.gradient,
        impossible.site_log_likelihoods,
        impossible.site_branch_derivatives,
        impossible.second_derivatives,
        impossible.ancestral_states,
    )
    for question in asked:
        with np.errstate(all="ignore"), pytest.raises(NumericalError, match="site 1 "):
            question()


def test_a_parameter_without_a_value_is_an_error_that_names_it():
    with pytest.raises(ModelError, match="alpha"):
        likelihood("HKY{3}+F+G4").log_likelihood()
    l = likelihood("HKY{3}+F+G4")
    l.set(parameters={"alpha": 0.5})
    assert l.log_likelihood() == pytest.approx(likelihood("HKY{3}+F+G4{0.5}").log_likelihood())


@pytest.mark.parametrize(
    "change, message",
    [
        ({"branch_lengths": {"A": 0.1}}, "no branch 'A'"),
        ({"branch_lengths": {"a": -0.1}}, "branch 'a' is -0.1"),
        ({"branch_lengths": [0.1, 0.2]}, "7 branch lengths are needed"),
        ({"parameters": {"omega": 1.0}}, "no parameter 'omega'"),
        ({"parameters": {"frequency_A": 0.5}}, "cannot change alone"),
        ({"parameters": {"alpha": float("nan")}}, "alpha"),
    ],
)
def test_wrong_changes(change, message):
    with pytest.raises(InputError, match=message):
        likelihood().set(**change)


def test_a_tree_of_other_taxa_and_a_missing_length():
    with pytest.raises(InputError, match="'f'"):
        likelihood(newick=TREE.replace("e:", "f:"))
    with pytest.raises(InputError, match="no length"):
        likelihood(newick=TREE.replace(":0.25", ""))


def test_empirical_frequencies_count_states_and_share_ambiguity():
    counted = likelihood("F81+F").parameters["frequencies"]
    plain = np.array([sum(s.count(c) for s in SEQUENCES.values()) for c in "ACGT"], float)
    expected = plain + np.array([1, 0, 1, 0]) * np.array([counted[0], 0, counted[2], 0]) / (
        counted[0] + counted[2]
    )
    np.testing.assert_allclose(counted, expected / expected.sum(), rtol=1e-9)


def test_an_irreversible_model_needs_a_root():
    text = "UNREST{1,2,3,1,2,3,1,2,3,1,2}"
    with pytest.raises(InputError, match="not reversible"):
        likelihood(text).log_likelihood()
    rooted = "((a:0.1,b:0.12):0.05,(c:0.2,(d:0.08,e:0.25):0.11):0.03);"
    l = likelihood(text, rooted)
    assert np.isfinite(l.log_likelihood()) and len(l.gradient().branch_lengths) == 8


def test_ancestral_states_favour_what_the_tips_show():
    l = likelihood()
    posterior = l.ancestral_states("mrca(d,e)")
    assert posterior.shape == (22, 4)
    np.testing.assert_allclose(posterior.sum(1), 1.0, rtol=1e-12)
    assert posterior[0].argmax() == 2  # d and e show G, the others A
    assert l.ancestral_states()[0].argmax() == 0
    with pytest.raises(InputError, match="is a tip"):
        l.ancestral_states("a")


def test_single_precision_is_close():
    single = likelihood(precision="float32", engine="reference").log_likelihood()
    assert single == pytest.approx(likelihood().log_likelihood(), rel=1e-5)


@pytest.mark.parametrize("options", [{"engine": "cpu"}, {"engine": "auto", "threads": 2}])
def test_single_precision_that_does_not_pay_is_refused(options):
    with pytest.raises(InputError, match="float32 is not offered on a CPU for 4 states"):
        likelihood(precision="float32", **options)


@pytest.mark.parametrize("engine", ["auto", "cpu", "reference"])
@pytest.mark.parametrize("threads", [0, 1.5, float("nan")])
def test_what_is_no_number_of_threads_is_refused(engine, threads):
    with pytest.raises(InputError, match=r"--threads is (0|1\.5|nan)"):
        likelihood(engine=engine, threads=threads)


@pytest.mark.parametrize("lengths", [{"a": "long"}, ["0.1"] * 6 + ["x"], {"a": [0.1, 0.2]}])
def test_lengths_that_are_no_numbers_are_refused(lengths):
    with pytest.raises(InputError, match="branch length"):
        likelihood().set(branch_lengths=lengths)


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_rates_of_sites_are_the_means_of_their_categories(engine):
    l = likelihood(engine=engine)
    model = l._accepted.point.site_model
    plain, whole = MODEL.split("+I")[0], np.exp(l.site_log_likelihoods())
    shares = []
    for rate, weight in zip(model.rates, model.weights):
        scaled = tree()
        scaled = replace(scaled, lengths=scaled.lengths * rate)
        alone = TreeLikelihood(dna(), scaled, plain, engine="reference").site_log_likelihoods()
        shares.append(weight * np.exp(alone) / whole)
    found = l.site_categories()
    np.testing.assert_allclose(found[:-1], shares, rtol=1e-9)
    np.testing.assert_allclose(found.sum(0), 1.0, rtol=1e-9)
    np.testing.assert_allclose(l.site_rates(), model.rates @ np.array(shares), rtol=1e-9)
    assert np.exp(l.site_log_likelihoods()) == pytest.approx(whole)  # the model is the whole one again
    assert np.ptp(l.site_rates()) > 0.1


def test_what_is_no_alignment_or_tree_is_refused():
    start = starting_tree(dna())
    with pytest.raises(InputError, match=r"is of type StartingTree.*\n.*starting_tree\(alignment\).tree"):
        TreeLikelihood(dna(), start, MODEL)
    with pytest.raises(InputError, match=r"the alignment is of type str.*\n.*read_alignment"):
        TreeLikelihood("a.fasta", start.tree, MODEL)
