"""Maximum-likelihood distances on the device next to the CPU's and to the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from phloem.clustering.distances import pairwise_distances  # noqa: E402
from phloem.clustering.formula import state_weights  # noqa: E402
from phloem.clustering.reference.distances import joint_counts, likelihood_distance  # noqa: E402
from phloem.clustering.settings import DistanceSettings  # noqa: E402
from phloem.data.alignment import alignment_from_sequences  # noqa: E402
from phloem.data.alphabet import alphabet  # noqa: E402
from phloem.likelihood.model_for_alignment import model_for_alignment  # noqa: E402
from phloem.model.grammar import parse_model  # noqa: E402

LETTERS = {"dna": list("ACGT"), "protein": list("ARNDCQEGHILKMFPSTWYV")}


def words(kind: str) -> list[str]:
    return LETTERS.get(kind) or list(alphabet("codon").states)


def alignment(kind: str, n: int = 9, sites: int = 60, seed: int = 3):
    """Pairs from identical to unrelated, with gaps."""
    rng, letters = np.random.default_rng(seed), np.array(words(kind))
    rows = [rng.integers(0, len(letters), sites)]
    for k in range(1, n):
        changed = rng.random(sites) < (0.0, 0.02, 0.1, 0.3, 1.0)[k % 5]
        rows.append(np.where(changed, rng.integers(0, len(letters), sites), rows[k // 2]))
    gap = "-" * len(letters[0])
    text = {
        f"t{i}": "".join(gap if rng.random() < 0.05 else letters[s] for s in row)
        for i, row in enumerate(rows)
    }
    return alignment_from_sequences(text, alphabet(kind))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("dna", "JC"),
        ("dna", "GTR{1,4,0.7,0.9,5}+F{0.35,0.3,0.1,0.25}+G4{0.5}"),
        ("protein", "LG+G4{0.8}"),
        ("protein", "WAG+I{0.2}"),
        ("codon", "GY{2.0,0.3}"),
    ],
)
def test_distances_are_the_cpus(kind, text, poisoned):
    data = alignment(kind)
    settings = DistanceSettings("ml", model=model_for_alignment(text, data).evaluate())
    cpu, gpu = pairwise_distances(data, settings), pairwise_distances(data, replace(settings, device="gpu"))
    np.testing.assert_allclose(gpu.values, cpu.values, rtol=1e-6, atol=1e-12)
    assert gpu.settings["saturated_pairs"] == cpu.settings["saturated_pairs"]
    assert cpu.values.max() > 0 and np.sum(cpu.values == 0) > data.n_taxa


def test_distances_are_the_references():
    data = alignment("dna", n=5)
    model = parse_model("HKY{3}+F{0.3,0.2,0.2,0.3}", datatype="dna").evaluate()
    found = pairwise_distances(data, DistanceSettings("ml", model=model, device="gpu")).values
    weights = state_weights(data.state_sets, "missing")
    for i in range(5):
        for j in range(i):
            value = likelihood_distance(joint_counts(data.codes[i], data.codes[j], weights), model, 5.0)
            assert found[i, j] == pytest.approx(min(value, 5.0), rel=1e-5, abs=1e-8)


def test_the_model_matters():
    data = alignment("protein", n=5)
    lg, wag = (
        pairwise_distances(
            data, DistanceSettings("ml", model=parse_model(text, datatype="protein").evaluate(), device="gpu")
        ).values
        for text in ("LG", "WAG")
    )
    assert np.abs(lg - wag).max() > 1e-3
