"""Ambiguous characters as mixtures of states: compiled kernels against counts one pair at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.clustering.distances import DistanceSettings, pairwise_distances
from phloem.clustering.formula import observed_frequencies, state_weights
from phloem.clustering.reference.distances import joint_counts, nucleotide_distance, protein_distance
from phloem.data.alignment import Alignment, alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import InputError
from phloem.model.grammar import parse_model

LETTERS = {"dna": "ACGT", "protein": "ARNDCQEGHILKMFPSTWYV"}
AMBIGUOUS = {"dna": "RYSWKMBDHV", "protein": "BZJ"}


def ambiguous(kind: str, n: int = 17, sites: int = 300, share: float = 0.08, seed: int = 1) -> Alignment:
    rng = np.random.default_rng(seed)
    letters = np.array(list(LETTERS[kind]))
    rows = np.where(
        rng.random((n, sites)) < 0.25,
        rng.choice(letters, (n, sites)),
        rng.choice(letters, sites),
    )
    rows = np.where(rng.random((n, sites)) < share, rng.choice(list(AMBIGUOUS[kind]), (n, sites)), rows)
    rows = np.where(rng.random((n, sites)) < 0.05, "-", rows)
    rows[0, rng.random(sites) < 0.5] = "-"  # leaves some columns to a few sequences
    return alignment_from_sequences({f"t{i}": "".join(row) for i, row in enumerate(rows)}, alphabet(kind))


def expected(alignment: Alignment, ambiguity: str, measure) -> np.ndarray:
    weights = state_weights(alignment.state_sets, ambiguity)
    n = alignment.n_taxa
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            value = measure(joint_counts(alignment.codes[i], alignment.codes[j], weights))
            d[i, j] = d[j, i] = value if value <= 5.0 else 5.0
    return d


@pytest.mark.parametrize("ambiguity", ["missing", "partial"])
@pytest.mark.parametrize(
    ("method", "shape"),
    [("p", None), ("jc69", 0.6), ("k80", None), ("f84", 1.3), ("tn93", None), ("logdet", None)],
)
def test_nucleotides(method, shape, ambiguity):
    alignment = ambiguous("dna")
    found = pairwise_distances(alignment, DistanceSettings(method, shape, ambiguity)).values
    frequencies = observed_frequencies(alignment, ambiguity)
    right = expected(alignment, ambiguity, lambda c: nucleotide_distance(c, method, frequencies, shape))
    np.testing.assert_allclose(found, right, atol=1e-12)


@pytest.mark.parametrize("method", ["p", "poisson", "kimura"])
def test_proteins(method):
    alignment = ambiguous("protein")
    found = pairwise_distances(alignment, DistanceSettings(method, ambiguity="partial")).values
    right = expected(alignment, "partial", lambda c: protein_distance(c, method))
    np.testing.assert_allclose(found, right, atol=1e-12)
    missing = pairwise_distances(alignment, DistanceSettings(method)).values
    assert np.abs(found - missing).max() > 1e-3


def test_codons():
    rows = {"a": "ATGAARTTYGGN", "b": "ATGAAATTTGGC", "c": "ATGAAGYTNGGA"}
    alignment = alignment_from_sequences(rows, alphabet("codon"))
    found = pairwise_distances(alignment, DistanceSettings("p", ambiguity="partial")).values
    right = expected(alignment, "partial", lambda c: protein_distance(c, "p"))
    np.testing.assert_allclose(found, right, atol=1e-15)
    assert found[1, 0] == pytest.approx((0 + 1 / 2 + 1 / 2 + 3 / 4) / 4)


def test_a_site_is_an_even_mixture():
    rows = {"a": "AAAAAAAAAA", "b": "RAAAAAAAAA", "c": "YAAAAAAAAA", "d": "NAAAAAAAAA", "e": "RAAAAAAAAA"}
    alignment = alignment_from_sequences(rows, alphabet("dna"))
    p = pairwise_distances(alignment, DistanceSettings("p", ambiguity="partial")).values
    assert p[1, 0] == pytest.approx(0.05) and p[2, 0] == pytest.approx(0.1) and p[3, 0] == 0
    assert p[4, 1] == pytest.approx(0.05)  # R against R: half of the four resolutions differ


@pytest.mark.parametrize(
    ("kind", "method"), [("dna", "tn93"), ("dna", "logdet"), ("dna", "p"), ("protein", "kimura")]
)
def test_without_ambiguous_characters_both_rules_agree_to_the_bit(kind, method):
    alignment = ambiguous(kind, share=0.0)
    missing = pairwise_distances(alignment, DistanceSettings(method))
    average = pairwise_distances(alignment, DistanceSettings(method, ambiguity="partial"))
    assert np.array_equal(missing.values, average.values)
    assert (missing.settings["ambiguous_characters"], average.settings["ambiguous_characters"]) == (
        "missing",
        "partial",
    )


def test_the_rules_differ_where_characters_are_ambiguous():
    alignment = ambiguous("dna")
    for method in ("jc69", "tn93", "logdet"):
        missing = pairwise_distances(alignment, DistanceSettings(method)).values
        average = pairwise_distances(alignment, DistanceSettings(method, ambiguity="partial")).values
        assert np.abs(missing - average).max() > 1e-2


def test_complete_deletion_keeps_averaged_sites():
    alignment = ambiguous("dna", n=5, share=0.2)
    alignment = replace(alignment, codes=np.ascontiguousarray(alignment.codes[1:]), taxa=alignment.taxa[1:])
    kept = np.all(alignment.codes != 4, axis=0)
    assert np.any(alignment.codes[:, kept] > 4)
    found = pairwise_distances(
        alignment, DistanceSettings("p", ambiguity="partial", deletion="complete")
    ).values
    rest = replace(alignment, codes=np.ascontiguousarray(alignment.codes[:, kept]))
    np.testing.assert_allclose(
        found, expected(rest, "partial", lambda c: nucleotide_distance(c, "p", np.full(4, 0.25))), atol=1e-14
    )


def test_maximum_likelihood_does_not_average():
    model = parse_model("JC", datatype="dna").evaluate()
    with pytest.raises(InputError, match="do not average"):
        pairwise_distances(ambiguous("dna"), DistanceSettings("ml", ambiguity="partial", model=model))
