"""The distance functions on the device: same records, same results as on the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import squareform

pytest.importorskip("torch")
pytest.importorskip("triton")

from phloem.clustering.distances import lacking_on_gpu, pairwise_distances
from phloem.clustering.joining import neighbour_joining
from phloem.clustering.linkage import linkage
from phloem.clustering.settings import DistanceSettings, select_distance_device
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.distance_matrix import DistanceTriangle
from phloem.errors import InputError


def symmetric(n: int) -> np.ndarray:
    upper = np.triu(np.random.default_rng(n).random((n, n)), 1)
    return upper + upper.T


def test_linkage():
    d = symmetric(21)
    cpu, gpu = linkage(d), linkage(d, device="gpu")
    assert np.array_equal(cpu.lower, gpu.lower) and np.array_equal(cpu.upper, gpu.upper)
    np.testing.assert_allclose(cpu.distance, gpu.distance, rtol=1e-14)


def test_linkage_of_a_triangle():
    d = symmetric(35)
    triangle = DistanceTriangle(tuple(map(str, range(35))), d[np.tril_indices(35, -1)])
    for form in (triangle, squareform(d, checks=False)):
        cpu, gpu = linkage(d), linkage(form, device="gpu")
        assert np.array_equal(cpu.lower, gpu.lower) and np.array_equal(cpu.upper, gpu.upper)
    np.testing.assert_array_equal(triangle.entries, d[np.tril_indices(35, -1)])


def test_joining():
    d = symmetric(14)
    cpu, gpu = neighbour_joining(d), neighbour_joining(d, device="gpu")
    assert np.array_equal(cpu.pairs, gpu.pairs)
    np.testing.assert_allclose(cpu.last_lengths, gpu.last_lengths, atol=1e-12)


@pytest.mark.parametrize("ambiguity", ["missing", "partial"])
@pytest.mark.parametrize(
    ("kind", "method"), [("dna", "p"), ("dna", "tn93"), ("dna", "logdet"), ("protein", "kimura")]
)
def test_distances(kind, method, ambiguity):
    rng = np.random.default_rng(4)
    letters = np.array(list("ACGT" if kind == "dna" else "ARNDCQEGHILKMFPSTWYV"))
    ancestor = rng.integers(0, len(letters), 60)
    rows = np.where(rng.random((7, 60)) < 0.2, rng.integers(0, len(letters), (7, 60)), ancestor)
    some = ["RYB", "KVH", "BBD"] if kind == "dna" else ["BZJ", "JJB"]
    text = {f"t{i}": "-?" + some[i % len(some)] + "".join(letters[row]) for i, row in enumerate(rows)}
    alignment = alignment_from_sequences({k: t[:62] for k, t in text.items()}, alphabet(kind))
    settings = DistanceSettings(method=method, ambiguity=ambiguity)
    cpu = pairwise_distances(alignment, settings)
    gpu = pairwise_distances(alignment, replace(settings, device="gpu"))
    np.testing.assert_allclose(cpu.values, gpu.values, atol=1e-12)
    assert cpu.settings["saturated_pairs"] == gpu.settings["saturated_pairs"]
    other = pairwise_distances(alignment, replace(settings, ambiguity="missing", device="gpu"))
    assert np.allclose(other.values, gpu.values, atol=1e-4) == (ambiguity == "missing")


def test_averages_over_odd_sets_stay_on_the_cpu():
    rows = {"a": "ATGAARTTYGGN", "b": "ATGAAATTTGGC", "c": "ATGNGNGYTNAN"}
    alignment = alignment_from_sequences(rows, alphabet("codon"))
    settings = DistanceSettings("p", ambiguity="partial", device="gpu")
    with pytest.raises(InputError, match="averages over sets"):
        pairwise_distances(alignment, settings)
    assert lacking_on_gpu(alignment, replace(settings, ambiguity="missing")) is None


def test_what_the_device_lacks_is_refused_or_left_to_the_cpu():
    with pytest.raises(InputError, match="simultaneous joining"):
        neighbour_joining(symmetric(5), simultaneous=True, device="gpu")
    assert select_distance_device("auto", 1e9, "simultaneous joining")[0] == "cpu"
    assert select_distance_device("auto", 0.1)[0] == "cpu"
