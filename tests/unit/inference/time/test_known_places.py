"""What a chain learns of where subtrees are, and the age that a move draws by it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from phloem.inference.mcmc.start import stream
from phloem.inference.time.compiled.edit import prune, root_above
from phloem.inference.time.compiled.known_places import (
    LOOKS,
    MEAN,
    SQUARE,
    age_there,
    entry,
    learn_places,
    name_clades,
    place_key,
    seen_share,
)
from phloem.inference.time.moves.learnt_spr import drawn_age, log_density, share_below
from phloem.inference.time.records import KnownPlaces
from phloem.tree.dated import random_dated_tree
from unit.inference.time.test_moves import prior_draws, proposal

N_TIPS, KEYS = 5, np.array([3, 50, 700, 9000, 110000], np.uint64)


def learnt(trees, size=4096):
    table, ages, looks = np.zeros(size, np.uint64), np.zeros((size, 3)), np.zeros(1)
    for tree in trees:
        keys = np.append(KEYS, np.zeros(N_TIPS - 1, np.uint64))
        for x in tree.order[tree.order >= N_TIPS]:
            keys[x] = keys[tree.left[x]] + keys[tree.right[x]]
        learn_places(table, ages, looks, (tree.parent, tree.left, tree.right, tree.heights), keys)
    return KnownPlaces(np.append(KEYS, np.zeros(4, np.uint64)), np.zeros(9, np.uint64), table, ages, looks)


def random_trees(n):
    rng = np.random.default_rng(2)
    return [
        random_dated_tree(np.zeros(5), rng, lambda t, pairs: rng.exponential(1 / pairs)) for _ in range(n)
    ]


def test_shares_and_ages_are_those_of_the_trees():
    trees = random_trees(300)
    known = learnt(trees)
    cherry = [t.heights[t.parent[0]] for t in trees if t.parent[0] == t.parent[1]]
    for a, b in ((0, 1), (1, 0)):  # of a cherry both tips know
        assert seen_share(known, KEYS[a], KEYS[b]) == len(cherry) / 300
        at = entry(known.table, np.uint64(place_key(KEYS[a], KEYS[b])))
        assert known.ages[at, LOOKS] == len(cherry)
        assert known.ages[at, MEAN] == pytest.approx(np.mean(cherry))
        assert known.ages[at, SQUARE] / len(cherry) == pytest.approx(np.var(cherry))
    beside_others = seen_share(known, KEYS[4], KEYS[:4].sum())
    assert beside_others == np.mean([t.parent[4] == 8 for t in trees])
    assert beside_others != seen_share(known, KEYS[:4].sum() - KEYS[0], KEYS[0] + KEYS[4])  # the same clade
    assert age_there(known, KEYS[0], KEYS[0]) == (0.0, 0.0)


def test_a_full_table_forgets_nothing_and_learns_nothing():
    small, large = learnt(random_trees(300), size=61), learnt(random_trees(300))
    for key in small.table[small.table != 0]:
        at, there = entry(small.table, key), entry(large.table, key)
        assert large.table[there] == key and small.ages[at, LOOKS] <= large.ages[there, LOOKS]
    assert (small.table != 0).all()


def test_ages_have_the_density_that_the_ratio_counts():
    """Of draws on one branch, and above the root: shares in five intervals by the integrated density."""
    for point in prior_draws(3, 4):
        p = proposal(point, 0.2, stream(3, 0, 0))
        _, beside = prune(p, 0)
        name_clades(p)
        root = root_above(p, beside)
        for x in (root, p.left[root], p.right[root]):
            ages = np.array([drawn_age(p, 0, x) for _ in range(20000)])
            for low, high in pairwise(np.quantile(ages, np.linspace(0.0, 0.99, 6))):
                grid = np.linspace(low, high, 2001)
                density = np.exp([log_density(p, 0, x, age) for age in grid])
                assert np.trapezoid(density, grid) == pytest.approx(0.198, abs=0.01)


def test_shares_below_far_ages():
    assert share_below(-1e9, 3.0, 1e-3) == pytest.approx(0.0, abs=1e-300)
    assert share_below(1e9, 3.0, 1e-3) == 1.0
