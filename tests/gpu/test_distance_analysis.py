"""From an alignment to a tree on the device, without a matrix in host memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from gpu.conftest import LATER
from phloem.analysis import distance, distance_source
from phloem.analysis.distance import DistanceAnalysisSettings, run_distance_analysis
from phloem.analysis.distance_devices import choose_devices
from phloem.clustering import device_distances
from phloem.tree.splits import robinson_foulds


@pytest.fixture
def fasta(tmp_path):
    rng, letters = np.random.default_rng(5), np.array(list("ACGT"))
    rows = [rng.integers(0, 4, 90)]
    for k in range(1, 8):
        rows.append(np.where(rng.random(90) < 0.15, rng.integers(0, 4, 90), rows[k // 2]))
    file = tmp_path / "a.fasta"
    text = ("".join(letters[row]) for row in rows)
    file.write_text("".join(f">t{i}\nNR{line[2:]}\n" for i, line in enumerate(text)))
    return str(file)


@pytest.fixture
def no_host_matrix(monkeypatch):
    """Any attempt to measure or cluster in host memory fails."""

    def refused(*_, **__):
        raise AssertionError("a matrix in host memory")

    for name in ("pairwise_distances", "pairwise_triangle", "_require_memory"):
        monkeypatch.setattr(distance_source, name, refused)
    for name in ("linkage", "neighbour_joining"):
        monkeypatch.setattr(distance, name, refused)


OPTIONS = (
    {},
    {"distance": "tn93", "deletion": "complete"},
    {"distance": "f84", "ambiguity": "partial"},
    {"model": "HKY{2}+F{0.3,0.2,0.2,0.3}"},
)


@pytest.mark.parametrize(
    ("options", "method"),
    [  # every distance by one method, and every method by one distance
        pytest.param(options, method, marks=LATER if options and method != "nj" else [])
        for options, method in product(OPTIONS, ("upgma", "complete", "nj"))
    ],
)
def test_tree_and_support_are_the_cpus(fasta, method, options, request):
    settings = DistanceAnalysisSettings(fasta, method, bootstrap=3, device="cpu", **options)
    cpu = run_distance_analysis(settings)
    request.getfixturevalue("no_host_matrix")
    gpu = run_distance_analysis(replace(settings, device="gpu"))
    assert gpu.choices["matrix"] == "stays in device memory"
    assert robinson_foulds(cpu.tree, gpu.tree) == 0
    np.testing.assert_allclose(np.sort(gpu.tree.lengths), np.sort(cpu.tree.lengths), atol=1e-7)
    assert sorted(filter(None, gpu.tree.labels)) == sorted(filter(None, cpu.tree.labels))
    assert gpu.choices["saturated_pairs"] == cpu.choices["saturated_pairs"]
    assert gpu.choices["sites"] == cpu.choices["sites"]


def test_a_wanted_matrix_goes_through_host_memory(fasta):
    settings = DistanceAnalysisSettings(fasta, "upgma", cophenetic=True, device="gpu")
    result = run_distance_analysis(settings)
    assert result.choices["matrix"] == "through host memory: it is wanted there"
    assert result.cophenetic == pytest.approx(
        run_distance_analysis(replace(settings, device="cpu")).cophenetic, rel=1e-12
    )


def test_the_host_path_is_seen(fasta, no_host_matrix):
    with pytest.raises(AssertionError, match="host memory"):
        run_distance_analysis(DistanceAnalysisSettings(fasta, "upgma", cophenetic=True, device="gpu"))


def test_a_matrix_too_large_for_the_device(fasta, monkeypatch):
    monkeypatch.setattr(device_distances, "RESERVE", 1 << 63)
    result = run_distance_analysis(DistanceAnalysisSettings(fasta, "nj", device="gpu"))
    assert "GB needed on the device" in result.choices["matrix"]


def test_all_the_work_is_weighed_together(monkeypatch):
    monkeypatch.setattr("phloem.clustering.settings.gpu_is_here", lambda: True)
    assert choose_devices("auto", 20_000, "upgma").tree == "cpu"
    assert choose_devices("auto", 20_000, "upgma", runs=100).tree == "gpu"
    assert choose_devices("auto", 20_000, "nj", runs=100, simultaneous=True).tree == "cpu"
