"""Simultaneous joining against its whole-matrix reference, and on additive distances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.path_lengths import path_lengths
from phloem.clustering.joining import SimultaneousJoining, neighbour_joining
from phloem.clustering.reference.joining import simultaneous_joining
from phloem.errors import InputError, NumericalError
from phloem.tree.random import uniform_unrooted
from phloem.tree.splits import robinson_foulds


def symmetric(n, seed):
    upper = np.triu(np.random.default_rng(seed).random((n, n)), 1)
    return upper + upper.T


def short_branches(n, seed, share):
    """A random tree, a share of whose branches is 1e-6 of its length."""
    rng = np.random.default_rng(seed)
    tree = uniform_unrooted(n, rng)
    return replace(tree, lengths=tree.lengths * np.where(rng.random(len(tree.lengths)) < share, 1e-6, 1.0))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-6)])
def test_equals_the_whole_matrix_search(dtype, tolerance, threads):
    for n in (4, 5, 6, 9, 30, 90):
        d = symmetric(n, n).astype(dtype)
        pairs, lengths, last, _ = simultaneous_joining(d)
        joins = neighbour_joining(d, simultaneous=True, threads=threads)
        np.testing.assert_array_equal(joins.pairs, pairs)
        np.testing.assert_allclose(joins.lengths, lengths, atol=tolerance)
        np.testing.assert_allclose(joins.last_lengths, last[:, 1], atol=tolerance)


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("n", [4, 9, 40, 150])
def test_additive_distances_are_recovered(n, share):
    tree = short_branches(n, n, share)
    d = path_lengths(tree)
    found = neighbour_joining(d, simultaneous=True).tree(tree.taxa)
    assert robinson_foulds(found, tree) == 0
    np.testing.assert_allclose(path_lengths(found), d, atol=1e-10)


def test_rounds_join_many_pairs():
    state = SimultaneousJoining(path_lengths(uniform_unrooted(150, np.random.default_rng(1))), 2)
    state.run()
    assert state.rounds < 50


def test_mutual_minima_alone_are_not_always_sisters():
    """Negative control: without a reference's word, additive trees would be lost."""
    tree = short_branches(150, 150, 0.3)
    d = path_lengths(tree)
    u = d.sum(axis=1) / (len(d) - 2)
    q = d - u[:, None] - u
    np.fill_diagonal(q, np.inf)
    best = q.argmin(axis=1)
    mutual = [(i, int(best[i])) for i in range(len(d)) if best[best[i]] == i and i < best[i]]
    spread = [np.ptp(np.delete(d[i] - d[j], [i, j])) for i, j in mutual]
    assert max(spread) > 1e-9  # sisters keep the same difference to everybody


def test_without_references_one_pair_a_round_is_joined():
    d = symmetric(20, 3)
    pairs, lengths, _, rounds = simultaneous_joining(d, references=0)
    joins = neighbour_joining(d)
    np.testing.assert_array_equal(pairs, joins.pairs)
    np.testing.assert_allclose(lengths, joins.lengths, atol=1e-12)
    np.testing.assert_array_equal(rounds, np.arange(17))


def test_only_neighbour_joining_has_rounds():
    with pytest.raises(InputError):
        neighbour_joining(symmetric(9, 1), "bionj", simultaneous=True)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_distance_does_not_pass(value):
    d = symmetric(20, 1)
    d[3, 4] = d[4, 3] = value
    with pytest.raises(NumericalError):
        neighbour_joining(d, simultaneous=True)
