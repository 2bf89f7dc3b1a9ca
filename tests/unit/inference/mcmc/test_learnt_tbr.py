"""Every reconnection along known splits has one that takes tree and lengths back, with the same weight turned
round; ends that go together come to trees that no subtree alone goes to."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from phloem.inference.mcmc.compiled.dispatch import Proposal
from phloem.inference.mcmc.compiled.known_splits import KNOWN, name_splits
from phloem.inference.mcmc.moves import learnt_tbr as move
from phloem.inference.mcmc.split_memory import looked_at, no_splits, note
from phloem.inference.mcmc.start import random_tree, stream
from statistical.mcmc.move_cases import known_splits
from unit.inference.mcmc.test_walks import (
    JOINT,
    characters,
    check_valid,
    distinct_tree,
    hung,
    splits_with_lengths,
    unrooted,
)

TIPS = 7


@cache
def known():
    """Splits and lengths of 200 random trees, as if each had been looked at often enough to be known."""
    rng, found = np.random.default_rng(5), no_splits(TIPS, 1)
    for _ in range(200):
        *arrays, lengths = random_tree(TIPS, rng)
        lengths[:-1] *= rng.uniform(0.5, 2.0, len(lengths) - 1)
        names = ("parent", "left", "right", "order")
        tree = SimpleNamespace(**{name: array[None, None] for name, array in zip(names, arrays)}, **found)
        tree.slot, tree.lengths = np.zeros(1, np.int64), np.maximum(lengths, 1e-3)[None, None, None]
        note(tree, TIPS, looked_at(SimpleNamespace(n_tips=TIPS), tree))
    for name in ("split_sums", "split_looks"):
        found[name] *= KNOWN
    return known_splits(found, TIPS)


def looked(tree) -> Proposal:
    """As the move begins."""
    adjacency, edge, lengths, _ = unrooted(tree)
    _, left, right, order, _ = tree
    splits, still = known()._replace(left=left.copy(), right=right.copy()), np.zeros((1, 0))
    name_splits(splits, order)
    given = TIPS, stream(1, 0, 0), 1.0, 1e-8, 1e3, 0.5, np.zeros(0), lengths, 0, splits.left, splits.right
    rest = adjacency, edge, np.zeros(0), 0, still, still, characters(TIPS), JOINT, order, splits
    return Proposal(*given, int(adjacency[0, 0]), *rest)


def pairs(p, s: int):
    """Places outside and inside of a branch that have a weight."""
    middle = move.walk(p.splits, s, False, 0)
    end = move.walk(p.splits, s, True, middle)
    outside, inside = [move.STAYS, *range(middle)], [move.STAYS, *range(middle, end)]
    return [(i, j) for i in outside for j in inside if move.weight_of(p.splits, i, j) > 0]


def reconnected(tree, s: int, pair: tuple[int, int], twice: bool):
    """The tree with a branch cut and put back; the log of the Jacobian, and what comes and goes. twice: that
    branch's length is fitted to both its ends."""
    p = looked(tree)
    pairs(p, s)  # which lists the places
    (outside, inside), ratio = pair, 0.0
    shares = move.least_shares(p.splits, outside, inside)
    if outside != move.STAYS:
        ratio += move.fit_lengths(p, s, outside, False) + move.fit_cut(p, s, outside, False)
    if inside != move.STAYS:
        ratio += move.fit_lengths(p, s, inside, True)
        ratio += move.fit_cut(p, s, inside, True) if twice or outside == move.STAYS else 0.0
    if outside != move.STAYS:
        move.move_subtree(p, s, outside)
    if inside != move.STAYS:
        move.reroot_subtree(p, s, inside)
    new = hung(p.adjacency, p.edge, p.lengths, TIPS)
    assert sorted(p.splits.below[:-1]) == sorted(looked(new).splits.below[:-1])  # the rooted view agrees
    return new, ratio, shares


def branches(tree) -> list[int]:
    p = looked(tree)
    return [s for s in range(1, 2 * TIPS - 2) if s != p.beside]


def all_of(tree):
    return [(s, pair) for s in branches(tree) for pair in pairs(looked(tree), s)]


def worst_way_back(tree, chosen, twice: bool = False) -> float:
    """How far the best way back of the worst of some reconnections is from its inverse."""
    home, worst = np.array(sorted(splits_with_lengths(tree))), 0.0
    for s, pair in chosen:
        new, ratio, (comes, goes) = reconnected(tree, s, pair, twice)
        check_valid(new, TIPS)
        key, below = looked(tree).splits.below[s], looked(new).splits.below
        there, away = int(np.flatnonzero(below[:-1] == key)[0]), []
        for back in pairs(looked(new), there):
            old, r, (c, g) = reconnected(new, there, back, twice)
            found = np.array(sorted(splits_with_lengths(old)))
            if (found[:, 0] == home[:, 0]).all():
                lengths = np.abs(found[:, 1] - home[:, 1]).max()
                away.append(abs(ratio + r) + abs(comes - g) + abs(goes - c) + lengths)
        worst = max(worst, min(away))
    return worst


def some(seed: int, both: bool):
    """A tree, and reconnections of both ends, or of one."""
    tree = distinct_tree(TIPS, seed)
    found = [(s, pair) for s, pair in all_of(tree) if (move.STAYS not in pair) == both]
    rng = np.random.default_rng(seed)
    return tree, [found[i] for i in rng.choice(len(found), min(len(found), 12), replace=False)]


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_there_is_a_way_back(seed, both):
    assert worst_way_back(*some(seed, both)) < 1e-9


def test_a_length_that_is_fitted_twice_is_noticed():
    """Planted: to each end of the cut branch, one after the other."""
    assert max(worst_way_back(*some(seed, True), twice=True) for seed in (1, 2)) > 0.01


def test_ends_that_go_together_come_to_other_trees():
    """Topologies that single subtrees do not go to, nor interchanges."""
    tree = distinct_tree(TIPS, 1)
    topologies = {False: set(), True: set()}
    for s, pair in all_of(tree):
        new, _, _ = reconnected(tree, s, pair, False)
        topologies[move.STAYS not in pair].add(frozenset(split for split, _ in splits_with_lengths(new)))
    assert topologies[True] - topologies[False] and topologies[False] - topologies[True]
