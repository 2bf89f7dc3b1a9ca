"""Subtrees found again in another tree, and the columns that may then stay."""

from __future__ import annotations

import numpy as np

from gpu.random_problems import random_topology
from phloem.pruning.topology import Topology, match_clades


def tips_below(topology: Topology) -> list[frozenset[int]]:
    n_tips, below = len(topology.left) // 2 + 1, []
    for x, (a, b) in enumerate(zip(topology.left, topology.right)):
        below.append(frozenset([x]) if x < n_tips else below[a] | below[b])
    return below


def check(old: Topology, left, right, match) -> int:
    """Every claim of the match against sets of tips; the number of nodes that are the same."""
    new, n_tips = Topology.build(left, right), len(left) + 1
    below, before = tips_below(new), tips_below(old)
    assert sorted(match.old_node) == list(range(2 * n_tips - 1))
    for x, node in enumerate(match.old_node):
        assert (before[node] == below[x]) == (below[x] in before)
        if x < n_tips:
            continue
        children = [below[match.topology.left[x]], below[match.topology.right[x]]]
        assert set(children) == {below[new.left[x]], below[new.right[x]]}
        kept = below[x] == before[node] and children == [before[old.left[node]], before[old.right[node]]]
        assert (x in match.moved) == (not kept)
    return sum(b in before for b in below)


def test_random_trees():
    rng, found = np.random.default_rng(1), 0
    for n_tips in (2, 3, 5, 8, 30):
        for _ in range(20):
            old = Topology.build(*random_topology(n_tips, rng))
            left, right = random_topology(n_tips, rng)
            found += check(old, left, right, match_clades(old, left, right)) - n_tips - 1
    assert found > 20  # besides tips and root


def test_both_children_of_the_root_are_others():
    """Their places in the old tree are left over for each other: nothing above them may be kept."""
    old = Topology.build(np.array([0, 2, 4]), np.array([1, 3, 5]))
    match = match_clades(old, np.array([0, 1, 4]), np.array([2, 3, 5]))
    assert match.moved.tolist() == [4, 5, 6]


def test_the_same_tree_under_other_names():
    old = Topology.build(np.array([0, 2, 4]), np.array([1, 3, 5]))
    match = match_clades(old, np.array([3, 1, 5]), np.array([2, 0, 4]))
    assert len(match.moved) == 0
    assert match.old_node.tolist() == [0, 1, 2, 3, 5, 4, 6]
