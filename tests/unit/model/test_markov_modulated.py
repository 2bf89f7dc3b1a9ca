"""Hidden classes in the limits where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.io.trees import parse_trees
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.model.grammar import parse_model
from phloem.model.model import Model

BASE = "HKY{3}+F{0.1,0.2,0.3,0.4}"
TREE = parse_trees("((a:0.1,b:0.3):0.2,c:0.25,d:0.4);")[0]
DATA = alignment_from_sequences(
    {"a": "ACGTACGTACGTTGCA", "b": "ACGTTCGAACGATGCA", "c": "ACTTACGAGCGATGGA", "d": "GCTTACGATCCATGTA"},
    alphabet("dna"),
)


def observed_probabilities(model: Model, t: float) -> np.ndarray:
    """P(observed state at the end | observed state at the start), hidden classes stationary, (4, 4)."""
    m = model.evaluate().single
    joint = m.frequencies[:, None] * expm(m.rate_matrix * t)
    shows = model.observed_state[:, None] == np.arange(4)
    observed = shows.T @ joint @ shows
    return observed / observed.sum(1, keepdims=True)


def base_probabilities(t: float) -> np.ndarray:
    return expm(parse_model(BASE, datatype="dna").evaluate().single.rate_matrix * t)


@pytest.mark.parametrize(
    "suffix", ["+COV{2e6,1e6}", "+MM3{1e6,0.2,0.1,0.3,2,0.5,5}", "+COV{1,0}", "+MM2{0.3,0.5,1,0.5,1}"]
)
def test_no_variation_or_fast_switching_is_the_base_model(suffix: str) -> None:
    model = parse_model(BASE + suffix, datatype="dna")
    assert np.abs(observed_probabilities(model, 0.6) - base_probabilities(0.6)).max() < 1e-6


def test_slow_switching_is_a_mixture_over_sites() -> None:
    model = parse_model(BASE + "+MM2{1e-9,0.25,0.4,0.75,1.2}", datatype="dna")
    mixture = 0.25 * base_probabilities(0.4 * 0.6) + 0.75 * base_probabilities(1.2 * 0.6)
    assert np.abs(observed_probabilities(model, 0.6) - mixture).max() < 1e-8


def test_classes_matter_in_between() -> None:
    model = parse_model(BASE + "+COV{1,1}", datatype="dna")
    assert np.abs(observed_probabilities(model, 0.6) - base_probabilities(0.6)).max() > 1e-2


def likelihood(suffix: str) -> TreeLikelihood:
    return TreeLikelihood(DATA, TREE, BASE + suffix)


def test_rates_of_substitutions_are_those_of_sites_without_switching_or_with_fast() -> None:
    plain = likelihood("+G4{0.4}").log_likelihood()
    assert likelihood("+COV{1,0}*G4{0.4}").log_likelihood() == pytest.approx(plain, abs=1e-9)
    assert likelihood("+COV{2e6,1e6}*G4{0.4}").log_likelihood() == pytest.approx(plain, abs=1e-4)
    alike = likelihood("+COV{0.5,0.8}").log_likelihood()
    assert likelihood("+COV{0.5,0.8}*R2{0.3,1,0.7,1}").log_likelihood() == pytest.approx(alike, abs=1e-9)


def test_they_do_not_multiply_changes_of_class() -> None:
    within, all_changes = likelihood("+COV{0.5,0.8}*G4{0.4}"), likelihood("+COV{0.5,0.8}+G4{0.4}")
    assert abs(within.log_likelihood() - all_changes.log_likelihood()) > 1e-3


def test_site_rates_are_those_of_the_categories() -> None:
    np.testing.assert_allclose(
        likelihood("+COV{1,0}*G4{0.4}").site_rates(), likelihood("+G4{0.4}").site_rates(), rtol=1e-9
    )
