"""Simulated sites have the probabilities that the likelihood gives them, pattern by pattern."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from phloem.data.alignment import Alignment
from phloem.data.alphabet import alphabet
from phloem.errors import InputError, ModelError
from phloem.io.newick import parse_newick
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.likelihood.simulation import evolved_like, simulate_alignment
from phloem.likelihood.state import ModelPoint
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.random import coalescent, scaled_to_height

N_SITES = 500_000
UNROOTED = "(a:0.3,b:0.1,(c:0.05,d:0.4):0.2);"
ROOTED = "((a:0.3,b:0.1):0.2,c:0.5);"
STAR = "[&U](a:0.3,b:0.1,c:0.2,d:0.05);"
TWO = "(a:0.3,b:0.2);"


def tree_of(text: str):
    return parse_newick(text)[0]


def probabilities(text: str, model, states) -> np.ndarray:
    """(S^T,) probability of every site pattern, by the reference engine."""
    tree = tree_of(text)
    codes = np.array(list(product(range(states.n_states), repeat=tree.n_tips)), np.uint8).T
    table = np.vstack([np.eye(states.n_states, dtype=bool), np.ones((1, states.n_states), bool)])
    if model.unseen:
        codes = codes[:, ~never_seen(codes, model.unseen)]
    patterns = Alignment(tree.taxa, states, np.ascontiguousarray(codes), table)
    likelihood = TreeLikelihood(patterns, tree, model, engine="reference", multifurcations=True)
    return np.exp(likelihood.site_log_likelihoods())


def never_seen(codes: np.ndarray, unseen) -> np.ndarray:
    """(P,) whether patterns (T, P) are constant in an unseen state, or, where so said, uninformative."""
    if unseen == "uninformative":
        counts = np.array([(codes == state).sum(axis=0) for state in range(codes.max() + 1)])
        return (counts > 1).sum(axis=0) < 2
    return (codes == codes[0]).all(axis=0) & np.isin(codes[0], unseen)


def p_value(drawn: Alignment, expected: np.ndarray, unseen=()) -> float:
    """Chi-square of pattern counts; patterns expected fewer than five times are counted together. unseen:
    patterns that cannot occur."""
    s, weight = drawn.alphabet.n_states, drawn.alphabet.n_states ** np.arange(drawn.n_taxa)[::-1]
    counts = np.bincount(weight @ drawn.codes.astype(np.int64), minlength=s**drawn.n_taxa)
    if unseen:
        hidden = never_seen(np.arange(len(counts)) // weight[:, None] % s, unseen)
        assert counts[hidden].sum() == 0
        counts = counts[~hidden]
    assert expected.sum() == pytest.approx(1.0, abs=1e-9)
    wanted = expected * drawn.n_sites
    rare = wanted < 5
    found = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(wanted[~rare], wanted[rare].sum())
    if wanted[-1] < 5:
        found, wanted = found[:-1], wanted[:-1] * (found[:-1].sum() / wanted[:-1].sum())
    return float(chisquare(found, wanted).pvalue)


TN93 = "TN93{%s,5}+F{0.4,0.2,0.25,0.15}+I{0.2}+G4{0.6}"
UNREST = "UNREST{1,4,2,3,1,5,2,4,1,0.5,2}+FROOT{0.1,0.2,0.3,0.4}"
MIX = "MIX{HKY{3}+F{0.4,0.2,0.25,0.15}:0.5:0.3,F81+F{0.1,0.2,0.3,0.4}:2:0.7}+I{0.1}"
CASES = {
    "TN93+I+G": (UNROOTED, TN93 % 2, "dna", None),
    "free rates": (UNROOTED, "JC+R{0.3,0.2,0.7,1.5}", "dna", None),
    "multifurcation": (STAR, "MK+FO{0.5,0.3,0.2}", "standard", 3),
    "root frequencies": (ROOTED, UNREST, "dna", None),
    "covarion": (ROOTED, "HKY{3}+F{0.4,0.2,0.25,0.15}+COV{0.5,0.8}+G2{0.5}", "dna", None),
    "hidden classes": (ROOTED, "JC+MM2{0.7,0.4,0.2,0.6,2}", "dna", None),
    "variable characters": (STAR, "MKV", "standard", 3),
    "restriction sites": (STAR, "MK+F{0.3,0.7}+ASC{0}", "binary", None),
    "informative characters": (STAR, "MK+ASC{informative}", "standard", 3),
    "amino acids": (TWO, "LG+G4{0.8}", "protein", None),
    "mixture": (ROOTED, MIX, "dna", None),
    "codon sites": (TWO, "M2a{0.05,4,0.5,0.3,0.2,2}+FQ", "codon", None),
    "codons": (TWO, "GY94{0.3,2}+FQ+I{0.3}", "codon", None),
}


def setting(name: str):
    text, model, kind, n = CASES[name]
    states = alphabet(kind, symbols="0123456789"[:n] if n else None)
    return text, model_for_alphabet(model, states), states


@cache
def drawn_for(name: str) -> Alignment:
    text, model, states = setting(name)
    return simulate_alignment(tree_of(text), model, N_SITES, seed=3, states=states)


@pytest.mark.parametrize("name", CASES)
def test_patterns_have_their_probabilities(name):
    text, model, states = setting(name)
    assert p_value(drawn_for(name), probabilities(text, model, states), model.unseen) > 1e-3


@pytest.mark.parametrize("name", CASES)
def test_wrong_branch_lengths_are_noticed(name):
    text, model, states = setting(name)
    wrong = text.replace("0.3", "0.36")
    assert p_value(drawn_for(name), probabilities(wrong, model, states), model.unseen) < 1e-6


@pytest.mark.parametrize(
    ("true", "wrong"),
    [
        (TN93 % 2, TN93 % 2.3),
        (TN93 % 2, (TN93 % 2).replace("I{0.2}", "I{0.25}")),
        (TN93 % 2, (TN93 % 2).replace("G4{0.6}", "G4{0.8}")),
        (MIX, MIX.replace(":0.5:0.3", ":0.5:0.35").replace(":2:0.7", ":2:0.65")),
    ],
    ids=["kappa", "invariable", "alpha", "mixture"],
)
def test_wrong_parameters_are_noticed(true, wrong):
    states = alphabet("dna")
    drawn = simulate_alignment(tree_of(UNROOTED), model_for_alphabet(true, states), N_SITES, seed=4)
    assert p_value(drawn, probabilities(UNROOTED, model_for_alphabet(wrong, states), states)) < 1e-6


def test_every_tip_has_the_stationary_frequencies():
    model = model_for_alphabet(TN93 % 2, alphabet("dna"))
    drawn = simulate_alignment(tree_of(UNROOTED), model, N_SITES, seed=5)
    for row in drawn.codes:
        wanted = np.array([0.4, 0.2, 0.25, 0.15]) * N_SITES
        assert chisquare(np.bincount(row, minlength=4), wanted).pvalue > 1e-4
        assert chisquare(np.bincount(row, minlength=4), wanted[::-1]).pvalue < 1e-6


def test_the_share_of_invariable_sites():
    """On branches where everything else is saturated, constant sites are the invariable ones."""
    tree = scaled_to_height(coalescent(60, np.random.default_rng(1)), 2000.0)
    model = model_for_alphabet("JC+I{0.25}", alphabet("dna"))
    drawn = simulate_alignment(tree, model, 20_000, seed=6)
    constant = int((drawn.codes == drawn.codes[0]).all(axis=0).sum())
    assert binomtest(constant, 20_000, 0.25).pvalue > 1e-3
    assert binomtest(constant, 20_000, 0.27).pvalue < 1e-6


def test_branches_of_length_zero_change_nothing():
    model = model_for_alphabet("GTR{1,2,3,4,5}+FQ+G4{0.5}", alphabet("dna"))
    codes = simulate_alignment(tree_of("(a:0,b:0,(c:0,d:1):0);"), model, 5000, seed=2).codes
    assert (codes[0] == codes[1]).all() and (codes[0] == codes[2]).all() and (codes[0] != codes[3]).any()


def test_states_of_frequency_zero_never_occur():
    model = model_for_alphabet("F81+F{0.5,0,0.5,0}", alphabet("dna"))
    codes = simulate_alignment(tree_of(UNROOTED), model, 20_000, seed=2).codes
    assert set(np.unique(codes).tolist()) == {0, 2}


def test_the_seed_decides():
    model = model_for_alphabet(TN93 % 2, alphabet("dna"))
    first, again, other = (simulate_alignment(tree_of(UNROOTED), model, 500, seed=s).codes for s in (7, 7, 8))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("text", "model", "error", "message"),
    [
        (UNROOTED, UNREST, InputError, "depend on the root"),
        (UNROOTED, "HKY+FQ", ModelError, "'kappa'"),
        ("(a:0.1,b,c:0.1);", "JC", InputError, "no length"),
        ("(a:0.1,b:-0.1,c:0.1);", "JC", InputError, "negative"),
        ("(a:1e-9,b:1e-9,c:1e-9);", "JC+ASC", ModelError, "vary"),
    ],
)
def test_what_cannot_be_simulated_is_refused(text, model, error, message):
    tree = parse_newick(text, allow_negative=True)[0]
    with pytest.raises(error, match=message):
        simulate_alignment(tree, model_for_alphabet(model, alphabet("dna")), 100)


@pytest.mark.parametrize("n_sites", [0, 1.5, float("nan")])
def test_sites_and_seeds_are_whole_numbers(n_sites):
    model = model_for_alphabet("JC", alphabet("dna"))
    with pytest.raises(InputError, match="the number of sites must be a whole number"):
        simulate_alignment(tree_of(TWO), model, n_sites)
    with pytest.raises(InputError, match="the seed must be a whole number"):
        simulate_alignment(tree_of(TWO), model, 5, seed=None)


@pytest.mark.parametrize("text", ["MK+ASC", "MK+ASC{informative}"])
def test_sites_like_those_of_an_alignment_are_ones_that_would_be_recorded(text):
    """Also of those in which a taxon is missing: what is known of them is then recorded."""
    states, tree, n = alphabet("standard", symbols="01"), tree_of(UNROOTED), 40_000
    model, plain = model_for_alphabet(text, states), model_for_alphabet("MK", states)
    table = np.vstack([np.eye(2, dtype=bool), np.ones((1, 2), bool)])
    given = Alignment(tree.taxa, states, np.zeros((4, n), np.uint8), table)
    site_model, rng = ModelPoint(model, {}).site_model, np.random.default_rng(1)

    def evolved(like: Alignment, unseen) -> Alignment:
        found = evolved_like(like, tree, tree.lengths, site_model, model.observed_state, rng, unseen)
        return replace(like, codes=found)

    drawn = evolved(given, model.unseen)
    assert p_value(drawn, probabilities(UNROOTED, model, states), model.unseen) > 1e-4
    assert never_seen(evolved(given, ()).codes, model.unseen).mean() > 0.3  # the control
    if model.unseen == "uninformative":
        return  # of three taxa no character is informative
    codes = given.codes.copy()
    codes[3] = 2
    drawn = evolved(replace(given, codes=codes), model.unseen)
    assert (drawn.codes[3] == 2).all()
    of_three = probabilities(UNROOTED, plain, states).reshape(8, 2).sum(axis=1)[1:-1]
    counts = np.bincount(np.array([4, 2, 1]) @ drawn.codes[:3].astype(int), minlength=8)
    assert counts[0] == counts[7] == 0
    assert chisquare(counts[1:-1], n * of_three / of_three.sum()).pvalue > 1e-4
