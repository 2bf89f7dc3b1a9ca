"""Linkage of a matrix in bands of rows, next to the matrix on one device and the sequential reference."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from gpu.conftest import LATER  # noqa: E402
from gpu.random_matrices import continuous, duplicated, tied  # noqa: E402
from phloem.analysis.distance import DistanceAnalysisSettings, run_distance_analysis  # noqa: E402
from phloem.clustering import device_distances  # noqa: E402
from phloem.clustering.formula import Formula  # noqa: E402
from phloem.clustering.gpu import shards_bands as gpu_distance_shards_bands  # noqa: E402
from phloem.clustering.gpu.alignment import SequenceCodes, distance_matrix  # noqa: E402
from phloem.clustering.gpu.device import visible_devices  # noqa: E402
from phloem.clustering.gpu.linkage import linkage_merges  # noqa: E402
from phloem.clustering.gpu.shards import linkage_merges_sharded  # noqa: E402
from phloem.clustering.gpu.shards_bands import (  # noqa: E402
    alignment_bands,
    bands_of_rows,
    devices_for,
    row_edges,
    rows_of_square,
    rows_of_triangle,
)
from phloem.clustering.gpu.shards_device import (  # noqa: E402
    ShardTiling,
    chunks,
)
from phloem.clustering.linkage import linkage  # noqa: E402
from phloem.clustering.reference.distances import nucleotide_terms  # noqa: E402
from phloem.clustering.reference.linkage import linkage as sequential  # noqa: E402
from phloem.errors import InputError, NumericalError  # noqa: E402

GIGABYTE = 10**9


def tiling(finish: int = 0, dense: float = 8) -> ShardTiling:
    """Four rows travel at a time."""
    return ShardTiling(scan=16, columns=16, rows=4, pairs=4, dense=dense, finish=finish, buffer=4 * 32 * 4)


def bands_of(d: np.ndarray, count: int) -> list:
    """Bands dealt to all devices in turn, not in whole tiles; what pads a row is not a number."""
    n, devices = len(d), visible_devices()
    edges, bands = np.linspace(0, n, count + 1).astype(int), []
    for k, (first, last) in enumerate(pairwise(edges)):
        band = np.full((last - first, -(-n // 16) * 16), np.nan, d.dtype)
        band[:, :n] = d[first:last]
        bands.append(torch.from_numpy(band).to(devices[k % len(devices)])[:, :n])
    return bands


def assert_same(found, expected) -> None:
    for x, y in zip(found[:3], expected[:3], strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize("dense", [8, 0.5], ids=["rewrites", "in place"])
@pytest.mark.parametrize("make", [continuous, tied, duplicated])
def test_merges_equal_the_sequential_ones(make, dense, poisoned):
    d = make(27, np.random.default_rng(3))
    lower, upper, distance, rounds = linkage_merges_sharded(bands_of(d, 3), "upgma", tiling(0, dense))
    a, b, height = sequential(d, "upgma")
    order = np.lexsort((b, a, height))
    assert np.array_equal(lower, a[order]) and np.array_equal(upper, b[order])
    np.testing.assert_allclose(distance, height[order], rtol=1e-15)
    assert 1 <= rounds < 26


@pytest.mark.parametrize(
    ("precision", "finish"),
    [
        ("float64", 0),
        ("float32", 14),  # the last ones on one device
        pytest.param("float32", 0, marks=LATER),
        pytest.param("float64", 14, marks=LATER),
    ],
)
@pytest.mark.parametrize(
    ("method", "make", "count"),
    [("upgma", continuous, 1), ("upgma", duplicated, 4), ("wpgma", tied, 2), ("complete", duplicated, 3)],
)
def test_bands_give_the_bits_of_one_device(method, make, count, precision, finish, poisoned):
    d = make(25, np.random.default_rng(7)).astype(precision)
    if make is duplicated and precision == "float32":
        d *= 0.1  # zeros and ties of distances that are no counts
    found = linkage_merges_sharded(bands_of(d, count), method, tiling(finish))
    assert_same(found, linkage_merges(d, method))


def test_two_taxa():
    found = linkage_merges_sharded(bands_of(np.array([[0.0, 0.25], [0.25, 0.0]]), 2))
    assert_same(found, ([0], [1], [0.25]))


def test_not_a_number_is_an_error_and_no_endless_loop():
    d = np.full((9, 9), np.nan)
    with pytest.raises(NumericalError):
        linkage_merges_sharded(bands_of(d, 2), "upgma", tiling())


def test_a_changed_entry_changes_the_merges():
    d = continuous(17, np.random.default_rng(1))
    first = linkage_merges_sharded(bands_of(d, 2), "upgma", tiling())[2]
    d[3, 11] = d[11, 3] = 1e-6
    assert not np.allclose(first, linkage_merges_sharded(bands_of(d, 2), "upgma", tiling())[2])


def test_single_linkage_is_refused():
    with pytest.raises(InputError, match="no single linkage on several GPUs"):
        linkage_merges_sharded(bands_of(continuous(5, np.random.default_rng(1)), 2), "single")


def test_rows_that_travel_come_in_chunks():
    source, slot = np.array([0, 0, 0, 2, 2]), np.array([4, 4, 9, 1, 3])
    found, index = chunks(source, slot, 1)
    assert [(s, low, first, stop) for s, _, low, _, first, stop in found] == [
        (0, 0, 0, 2), (0, 1, 2, 3), (2, 0, 3, 4), (2, 1, 4, 5),
    ]  # fmt: skip
    assert index.tolist() == [0, 0, 0, 0, 0]
    assert chunks(source, slot, 8)[1].tolist() == [0, 0, 1, 0, 1]


def test_bands_from_host_memory():
    d = continuous(150, np.random.default_rng(5))
    entries = d[np.tril_indices(150, -1)]
    devices = visible_devices()[:1] * 2
    for fill in (rows_of_square(d), rows_of_triangle(entries, 150)):
        bands = bands_of_rows(150, devices, torch.float64, fill)
        assert len(bands) == 2 and np.array_equal(torch.cat(bands).cpu().numpy(), d)


@pytest.mark.parametrize("method", ["jc69", "logdet"])
def test_bands_from_an_alignment(method, poisoned):
    rng = np.random.default_rng(6)
    codes = np.where(rng.random((140, 70)) < 0.3, rng.integers(0, 6, (140, 70)), rng.integers(0, 4, 70))
    codes, weights = codes.astype(np.uint8), np.eye(4)
    terms = None if method == "logdet" else nucleotide_terms(method, np.full(4, 0.25))
    formula, device = Formula(terms=terms, logdet=method == "logdet"), visible_devices()[0]
    whole, status = distance_matrix(
        SequenceCodes(codes, weights, True).encoded(formula), formula, torch.float64
    )
    bands, found = alignment_bands(codes, weights, True, formula, [device] * 2, torch.float64)
    assert np.array_equal(torch.cat(bands).cpu().numpy(), whole.cpu().numpy())
    assert found.tolist() == status.tolist()


def test_devices_are_as_few_as_memory_allows():
    devices = [torch.device("cuda", k) for k in range(2)]
    free = lambda device: 150 * GIGABYTE  # noqa: E731
    assert devices_for(100_000, 4, devices=devices, free=free) == (devices[:1], "one GPU")
    both, reason = devices_for(200_000, 4, devices=devices, free=free)
    assert both == devices and "160.0 GB do not fit" in reason
    with pytest.raises(InputError, match=r"320,000 taxa need 409.6 GB .* 150.0, 150.0 GB"):
        devices_for(320_000, 4, devices=devices, free=free)
    assert row_edges(100, 4) == [0, 64, 100] and row_edges(5, 3) == [0, 5]


def only_two_devices_suffice(monkeypatch) -> None:
    """No matrix fits one device; two bands on the first do."""
    device = visible_devices()[0]
    monkeypatch.setattr(device_distances, "RESERVE", 1 << 63)
    monkeypatch.setattr(
        gpu_distance_shards_bands, "devices_for", lambda *_: ([device] * 2, "2 GPUs by rows, since")
    )


@pytest.mark.parametrize("form", ["square", "condensed"])
def test_linkage_takes_all_devices_for_what_does_not_fit_one(form, monkeypatch):
    d = continuous(70, np.random.default_rng(8)).astype(np.float32)
    given = d if form == "square" else d[np.triu_indices(70, 1)]
    only_two_devices_suffice(monkeypatch)
    found = linkage(given, device="gpu")
    assert_same((found.lower, found.upper, found.distance), linkage_merges(d))


def test_an_alignment_goes_to_its_tree_in_bands(tmp_path, monkeypatch):
    rng = np.random.default_rng(9)
    rows = np.array(list("ACGT"))[rng.integers(0, 4, (70, 60))]
    fasta = tmp_path / "a.fasta"
    fasta.write_text("".join(f">t{i}\n{''.join(row)}\n" for i, row in enumerate(rows)))
    settings = DistanceAnalysisSettings(str(fasta), "upgma", device="gpu", deletion="complete")
    one = run_distance_analysis(settings)
    only_two_devices_suffice(monkeypatch)
    both = run_distance_analysis(settings)
    assert one.choices["matrix"] == "stays in device memory"
    assert both.choices["matrix"] == "stays in device memory: 2 GPUs by rows, since"
    assert np.array_equal(both.tree.parent, one.tree.parent)
    assert np.array_equal(both.tree.lengths, one.tree.lengths)
    assert both.choices["saturated_pairs"] == one.choices["saturated_pairs"]
    kept = run_distance_analysis(replace(settings, cophenetic=True)).choices
    assert kept["matrix"].startswith("through host memory") and kept["tree"].endswith("by rows, since")
