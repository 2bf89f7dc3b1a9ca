"""Topology moves keep trees valid, and their Hastings ratio is the one that counting proposals gives."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from phloem.inference.mcmc.characters import parsimony_room
from phloem.inference.mcmc.compiled.dispatch import Proposal
from phloem.inference.mcmc.compiled.known_splits import KNOWN
from phloem.inference.mcmc.compiled.unrooted import hang, unroot
from phloem.inference.mcmc.move_table import registered
from phloem.inference.mcmc.records import Joint, KnownSplits, ParsimonyRoom
from phloem.inference.mcmc.split_memory import looked_at, no_splits, note
from phloem.inference.mcmc.start import random_tree, stream
from phloem.pruning.cpu.cell_memory import Part
from statistical.mcmc.move_cases import known_splits

JOINT = Joint(
    *(np.zeros(0, np.int64) for _ in range(3)), np.zeros((0, 2)), np.zeros((1, 1)), np.zeros(0),
    np.zeros(1), 1.0, np.zeros(0, np.int64),
)  # fmt: skip
WALKS = ["spr", "tbr"]
OTHERS = ["nni", "learnt_nni", "learnt_tbr", "parsimony_spr"]  # to which p_extend is nothing
FEW, MANY = 10_000, 30_000  # proposals: the control is seen with few
ALIKE = ("tbr", "parsimony_spr")  # others of the kind are in the fast suite
FAST = [(move, 0.5, FEW) for move in [*WALKS, *OTHERS] if move not in ALIKE]
SLOW = [*product([*WALKS, *OTHERS], [0.5], [MANY]), *product(WALKS, [0.8], [MANY])]
NO_STRETCH = 1e-13  # then lengths are only permuted and name the proposal


def propose(move: str, adjacency, edge, lengths, n_tips: int, rng, p_extend: float) -> float:
    left, right, order = (np.zeros(0, np.int64) for _ in range(3))
    if registered()[move].splits:
        _, left, right, order, _ = hung(adjacency, edge, lengths, n_tips)
    beside = int(adjacency[0, 0])
    given = n_tips, rng, NO_STRETCH, 1e-8, 100.0, p_extend, np.zeros(0), lengths, 0, left, right, beside
    room, still, known = np.zeros(0), np.zeros((1, 0)), splits_seen(n_tips)._replace(left=left, right=right)
    return registered()[move].propose(
        Proposal(*given, adjacency, edge, room, 0, still, still, characters(n_tips), JOINT, order, known)
    )


@cache
def splits_seen(n_tips: int) -> KnownSplits:
    """Shares of looks, as if these had been too few for lengths to be known."""
    rng, known = np.random.default_rng(2), no_splits(n_tips, 1)
    for _ in range(60):
        *arrays, lengths = random_tree(n_tips, rng)
        names = ("parent", "left", "right", "order")
        tree = SimpleNamespace(**{name: array[None, None] for name, array in zip(names, arrays)}, **known)
        tree.slot, tree.lengths = np.zeros(1, np.int64), lengths[None, None, None]
        note(tree, n_tips, looked_at(SimpleNamespace(n_tips=n_tips), tree))
    for name in ("split_sums", "split_looks"):
        known[name] *= KNOWN / 61
    return known_splits(known, n_tips)


@cache
def characters(n_tips: int) -> ParsimonyRoom:
    """A few that tell trees apart, and disagree."""
    codes = np.random.default_rng(1).integers(3, size=(n_tips, 6)).astype(np.int32)
    hidden, one = np.zeros(6, bool), np.zeros(1, np.int64)
    return parsimony_room([Part(codes, np.eye(3, dtype=bool), np.ones(6), hidden, one, one)])


def unrooted(tree):
    parent, left, right, _, length = tree
    n_tips = (len(parent) + 1) // 2
    adjacency, edge = np.zeros((len(parent), 3), np.int64), np.zeros((len(parent), 3), np.int64)
    unroot(parent, left, right, n_tips, adjacency, edge)
    return adjacency, edge, length[None].copy(), n_tips


def hung(adjacency, edge, lengths, n_tips):
    n = len(adjacency)
    parent, left, right, order, branch, stack = (np.full(n, -1, np.int64) for _ in range(6))
    hang(adjacency, edge, n_tips, parent, left, right, order, branch, stack)
    return parent, left, right, order, np.where(branch >= 0, lengths[0, branch], 0.0)


def splits_with_lengths(tree) -> frozenset:
    """What a tree is, whatever its internal numbers: the tips below every branch, and its length."""
    parent, _, _, order, length = tree
    n_tips = (len(parent) + 1) // 2
    below = [1 << x if x < n_tips else 0 for x in range(len(parent))]
    for x in order[:-1]:
        below[parent[x]] |= below[x]
    every = below[order[-1]]
    return frozenset((min(below[x], every - below[x]), round(float(length[x]), 6)) for x in branches(tree))


def branches(tree) -> list[int]:
    """Nodes that have a branch of their own: the root has none, and its child beside tip 0 shares tip 0's."""
    root = len(tree[0]) - 1
    return [x for x in range(root) if x == 0 or tree[0][x] != root]


def outcomes(tree, move: str, n: int, p_extend: float, seed: int):
    """Counter of what n proposals lead to, and by which log Hastings ratio, with an example of each.

    A tree can be reached by several walks, each with a reverse walk of its own: detailed balance is held walk
    by walk.
    """
    rng, arrays, seen_arrays = stream(seed, 0, 0), Counter(), {}
    *given, n_tips = unrooted(tree)
    for _ in range(n):
        adjacency, edge, lengths = (array.copy() for array in given)
        ratio = propose(move, adjacency, edge, lengths, n_tips, rng, p_extend)
        if ratio == -np.inf:
            continue
        same = adjacency.tobytes(), edge.tobytes(), lengths.round(6).tobytes(), round(ratio, 6)
        arrays[same] += 1
        seen_arrays[same] = adjacency, edge, lengths
    counts, seen = Counter(), {}
    for same, times in arrays.items():
        proposed = hung(*seen_arrays[same], n_tips)
        key = splits_with_lengths(proposed), same[3]
        counts[key] += times
        seen[key] = proposed
    return counts, seen


def distinct_tree(n_tips: int, seed: int):
    rng = np.random.default_rng(seed)
    tree = random_tree(n_tips, rng)
    tree.lengths[branches(tree)] = rng.permutation(np.arange(1, 2 * n_tips - 2)) / 10
    return tree


def check_valid(tree, n_tips: int) -> None:
    parent, left, right, order, length = tree
    n, root = 2 * n_tips - 1, 2 * n_tips - 2
    assert sorted(order) == list(range(n)) and order[-1] == root and parent[root] == -1
    place = np.empty(n, int)
    place[order] = np.arange(n)
    for x in range(root):
        assert place[parent[x]] > place[x]
    for x in range(n_tips, n):
        assert left[x] != right[x] and {parent[left[x]], parent[right[x]]} == {x}
    assert (left[:n_tips] == -1).all() and (right[:n_tips] == -1).all()
    assert 0 in (left[root], right[root]) and left[root] + right[root] >= n_tips
    own = branches(tree)
    assert len(own) == 2 * n_tips - 3 and (length[own] > 0).all()
    assert (np.delete(length, own) == 0).all()


@pytest.mark.parametrize("move", [*WALKS, *OTHERS])
@pytest.mark.parametrize("n_tips", [4, 5, 12, 40])
def test_thousands_of_moves_keep_the_tree_valid(move, n_tips):
    tree, rng = distinct_tree(n_tips, 3), stream(5, 0, 0)
    total = tree[4].sum()
    for _ in range(500):
        adjacency, edge, lengths, _ = unrooted(tree)
        if propose(move, adjacency, edge, lengths, n_tips, rng, 0.7) > -np.inf:
            tree = hung(adjacency, edge, lengths, n_tips)
            check_valid(tree, n_tips)
    assert tree[4].sum() == pytest.approx(total)  # lengths were permuted, none got lost


@pytest.mark.parametrize(
    ("move", "p_extend", "n"), [*FAST, *(pytest.param(*row, marks=pytest.mark.slow) for row in SLOW)]
)
def test_the_hastings_ratio_is_that_of_counted_proposals(move, p_extend, n):
    start = distinct_tree(6, 1)
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
    start, n = distinct_tree(6, 1), FEW
    counts, seen = outcomes(start, "spr", n, 0.8, seed=1)
    home, worst = splits_with_lengths(start), 0.0
    for key, forward in counts.most_common(6):
        back = outcomes(seen[key], "spr", n, 0.8, seed=2)[0][home, 0.0 - key[1]]
        worst = max(worst, abs(np.log(back / forward)) / np.sqrt(1 / forward + 1 / back))
    assert worst > 8
