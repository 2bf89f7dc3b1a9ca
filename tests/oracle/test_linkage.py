"""Rounds of reciprocal neighbours against one merge at a time, and against SciPy where nothing ties."""

from __future__ import annotations

import importlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import squareform

import phloem.clustering.linkage as module
from oracle.path_lengths import path_lengths
from phloem.clustering import linkage_rounds
from phloem.clustering.cpu import linkage_single, linkage_square
from phloem.clustering.linkage import Merges, linkage
from phloem.clustering.reference.linkage import combine, counting_unit
from phloem.clustering.reference.linkage import linkage as reference
from phloem.data.distance_matrix import DistanceTriangle
from phloem.errors import InputError, NumericalError

METHODS = ("upgma", "wpgma", "single", "complete")


def symmetric(values):
    upper = np.triu(values, 1)
    return upper + upper.T


def tied(rng, n, kind):
    if kind == "few values":
        return symmetric(rng.integers(0, 4, (n, n)).astype(float))
    if kind == "thirds":
        return symmetric(rng.integers(0, 4, (n, n)).astype(float)) / 29903
    if kind == "counts of differences":
        sequences = rng.integers(0, 2, (n, 12))
        return (sequences[:, None] != sequences).sum(-1).astype(float)
    if kind == "all equal":
        return symmetric(np.full((n, n), 0.1))
    return symmetric(rng.random((n, n)))


KINDS = ("few values", "thirds", "counts of differences", "all equal", "distinct")


@pytest.fixture(params=["one call", "sequence", "rounds", "mixed"])
def way(request, monkeypatch):
    """In one call; as many taxa do, one at a time, in rounds that rewrite the triangle, or both."""
    if request.param != "one call":
        as_of_many_taxa(monkeypatch)
    monkeypatch.setattr(module, "SMALL", {"sequence": 256}.get(request.param, 4))
    monkeypatch.setattr(module, "DENSE_SHARE", {"rounds": 0.0}.get(request.param, 1 / 8))
    monkeypatch.setattr(linkage_rounds, "LAG", 2)


def as_of_many_taxa(monkeypatch):
    """In threads and a triangle, whatever the number of taxa."""
    monkeypatch.setattr(module, "ONE_CALL", 0)
    monkeypatch.setattr(module, "ONE_CALL_SINGLE", 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_sequential_greedy_tree_on_any_input(method, kind, way):
    rng = np.random.default_rng(7)
    for _ in range(25):
        d = tied(rng, int(rng.integers(2, 40)), kind)
        lower, upper, distance = reference(d, method)
        merges = linkage(d, method)
        np.testing.assert_array_equal(merges.lower, lower)
        np.testing.assert_array_equal(merges.upper, upper)
        np.testing.assert_allclose(merges.distance, distance, rtol=1e-13)


@pytest.mark.parametrize("threads", [None, 1, 2, 3])
def test_single_linkage_looks_up_who_touches_whom_where_distances_tie(threads, monkeypatch):
    if threads is not None:
        as_of_many_taxa(monkeypatch)
    d = tied(np.random.default_rng(2), 70, "counts of differences")
    lower, upper, distance = reference(d, "single")
    merges = linkage(d, "single", threads=threads or 2)
    np.testing.assert_array_equal(np.c_[merges.lower, merges.upper], np.c_[lower, upper])
    np.testing.assert_array_equal(merges.distance, distance)


def test_single_linkage_by_links_alone_would_take_up_ties_in_another_order(monkeypatch):
    """Negative control: names in ascending order, without a look at the distances, are not always right."""
    rng = np.random.default_rng(2)
    problems = [tied(rng, 30, "few values") for _ in range(20)]
    as_of_many_taxa(monkeypatch)
    wrong = 0
    monkeypatch.setattr(linkage_single, "_take_up", lambda *_: None)
    merges_of_links = linkage_single.merges_of_links.py_func
    monkeypatch.setattr(linkage_single, "merges_of_links", merges_of_links)
    for d in problems:
        wrong += not np.array_equal(linkage(d, "single").upper, reference(d, "single")[1])
    assert wrong > 0


def test_single_linkage_leaves_a_triangle_as_it_is_and_takes_no_second_one():
    d = tied(np.random.default_rng(1), 900, "few values").astype(np.float32)
    entries = d[np.tril_indices(900, -1)]
    before = entries.copy()
    triangle = DistanceTriangle(tuple(map(str, range(900))), entries)
    linkage(triangle, "single")
    tracemalloc.start()
    linkage(triangle, "single")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(entries, before)
    assert peak < entries.nbytes / 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", METHODS)
def test_one_at_a_time_is_the_reference_to_the_last_bit(method, dtype):
    rng = np.random.default_rng(17)
    for kind in KINDS:
        d = tied(rng, 60, kind).astype(dtype)
        lower, upper, distance = reference(d, method)
        merges = linkage(d, method)
        np.testing.assert_array_equal(np.c_[merges.lower, merges.upper], np.c_[lower, upper])
        np.testing.assert_array_equal(merges.distance, distance)


def outbreak(n):
    """Counts of differences between genomes, many of them identical."""
    rng = np.random.default_rng(3)
    genomes = np.zeros((n, 400), bool)
    for i in range(1, n):
        genomes[i] = genomes[rng.integers(max(0, i - 30), i)]
        genomes[i, rng.integers(0, 400, rng.poisson(0.7))] = True
    genomes = genomes[rng.permutation(n)]
    return (genomes[:, None] != genomes).sum(-1).astype(float)


@pytest.mark.parametrize("make", [outbreak, lambda n: symmetric(np.random.default_rng(3).random((n, n)))])
@pytest.mark.parametrize("method", METHODS)
def test_a_larger_matrix_in_one_call_is_the_reference_to_the_last_bit(make, method):
    """Several times the places of merged clusters are given up."""
    d = make(330)
    lower, upper, distance = reference(d, method)
    merges = linkage(d, method)
    np.testing.assert_array_equal(np.c_[merges.lower, merges.upper], np.c_[lower, upper])
    np.testing.assert_array_equal(merges.distance, distance)


def test_a_bound_that_is_taken_for_exact_is_seen(tmp_path, monkeypatch):
    """Negative control: a row whose nearest cluster has merged and moved away that is not read again."""
    right = Path(linkage_square.__file__).read_text()
    wrong = right.replace("(-1 if touched else near)", "(a if touched else near)")
    assert wrong != right
    (tmp_path / "planted_linkage.py").write_text(wrong)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "linkage_square", importlib.import_module("planted_linkage"))
    matrices = [tied(np.random.default_rng(seed), 40, "distinct") for seed in range(5)]
    assert any(not np.array_equal(linkage(d).upper, reference(d)[1]) for d in matrices)


@pytest.mark.parametrize("make", [outbreak, lambda n: symmetric(np.random.default_rng(3).random((n, n)))])
def test_a_larger_matrix_goes_through_everything(make, monkeypatch):
    as_of_many_taxa(monkeypatch)
    d = make(700)
    lower, upper, distance = reference(d, "upgma")
    for threads in (1, 2, 3):
        merges = linkage(d, "upgma", threads=threads)
        np.testing.assert_array_equal(np.c_[merges.lower, merges.upper], np.c_[lower, upper])
        np.testing.assert_allclose(merges.distance, distance, rtol=1e-12)


def test_duplicates_that_are_only_at_distance_zero_are_not_collapsed(way):
    """Rows at distance zero from each other that differ elsewhere, early or late."""
    rng = np.random.default_rng(4)
    for _ in range(25):
        d = tied(rng, 90, "few values") + 1
        np.fill_diagonal(d, 0)
        copies = rng.integers(0, 90, 30)
        d = d[np.ix_(np.r_[0:90, copies], np.r_[0:90, copies])]
        order = rng.permutation(len(d))
        d = d[np.ix_(order, order)]
        for i, j in rng.integers(0, len(d), (4, 2)):
            if i != j:
                d[i, j] = d[j, i] = rng.integers(0, 3)
        lower, upper, _ = reference(d, "upgma")
        merges = linkage(d)
        np.testing.assert_array_equal(np.c_[merges.lower, merges.upper], np.c_[lower, upper])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("many", [False, True])
def test_square_condensed_and_triangle_are_the_same(method, many, monkeypatch):
    if many:
        as_of_many_taxa(monkeypatch)
    d = symmetric(np.random.default_rng(8).random((400, 400)).astype(np.float32))
    entries = d[np.tril_indices(400, -1)]
    expected = linkage(d, method)
    triangle = DistanceTriangle(tuple(map(str, range(400))), entries.copy())
    locked = d.copy()
    locked.flags.writeable = False
    for form in (squareform(d, checks=False), triangle, np.asfortranarray(d), locked):
        found = linkage(form, method)
        np.testing.assert_array_equal(np.c_[found.lower, found.upper], np.c_[expected.lower, expected.upper])
        np.testing.assert_array_equal(found.distance, expected.distance)
    np.testing.assert_array_equal(triangle.entries, entries)
    reversed_order = linkage(squareform(d[::-1, ::-1], checks=False), method)
    assert not np.array_equal(reversed_order.lower, expected.lower)


@pytest.mark.parametrize("form", ["square", "triangle"])
def test_overwriting_gives_the_same_and_takes_no_second_matrix(form):
    n = module.ONE_CALL + 100
    d = symmetric(np.random.default_rng(8).random((n, n)).astype(np.float32))
    expected = linkage(d)
    entries = d[np.tril_indices(n, -1)]
    work = d if form == "square" else DistanceTriangle(tuple(map(str, range(n))), entries)
    tracemalloc.start()
    found = linkage(work, overwrite=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(found.distance, expected.distance)
    assert peak < entries.nbytes / 4


@pytest.mark.parametrize("shape", [(4, 5), (4,), (2, 2, 2)])
def test_arrays_that_hold_no_distances(shape):
    with pytest.raises(InputError, match="holds no distances"):
        linkage(np.zeros(shape))
    with pytest.raises(InputError, match="int64"):
        linkage(np.zeros((3, 3), int))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("many", [False, True])
def test_negative_zero_is_zero(method, many, monkeypatch):
    if many:
        as_of_many_taxa(monkeypatch)
    d = symmetric(np.random.default_rng(8).random((20, 20)))
    d[3, 7] = d[7, 3] = -0.0
    merges = linkage(d, method)
    assert merges.distance[0] == 0.0 and (merges.lower[0], merges.upper[0]) == (3, 7)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-6)])
@pytest.mark.parametrize(
    "method, name",
    [("upgma", "average"), ("wpgma", "weighted"), ("single", "single"), ("complete", "complete")],
)
def test_equals_scipy_without_ties(method, name, dtype, tolerance):
    rng = np.random.default_rng(11)
    d = symmetric(rng.random((300, 300)).astype(dtype))
    expected = scipy_linkage(squareform(d.astype(np.float64), checks=False), name)
    found = linkage(d, method).linkage_matrix()
    np.testing.assert_allclose(found[:, 2], expected[:, 2], rtol=tolerance)
    np.testing.assert_array_equal(found[:, [0, 1, 3]], expected[:, [0, 1, 3]])


def test_scipy_would_notice_the_wrong_method():
    d = symmetric(np.random.default_rng(11).random((60, 60)))
    expected = scipy_linkage(squareform(d, checks=False), "average")
    assert not np.allclose(linkage(d, "wpgma").linkage_matrix()[:, 2], expected[:, 2], rtol=1e-6)


def test_the_order_of_ties_matters_to_the_comparison():
    """Negative control: the greedy tree of the reversed taxa is another one where distances tie."""
    d = tied(np.random.default_rng(5), 30, "few values")
    n = len(d)
    lower, upper, _ = reference(d[::-1, ::-1].copy(), "upgma")
    merges = linkage(d, "upgma")
    mirrored = np.sort(np.c_[n - 1 - lower, n - 1 - upper], axis=1)
    assert not np.array_equal(np.c_[merges.lower, merges.upper], mirrored)


def test_input_is_kept_unless_overwritten():
    d = tied(np.random.default_rng(1), 20, "distinct")
    before = d.copy()
    linkage(d)
    np.testing.assert_array_equal(d, before)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("value", [np.nan, np.copysign(np.nan, -1), np.inf, -1.0])
@pytest.mark.parametrize("many", [False, True])
def test_what_is_no_distance_does_not_pass(method, value, many, monkeypatch):
    if many:
        as_of_many_taxa(monkeypatch)
    d = tied(np.random.default_rng(1), 20, "distinct")
    d[3, 4] = d[4, 3] = value
    with pytest.raises((NumericalError, InputError)):
        linkage(d, method)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("method", METHODS)
def test_few_taxa(n, method):
    d = symmetric(np.arange(9.0).reshape(3, 3))[:n, :n]
    tree = linkage(d.copy(), method).tree([f"t{k}" for k in range(n)])
    assert tree.n_nodes == 2 * n - 1
    if n == 2:
        np.testing.assert_allclose(tree.lengths[:2], d[0, 1] / 2)


def test_combine_is_above_the_smaller_and_keeps_equals():
    x = np.array([0.1, 1.0, 0.0, 3.0])
    y = np.array([0.1, np.nextafter(1.0, 2), 1.0, 2.0])
    for weights in ((1 / 3, 2 / 3), (1e-9, 1 - 1e-9), (0.5, 0.5)):
        z = combine(x, y, *weights)
        assert z[0] == 0.1
        assert np.all(z[1:] > np.minimum(x, y)[1:])
        assert np.all(z <= np.maximum(x, y))


def test_counting_unit():
    counts = symmetric(np.random.default_rng(0).integers(0, 9, (12, 12)).astype(float))
    assert counting_unit(counts) == 1.0
    assert counting_unit(counts / 997) == pytest.approx(1 / 997)
    assert counting_unit(symmetric(np.random.default_rng(0).random((12, 12)))) == 0.0
    assert counting_unit(counts.astype(np.float32)) == 0.0
    counts[0, 1] = counts[1, 0] = 1.5
    assert counting_unit(counts) == 0.0


@pytest.mark.parametrize("method", ["average", "weighted", "complete", "single", "ward"])
def test_linkage_matrices_of_scipy_become_trees_and_come_back(method):
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 40):
        points = rng.integers(0, 4, (n, 3)).astype(float)
        d = np.linalg.norm(points[:, None] - points, axis=2)
        given = scipy_linkage(squareform(d), method) if n > 1 else np.zeros((0, 4))
        merges = Merges.of_linkage_matrix(given)
        np.testing.assert_allclose(merges.linkage_matrix(), given, rtol=1e-12)
        tree = merges.tree([str(k) for k in range(n)])
        if n > 1:
            np.testing.assert_allclose(path_lengths(tree), squareform(cophenet(given)), atol=1e-12)


@pytest.mark.parametrize(
    "rows, message",
    [
        ([[0, 1, 2, 2], [2, 3, 1, 3]], "row 1 merges at 1, and a node that it merges was made at 2"),
        ([[0, 1, 2, 2], [1, 3, 3, 3]], "every node once"),
        ([[0, 4, 2, 2], [1, 3, 3, 3]], "every node once"),
        ([[0, 1, 2, 2], [2, 3, np.nan, 3]], "row 1 merges at nan"),
        ([[0, 1, 2]], "no linkage matrix"),
    ],
)
def test_what_is_no_linkage_matrix(rows, message):
    with pytest.raises(InputError, match=message):
        Merges.of_linkage_matrix(rows)
