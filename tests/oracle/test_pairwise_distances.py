"""Distances from popcounts and score tables against counts one pair at a time."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.clustering.distances import DistanceSettings, pairwise_distances
from phloem.clustering.formula import observed_frequencies
from phloem.clustering.reference.distances import (
    likelihood_distance,
    nucleotide_distance,
    nucleotide_terms,
    protein_distance,
)
from phloem.data.alignment import Alignment
from phloem.data.alphabet import alphabet
from phloem.errors import InputError
from phloem.model.grammar import parse_model


def evolved(n, sites, states, kind, seed=1, missing=0.03, rate=0.2):
    rng = np.random.default_rng(seed)
    frequencies = rng.dirichlet(np.full(states, 5.0))
    codes = np.zeros((n, sites), np.uint8)
    codes[0] = rng.choice(states, sites, p=frequencies)
    for i in range(1, n):
        codes[i] = codes[rng.integers(0, i)]
        changed = rng.random(sites) < rate * rng.random()
        codes[i, changed] = rng.choice(states, changed.sum(), p=frequencies)
    codes[rng.random((n, sites)) < missing] = states
    sets = np.vstack([np.eye(states, dtype=bool), np.ones((1, states), bool)])
    return Alignment(tuple(f"t{k}" for k in range(n)), alphabet(kind), codes, sets)


def counts(alignment, i, j):
    s = alignment.alphabet.n_states
    a, b = alignment.codes[i], alignment.codes[j]
    both = (a < s) & (b < s)
    table = np.zeros((s, s))
    np.add.at(table, (a[both], b[both]), 1)
    return table


@pytest.mark.parametrize("method", ["p", "jc69", "k80", "f84", "tn93", "logdet"])
@pytest.mark.parametrize("shape", [None, 0.7])
@pytest.mark.parametrize("sites", [63, 700])
def test_nucleotide_distances(method, shape, sites):
    if shape is not None and method in ("p", "logdet"):
        pytest.skip("no gamma form")
    alignment = evolved(45, sites, 4, "dna", rate=0.4)
    found = pairwise_distances(alignment, DistanceSettings(method, shape=shape)).values
    frequencies = observed_frequencies(alignment)
    for i in range(45):
        for j in range(i):
            value = nucleotide_distance(counts(alignment, j, i), method, frequencies, shape)
            assert found[i, j] == pytest.approx(5.0 if not value <= 5.0 else value, abs=1e-13)
    np.testing.assert_array_equal(found, found.T)
    assert np.all(np.diag(found) == 0)


def test_many_sequences_fill_several_blocks():
    alignment = evolved(300, 130, 4, "dna", missing=0.0)
    a = pairwise_distances(alignment, DistanceSettings("p", threads=2)).values
    expected = (alignment.codes[:, None] != alignment.codes).mean(-1)
    np.testing.assert_allclose(a, expected, atol=1e-15)


@pytest.mark.parametrize("method", ["p", "poisson", "kimura"])
def test_protein_distances(method):
    alignment = evolved(20, 300, 20, "protein")
    found = pairwise_distances(alignment, DistanceSettings(method)).values
    for i in range(20):
        for j in range(i):
            assert found[i, j] == pytest.approx(protein_distance(counts(alignment, j, i), method), abs=1e-14)


@pytest.mark.parametrize(
    "text, kind, states",
    [
        ("LG+G4{0.8}", "protein", 20),
        ("WAG+I{0.2}", "protein", 20),
        ("HKY{3}+F{0.3,0.2,0.2,0.3}", "dna", 4),
        ("GTR{1,4,0.7,0.9,5}+F{0.35,0.3,0.1,0.25}+G4{0.5}", "dna", 4),
    ],
)
def test_likelihood_distances(text, kind, states):
    alignment = evolved(12, 400, states, kind)
    model = parse_model(text, datatype=kind).evaluate()
    found = pairwise_distances(alignment, DistanceSettings("ml", model=model)).values
    for i in range(12):
        for j in range(i):
            value = likelihood_distance(counts(alignment, j, i), model, 5.0)
            assert found[i, j] == pytest.approx(value, rel=1e-6, abs=1e-9)


def test_likelihood_under_jc_is_the_jc_distance():
    alignment = evolved(15, 500, 4, "dna")
    model = parse_model("JC", datatype="dna").evaluate()
    ml = pairwise_distances(alignment, DistanceSettings("ml", model=model)).values
    jc = pairwise_distances(alignment, DistanceSettings("jc69")).values
    np.testing.assert_allclose(ml, jc, rtol=1e-6)


def test_tn93_contains_the_simpler_corrections():
    """Equal frequencies: TN93 with equal transition rates is K80; F84's terms too. A wrong slope is seen."""
    table = np.array([[90, 3, 9, 2], [2, 80, 1, 7], [8, 3, 85, 2], [1, 9, 3, 95.0]])
    table = (table + table.T) / 2
    table[1, 3] = table[3, 1] = table[0, 2]
    equal = np.full(4, 0.25)
    k80 = nucleotide_distance(table, "k80", equal)
    assert nucleotide_distance(table, "tn93", equal) == pytest.approx(k80, rel=1e-12)
    assert nucleotide_distance(table, "f84", equal) == pytest.approx(k80, rel=1e-12)
    assert nucleotide_distance(table, "jc69", equal) != pytest.approx(k80, rel=1e-4)
    assert nucleotide_distance(table, "tn93", np.array([0.3, 0.2, 0.2, 0.3])) != pytest.approx(k80, rel=1e-4)


def test_f84_agrees_with_likelihood_under_f84():
    """d of F84 solves the expected counts of an F84 process: HKY with F84's kappas, infinite data."""
    frequencies = np.array([0.35, 0.2, 0.15, 0.3])
    model = parse_model("TN93{3.0,3.0}+F{0.35,0.2,0.15,0.3}", datatype="dna").evaluate()
    from phloem.model.transition import transition_matrices

    p = transition_matrices(np.array([0.4]), model)[0, 0]
    joint = frequencies[:, None] * p
    assert nucleotide_distance(joint, "tn93", frequencies) == pytest.approx(0.4, rel=1e-9)
    assert nucleotide_distance(joint, "logdet", frequencies) != pytest.approx(0.4, rel=1e-4)
    assert len(nucleotide_terms("f84", frequencies)) == 2


def test_complete_deletion_drops_incomplete_sites():
    alignment = evolved(10, 400, 4, "dna")
    complete = np.all(alignment.codes < 4, axis=0)
    found = pairwise_distances(alignment, DistanceSettings("p", deletion="complete")).values
    kept = alignment.codes[:, complete]
    np.testing.assert_allclose(found, (kept[:, None] != kept).mean(-1), atol=1e-15)
    assert not np.allclose(found, pairwise_distances(alignment, DistanceSettings("p")).values, atol=1e-6)


def test_saturation_is_told_and_never_infinite():
    alignment = evolved(12, 40, 4, "dna", rate=3.0)
    matrix = pairwise_distances(alignment, DistanceSettings("k80"))
    assert matrix.settings["saturated_pairs"] > 0
    assert matrix.values.max() == 5.0 and np.isfinite(matrix.values).all()
    with pytest.raises(InputError, match=r"pairs are saturated.*\n.*longest distance"):
        pairwise_distances(alignment, DistanceSettings("k80", saturated="error"))


def test_pairs_without_common_sites_are_named():
    alignment = evolved(4, 50, 4, "dna", missing=0.0)
    alignment.codes[1, :25], alignment.codes[2, 25:] = 4, 4
    with pytest.raises(InputError, match="'t1' and 't2' have no site in common") as caught:
        pairwise_distances(alignment, DistanceSettings("p"))
    assert "sequences: 't1' is known at 25, 't2' is known at 25, 't0' is known at 50." in caught.value.hint


@pytest.mark.parametrize(
    "settings, kind, states, match",
    [
        (DistanceSettings("k80"), "protein", 20, "no distance 'k80'"),
        (DistanceSettings("poisson"), "dna", 4, "no distance 'poisson'"),
        (DistanceSettings("logdet", shape=0.5), "dna", 4, "no gamma form"),
        (DistanceSettings("jc69", shape=-1.0), "dna", 4, "positive"),
        (DistanceSettings("ml"), "protein", 20, "need a model"),
        (
            DistanceSettings("ml", model=parse_model("JC", datatype="dna").evaluate()),
            "protein",
            20,
            "4 states",
        ),
    ],
)
def test_unfit_settings(settings, kind, states, match):
    with pytest.raises(InputError, match=match):
        pairwise_distances(evolved(4, 50, states, kind), settings)
