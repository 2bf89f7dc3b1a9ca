"""Bounded neighbour joining against the whole-matrix reference, dendropy, and additive trees."""

from __future__ import annotations

import io

import numpy as np
import pytest

from oracle.path_lengths import path_lengths
from phloem.clustering.joining import METHODS, neighbour_joining
from phloem.clustering.reference.joining import neighbour_joining as reference
from phloem.clustering.support import cophenetic_correlation
from phloem.errors import NumericalError
from phloem.tree.random import uniform_unrooted
from phloem.tree.splits import robinson_foulds


def symmetric(values):
    upper = np.triu(values, 1)
    return upper + upper.T


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_equals_the_whole_matrix_search(method, dtype, tolerance):
    rng = np.random.default_rng(2)
    for n in (4, 5, 6, 7, 17, 64, 100):
        d = symmetric(rng.random((n, n)).astype(dtype))
        pairs, lengths, last = reference(d, method)
        joins = neighbour_joining(d, method)
        np.testing.assert_array_equal(joins.pairs, pairs)
        np.testing.assert_allclose(joins.lengths, lengths, atol=tolerance)
        np.testing.assert_allclose(joins.last_lengths, last[:, 1], atol=tolerance)


@pytest.mark.parametrize("method", METHODS)
def test_distances_far_from_a_metric(method):
    """The bound holds for any matrix: values over six orders of magnitude, triangle inequality broken."""
    rng = np.random.default_rng(4)
    d = symmetric(np.exp(rng.uniform(-7, 7, (60, 60))))
    np.testing.assert_array_equal(neighbour_joining(d, method).pairs, reference(d, method)[0])


def test_dendropy_joins_the_same_tree():
    dendropy = pytest.importorskip("dendropy")
    rng = np.random.default_rng(8)
    d, taxa = symmetric(rng.random((25, 25))), [f"t{k}" for k in range(25)]
    rows = [
        ",".join(["", *taxa]),
        *(",".join([name, *map(repr, row.tolist())]) for name, row in zip(taxa, d)),
    ]
    table = dendropy.PhylogeneticDistanceMatrix.from_csv(io.StringIO("\n".join(rows)), delimiter=",")
    theirs = table.nj_tree()
    ours = neighbour_joining(d).tree(taxa)
    from phloem.io.trees import parse_trees

    other = parse_trees(theirs.as_string("newick"), allow_negative=True)[0]
    assert robinson_foulds(ours, other) == 0
    assert np.nansum(other.lengths) == pytest.approx(ours.lengths.sum(), rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_additive_distances_are_recovered(method):
    rng = np.random.default_rng(9)
    for n in (4, 9, 40, 120):
        tree = uniform_unrooted(n, rng)
        d = path_lengths(tree)
        found = neighbour_joining(d, method).tree(tree.taxa)
        assert robinson_foulds(found, tree) == 0
        np.testing.assert_allclose(path_lengths(found), d, atol=1e-10)
        assert cophenetic_correlation(found, d) == pytest.approx(1.0)


def test_a_spoiled_bound_would_show():
    """Negative control: one distance changed by much changes the joins that are compared."""
    rng = np.random.default_rng(2)
    d = symmetric(rng.random((30, 30)))
    wrong = d.copy()
    wrong[3, 9] = wrong[9, 3] = 0.001
    assert not np.array_equal(neighbour_joining(wrong).pairs, reference(d)[0])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_taxa(n):
    d = np.array([[0, 3, 5], [3, 0, 4], [5, 4, 0.0]])[:n, :n]
    tree = neighbour_joining(d).tree([f"t{k}" for k in range(n)])
    assert tree.n_nodes == n + 1
    if n == 3:
        np.testing.assert_allclose(tree.lengths[:3], [2, 1, 3])
    if n == 2:
        assert tree.lengths[:2].sum() == 3


def test_negative_branches():
    rng = np.random.default_rng(1)
    d, taxa = symmetric(rng.random((20, 20))), [f"t{k}" for k in range(20)]
    joins = neighbour_joining(d)
    assert joins.lengths.min() < 0
    assert joins.tree(taxa, "zero").lengths.min() >= 0
    assert joins.tree(taxa, "transfer").lengths.min() >= 0
    one = np.flatnonzero((joins.lengths.min(axis=1) < 0) & (joins.lengths.sum(axis=1) > 0))[0]
    pair = joins.pairs[one]
    if joins.pairs[:one].size == 0 or not np.isin(pair, joins.pairs[:one]).any():
        moved = joins.tree(taxa, "transfer").lengths[pair]
        assert moved.sum() == pytest.approx(joins.lengths[one].sum())


def test_all_equal_distances_make_a_star():
    d = 1.0 - np.eye(12)
    tree = neighbour_joining(d).tree([f"t{k}" for k in range(12)])
    np.testing.assert_allclose(path_lengths(tree), d, atol=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_distance_does_not_pass(value):
    d = symmetric(np.random.default_rng(1).random((20, 20)))
    d[3, 4] = d[4, 3] = value
    with pytest.raises(NumericalError):
        neighbour_joining(d)
