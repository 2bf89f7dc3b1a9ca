"""Topology moves keep trees valid, and their Hastings ratio is the one that counting proposals gives."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from phloem.inference.mcmc.compiled.move_nni import nearest_neighbour_interchange
from phloem.inference.mcmc.compiled.move_spr import extending_spr
from phloem.inference.mcmc.compiled.move_tbr import extending_tbr
from phloem.inference.mcmc.compiled.unrooted import hang, unroot
from phloem.inference.mcmc.seeds import stream
from phloem.inference.mcmc.starting_trees import random_tree

BOUNDS = np.array([1e-8, 100.0])
NO_STRETCH = 1e-13  # then lengths are only permuted and name the proposal


def propose(move: str, adjacency, edge, n_tips: int, rng, p_extend: float) -> float:
    if move == "nni":
        return nearest_neighbour_interchange(adjacency, edge, n_tips, rng)
    function = extending_spr if move == "spr" else extending_tbr
    return function(adjacency, edge, n_tips, BOUNDS, rng, NO_STRETCH, p_extend)


def unrooted(tree):
    parent, left, right, length, _ = tree
    n_tips = (len(parent) + 2) // 2
    adjacency, edge = np.zeros((len(parent), 3), np.int32), np.zeros((len(parent), 3))
    unroot(parent, left, right, length, n_tips, adjacency, edge)
    return adjacency, edge, n_tips


def hung(adjacency, edge, n_tips):
    n = len(adjacency)
    parent, left, right = (np.full(n, -1, np.int32) for _ in range(3))
    length, postorder, stack = np.zeros(n), np.zeros(n - 1, np.int32), np.zeros(n, np.int32)
    hang(adjacency, edge, n_tips, parent, left, right, length, postorder, stack)
    return parent, left, right, length, postorder


def splits_with_lengths(tree) -> frozenset:
    """What a tree is, whatever its internal numbers: the tips below every branch, and its length."""
    parent, _, _, length, postorder = tree
    n_tips = (len(parent) + 2) // 2
    below = [1 << x if x < n_tips else 0 for x in range(len(parent))]
    for x in postorder[:-1]:
        below[parent[x]] |= below[x]
    return frozenset((below[x], round(float(length[x]), 6)) for x in postorder)


def outcomes(tree, move: str, n: int, p_extend: float, seed: int):
    """Counter of what n proposals lead to, and by which log Hastings ratio, with an example of each.

    A tree can be reached by several walks, each with a reverse walk of its own: detailed balance is held walk
    by walk.
    """
    rng, arrays, seen_arrays = stream(seed, 0, 0), Counter(), {}
    adjacency0, edge0, n_tips = unrooted(tree)
    for _ in range(n):
        adjacency, edge = adjacency0.copy(), edge0.copy()
        ratio = propose(move, adjacency, edge, n_tips, rng, p_extend)
        if ratio == -np.inf:
            continue
        same = adjacency.tobytes(), edge.round(6).tobytes(), round(ratio, 6)
        arrays[same] += 1
        seen_arrays[same] = adjacency, edge
    counts, seen = Counter(), {}
    for same, times in arrays.items():
        proposed = hung(*seen_arrays[same], n_tips)
        key = splits_with_lengths(proposed), same[2]
        counts[key] += times
        seen[key] = proposed
    return counts, seen


def distinct_tree(n_tips: int, seed: int):
    rng = np.random.default_rng(seed)
    parent, left, right, length, postorder = random_tree(n_tips, rng)
    length[1:] = rng.permutation(np.arange(1, len(length))) / 10
    return parent, left, right, length, postorder


def check_valid(tree, n_tips: int) -> None:
    parent, left, right, length, postorder = tree
    n = 2 * n_tips - 2
    assert sorted(postorder) == list(range(1, n))
    place = np.empty(n, int)
    place[postorder] = np.arange(n - 1)
    place[0] = n
    for x in range(1, n):
        assert place[parent[x]] > place[x]
        assert length[x] > 0
    for x in range(n_tips, n):
        assert {parent[left[x]], parent[right[x]]} == {x}
    assert parent[left[0]] == 0


@pytest.mark.parametrize("move", ["nni", "spr", "tbr"])
@pytest.mark.parametrize("n_tips", [4, 5, 12, 40])
def test_thousands_of_moves_keep_the_tree_valid(move, n_tips):
    tree, rng = distinct_tree(n_tips, 3), stream(5, 0, 0)
    total = tree[3][1:].sum()
    for _ in range(500):
        adjacency, edge, _ = unrooted(tree)
        if propose(move, adjacency, edge, n_tips, rng, 0.7) > -np.inf:
            tree = hung(adjacency, edge, n_tips)
            check_valid(tree, n_tips)
    assert tree[3][1:].sum() == pytest.approx(total)  # lengths were permuted, none got lost


@pytest.mark.parametrize("move", ["nni", "spr", "tbr"])
@pytest.mark.parametrize("p_extend", [0.5, 0.8])
def test_the_hastings_ratio_is_that_of_counted_proposals(move, p_extend):
    start, n = distinct_tree(6, 1), 30_000
    counts, seen = outcomes(start, move, n, p_extend, seed=1)
    home, checked = splits_with_lengths(start), 0
    for key, forward in counts.most_common(6):
        ratio = key[1]
        back = outcomes(seen[key], move, n, p_extend, seed=2)[0][home, 0.0 - ratio]
        error = np.sqrt(1 / forward + 1 / max(back, 1))
        assert abs(np.log(back / forward) - ratio) < 4 * error, (move, forward, back, ratio)
        checked += 1
    assert checked >= 4


def test_counting_notices_a_wrong_ratio():
    """At p_extend = 0.8 some ratios of SPR are far from 1: taking them for 1 fails the test above."""
    start, n = distinct_tree(6, 1), 30_000
    counts, seen = outcomes(start, "spr", n, 0.8, seed=1)
    home, worst = splits_with_lengths(start), 0.0
    for key, forward in counts.most_common(6):
        back = outcomes(seen[key], "spr", n, 0.8, seed=2)[0][home, 0.0 - key[1]]
        worst = max(worst, abs(np.log(back / forward)) / np.sqrt(1 / forward + 1 / back))
    assert worst > 8
