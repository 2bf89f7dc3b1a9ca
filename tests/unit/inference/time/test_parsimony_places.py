"""Places for a subtree of a dated tree are weighed by the changes that the whole tree would need."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.clustering.reference.parsimony import parsimony_score
from phloem.data.patterns import SitePatterns
from phloem.inference.mcmc.characters import parsimony_room, price_of_change, single_changes
from phloem.inference.time.compiled.edit import graft, prune, root_above
from phloem.inference.time.moves.parsimony_spr import places
from phloem.tree.dated import random_dated_tree
from phloem.tree.tree import Tree
from unit.inference.mcmc.test_parsimony_moves import N_TIPS, PARTS, TAXA
from unit.inference.time.test_moves import Point, proposal


def point(seed):
    """A tree of tips of different ages."""
    rng = np.random.default_rng(seed)
    tree = random_dated_tree(rng.uniform(0, 3, N_TIPS), rng, lambda t, pairs: rng.exponential(4 / pairs))
    return Point(tree, np.ones(2), np.zeros(2 * N_TIPS - 1))


def price(p) -> float:
    """Of the whole tree, by the reference."""
    order = np.argsort(p.heights, kind="stable")
    inner = order[order >= N_TIPS]
    number = np.arange(2 * N_TIPS - 1)
    number[inner] = np.arange(N_TIPS, 2 * N_TIPS - 1)
    parent = np.full(2 * N_TIPS - 1, -1, np.int32)
    below_root = p.parent >= 0
    parent[number[below_root]] = number[p.parent[below_root]]
    tree, total = Tree(TAXA, parent, np.ones(2 * N_TIPS - 1), rooted=True), 0.0
    for own in PARTS:
        patterns = SitePatterns(TAXA, None, own.tip_codes, own.state_sets, own.weights, None)
        total += parsimony_score(tree, patterns) * price_of_change(own.state_sets.shape[1])
    return total


def reaching(p, root, height) -> set[int]:
    """Nodes of a tree whose branches reach above a height."""
    found, here = {root}, [root]
    for x in here:
        children = [c for c in (p.left[x], p.right[x]) if c >= 0 and p.heights[x] > height]
        found.update(children)
        here.extend(children)
    return found


def largest_error(room, seed) -> float:
    """Of differences of costs between the places of every subtree, beside those of whole trees."""
    start, worst, seen = point(seed), 0.0, 0
    for i in range(2 * N_TIPS - 2):
        p = proposal(start, 1.0, None)._replace(parsimony=room)
        own, before = price(p), p.heights[p.parent[i]]
        q, s = prune(p, i)
        n = places(p, i, q, root_above(p, s))
        edges, cost = p.edges[:n].tolist(), room.price_of[:n].copy()
        assert len(set(edges)) == n and set(edges) == reaching(p, root_above(p, s), p.heights[i])
        for j, found in zip(edges, cost):
            there = proposal(start, 1.0, None)
            prune(there, i)
            top = there.heights[there.parent[j]] if there.parent[j] >= 0 else 99.0
            assert top > there.heights[i]
            base = max(there.heights[i], there.heights[j])
            graft(there, i, q, j, before if j == s else 0.5 * (base + top))
            worst = max(worst, abs(found - cost[edges.index(s)] - (price(there) - own)))
            seen += 1
    assert seen > 60
    return worst


@pytest.mark.parametrize("seed", [1, 2])
def test_costs_are_those_of_the_whole_trees(seed):
    assert largest_error(parsimony_room(PARTS), seed) < 1e-9


def test_a_wrong_character_is_noticed():
    room = parsimony_room(PARTS)
    room.sets[3, 0] ^= np.uint64(1)
    assert largest_error(room, 1) > 0.1


def test_changes_on_the_branch_are_those_that_the_place_costs_and_the_tip_s_own():
    room, start = parsimony_room(PARTS[:1]), point(3)
    room.singles[:N_TIPS] = np.arange(N_TIPS)
    for i in range(2 * N_TIPS - 2):
        p = proposal(start, 1.0, None)._replace(parsimony=room)
        q, s = prune(p, i)
        n = places(p, i, q, root_above(p, s))
        at_price = room.price_of[:n] / room.price[0]
        assert np.allclose(room.node[:n] - at_price, i if i < N_TIPS else 0)
        assert at_price.any()


def test_a_state_of_one_tip_is_a_change_on_its_branch():
    a, c, g, any_of_all = np.eye(3, dtype=bool)[[0]], [False, True, False], [False, False, True], [True] * 3
    columns = [[a[0]] * 3 + [c], [a[0], a[0], c, c], [a[0], c, g, g], [a[0], any_of_all, a[0], g], [c] * 4]
    allowed = np.array(columns, bool).transpose(1, 0, 2)
    assert single_changes(allowed, np.array([1.0, 9.0, 9.0, 3.0, 9.0])).tolist() == [0, 0, 0, 4]
