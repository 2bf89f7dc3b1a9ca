"""What must hold of trees from any distances."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.path_lengths import path_lengths
from phloem.clustering.joining import neighbour_joining
from phloem.clustering.linkage import linkage
from phloem.clustering.reference.linkage import linkage as reference
from phloem.tree.random import coalescent, uniform_unrooted
from phloem.tree.splits import robinson_foulds
from phloem.tree.tree import is_ultrametric

SEEDS = st.integers(0, 2**32 - 1)


def symmetric(values):
    upper = np.triu(values, 1)
    return upper + upper.T


@st.composite
def whole_matrices(draw):
    n = draw(st.integers(2, 14))
    values = draw(st.lists(st.integers(0, 6), min_size=n * n, max_size=n * n))
    return symmetric(np.array(values, float).reshape(n, n))


@settings(max_examples=150, deadline=None)
@given(whole_matrices(), st.sampled_from(["upgma", "wpgma", "single", "complete"]))
def test_ties_are_broken_as_one_at_a_time(d, method):
    lower, upper, _ = reference(d, method)
    merges = linkage(d, method)
    assert np.array_equal(merges.lower, lower) and np.array_equal(merges.upper, upper)


@settings(max_examples=60, deadline=None)
@given(whole_matrices(), st.sampled_from(["upgma", "wpgma", "single", "complete"]))
def test_trees_are_ultrametric_and_heights_ascend(d, method):
    merges = linkage(d, method)
    assert np.all(np.diff(merges.distance) >= 0)
    tree = merges.tree([f"t{k}" for k in range(len(d))])
    assert np.all(tree.lengths >= 0) and is_ultrametric(tree)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(3, 40), st.sampled_from(["upgma", "wpgma", "single", "complete"]))
def test_ultrametric_distances_are_recovered(seed, n, method):
    tree = coalescent(n, np.random.default_rng(seed))
    d = path_lengths(tree)
    found = linkage(d, method).tree(tree.taxa)
    np.testing.assert_allclose(path_lengths(found), d, rtol=1e-9, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(4, 30), st.sampled_from(["nj", "bionj", "unj"]))
def test_additive_distances_are_recovered(seed, n, method):
    tree = uniform_unrooted(n, np.random.default_rng(seed))
    d = path_lengths(tree)
    found = neighbour_joining(d, method).tree(tree.taxa)
    np.testing.assert_allclose(path_lengths(found), d, atol=1e-8)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(4, 30), st.sampled_from(["upgma", "complete", "single", "nj"]))
def test_permuted_input_permutes_the_tree(seed, n, method):
    rng = np.random.default_rng(seed)
    d, taxa = symmetric(rng.random((n, n))), np.array([f"t{k}" for k in range(n)])
    order = rng.permutation(n)

    def build(matrix, names):
        if method != "nj":
            return linkage(matrix, method).tree(names)
        return neighbour_joining(matrix, method).tree(names)

    a, b = build(d, taxa.tolist()), build(d[np.ix_(order, order)], taxa[order].tolist())
    from phloem.tree.match import match_taxa

    b = match_taxa(b, taxa.tolist())
    assert robinson_foulds(a, b) == 0
    np.testing.assert_allclose(path_lengths(a), path_lengths(b), atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(3, 12))
def test_duplicates_meet_at_height_zero(seed, n):
    rng = np.random.default_rng(seed)
    d = symmetric(rng.random((n, n)))
    copies = rng.integers(0, n, 2 * n)
    merges = linkage(d[np.ix_(copies, copies)])
    assert np.sum(merges.distance == 0) == 2 * n - len(set(copies.tolist()))
