"""Places for a subtree are weighed by the changes that the tree would need, and so is the way back."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from phloem.clustering.reference.parsimony import parsimony_score
from phloem.data.patterns import SitePatterns
from phloem.inference.mcmc import characters as characters_of_cells
from phloem.inference.mcmc.characters import (
    MOST_CHARACTERS,
    WARP,
    informative,
    of_few_states,
    parsimony_room,
    price_of_change,
)
from phloem.inference.mcmc.compiled.parsimony import insertion_costs
from phloem.inference.mcmc.compiled.unrooted import hang, others, regraft
from phloem.inference.mcmc.records import ParsimonyRoom
from phloem.inference.mcmc.start import stream
from phloem.pruning.cpu.cell_memory import Part
from phloem.tree.tree import Tree
from unit.inference.mcmc.test_walks import (
    characters,
    distinct_tree,
    hung,
    propose,
    splits_with_lengths,
    unrooted,
)

N_TIPS = 9
TAXA = tuple(f"t{i}" for i in range(N_TIPS))


def part(n_states: int, n_patterns: int, seed: int) -> Part:
    """Random characters, some of them unknown or of either of two states, of any weight."""
    rng = np.random.default_rng(seed)
    sets = np.vstack([np.eye(n_states, dtype=bool), np.ones((1, n_states), bool)])
    sets = np.vstack([sets, np.arange(n_states)[None] < 2])
    codes = rng.integers(n_states, size=(N_TIPS, n_patterns))
    odd = rng.random(codes.shape) < 0.15
    codes[odd] = rng.integers(n_states, n_states + 2, odd.sum())
    weights, none = rng.integers(1, 40, n_patterns).astype(float), np.zeros(1, np.int64)
    return Part(codes.astype(np.int32), sets, weights, np.zeros(n_patterns, bool), none, none)


PARTS = [part(4, 30, 1), part(20, 12, 2), part(2, 9, 3)]


def price_of_tree(adjacency, edge, parts) -> float:
    """By the reference, of every part."""
    n = len(adjacency)
    parent, left, right, order, branch, stack = (np.full(n, -1, np.int64) for _ in range(6))
    hang(adjacency, edge, N_TIPS, parent, left, right, order, branch, stack)
    number = np.arange(n)
    number[order[order >= N_TIPS]] = np.arange(N_TIPS, n)
    renamed = np.full(n, -1)
    renamed[number[:-1]] = number[parent[:-1]]
    tree = Tree(TAXA, renamed.astype(np.int32), np.ones(n), rooted=True)
    total = 0.0
    for own in parts:
        patterns = SitePatterns(TAXA, None, own.tip_codes, own.state_sets, own.weights, None)
        total += parsimony_score(tree, patterns) * price_of_change(own.state_sets.shape[1])
    return total


def costs_of_places(adjacency, v, s, room):
    """Branch, as a pair of nodes, → cost; the gap is (a, b)."""
    a, b = others(adjacency, v, s)
    first, place_b, end = insertion_costs(adjacency, N_TIPS, v, s, room)
    found = {(a, b): room.cost[first]}
    for i in range(first + 1, end):
        if i != place_b:
            x = int(room.node[i])
            gap = (a, b) if i < place_b else (b, a)
            found[(int(room.above[x]), x, *gap)] = room.cost[i]
    return found


def largest_error(room: ParsimonyRoom, parts, tree_seed: int) -> float:
    """Of differences of costs between places of a subtree, against those of whole trees."""
    tree, worst = distinct_tree(N_TIPS, tree_seed), 0.0
    adjacency, edge, _, _ = unrooted(tree)
    own = price_of_tree(adjacency, edge, parts)
    for v in range(N_TIPS, 2 * N_TIPS - 2):
        for s in adjacency[v].tolist():
            found = costs_of_places(adjacency, v, s, room)
            (_, at_home), *elsewhere = found.items()
            for (here, ahead, a, b), cost in elsewhere:
                moved, branches = adjacency.copy(), edge.copy()
                regraft(moved, branches, v, s, (a, b), (here, ahead))
                there = price_of_tree(moved, branches, parts)
                worst = max(worst, abs((cost - at_home) - (there - own)))
    return worst


@pytest.mark.parametrize("seed", [1, 2])
def test_costs_are_those_of_the_whole_trees(seed):
    assert largest_error(parsimony_room(PARTS), PARTS, seed) < 1e-9


def test_a_wrong_character_or_price_is_noticed():
    room = parsimony_room(PARTS)
    room.sets[3, 0] ^= np.uint64(1)
    assert largest_error(room, PARTS, 1) > 0.1
    room = parsimony_room(PARTS)
    room.price[1] *= 1.01
    assert largest_error(room, PARTS, 1) > 1e-3


def test_the_proposal_and_its_ratio_follow_the_costs():
    """Without stretches, every place is proposed as often as its weight says, by the ratio of its weights."""
    tree, rng, room = distinct_tree(6, 3), stream(4, 0, 0), characters(6)
    adjacency, edge, lengths, _ = unrooted(tree)
    expected: Counter = Counter()
    for v in range(6, 10):
        for s in adjacency[v].tolist():
            a, b = others(adjacency, v, s)
            first, place_b, end = insertion_costs(adjacency, 6, v, s, room)
            cost, node, above = room.cost.copy(), room.node.copy(), room.above.copy()
            weight = np.exp(-cost[first:end])
            for i in range(first + 1, end):
                if i == place_b:
                    continue
                moved, branches, gap = adjacency.copy(), edge.copy(), (a, b) if i < place_b else (b, a)
                regraft(moved, branches, v, s, gap, (above[node[i]], node[i]))
                own, there = weight[0], weight[i - first]
                forward, back = there / (weight.sum() - own), own / (weight.sum() - there)
                tree_then = splits_with_lengths(hung(moved, branches, lengths, 6))
                expected[tree_then, round(math.log(back / forward), 6)] += forward / 12
    n, found = 40_000, Counter()
    for _ in range(n):
        moved, branches, own = adjacency.copy(), edge.copy(), lengths.copy()
        ratio = propose("parsimony_spr", moved, branches, own, 6, rng, 0.5)
        if ratio > -math.inf:
            found[splits_with_lengths(hung(moved, branches, own, 6)), round(ratio, 6)] += 1
    assert set(found) <= set(expected) and len(expected) > 20
    z = [(found[k] - n * p) / math.sqrt(n * p * (1 - p)) for k, p in expected.items()]
    assert max(map(abs, z)) < 4.5
    assert len({ratio for _, ratio in expected}) > 10  # control: ratios that could be forgotten


def test_characters_that_tell_nothing_are_left_out_and_many_are_thinned():
    allowed = np.eye(4, dtype=bool)[np.array([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 2, 2]]).T]
    assert informative(allowed).tolist() == [False, False, True, True]
    codes, none = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int32), np.zeros(1, np.int64)
    n = 3 * MOST_CHARACTERS
    many = Part(codes, np.eye(2, dtype=bool), np.array([n, n]), np.zeros(2, bool), none, none)
    room = parsimony_room([many])
    assert room.blocks.tolist() == [[0, MOST_CHARACTERS // 64, 2]]
    assert room.price[0] == pytest.approx(6 * price_of_change(2))
    assert parsimony_room([many], wanted=False).blocks.shape == (0, 3)


def test_cells_of_a_part_are_one_part(monkeypatch):
    """Else each would be thinned, and lie in blocks, by itself, as parts with models of their own are, the
    control."""
    rng, none = np.random.default_rng(3), np.zeros(1, np.int64)
    codes, weights = rng.integers(0, 4, (7, 900)).astype(np.int32), rng.integers(1, 20, 900).astype(float)
    whole = Part(codes, np.eye(4, dtype=bool), weights, rng.random(900) < 0.1, none, none)
    ends = np.linspace(0, 900, 6).astype(int).tolist()
    cells = [
        replace(
            whole, tip_codes=codes[:, a:b], weights=weights[a:b], unobservable=whole.unobservable[a:b],
            model_of=0 if a else -1,
        )
        for a, b in pairwise(ends)
    ]  # fmt: skip
    room = parsimony_room([whole])
    monkeypatch.setattr(characters_of_cells, "SLICE", 70)
    assert all(np.array_equal(a, b) for a, b in zip(room, parsimony_room(cells)))
    assert len(room.blocks) < len(parsimony_room([replace(cell, model_of=-1) for cell in cells]).blocks)


def test_characters_lie_in_blocks_of_as_many_states_as_they_show():
    """Of twenty states: two, unknown ones left out; three, one of them in a set of two only; five."""
    few = np.eye(20, dtype=bool)[[[3, 4, 0], [3, 4, 1], [7, 5, 2], [7, 5, 3], [7, 5, 4]]]
    few[2, 0], few[4, 1] = True, np.arange(20) % 19 == 5
    few[3, 1] = np.isin(np.arange(20), [5, 9])
    blocks = of_few_states(few)
    assert [block.shape for block in blocks] == [(5, 1, 2), (5, 1, 3), (5, 1, 8)]
    assert blocks[0][:, 0].tolist() == [[True, False]] * 2 + [[True, True]] + [[False, True]] * 2
    assert blocks[2][:, 0].sum() == 5


def test_the_price_of_a_change_is_that_of_mrbayes():
    """Warp 0.1 and a typical length of 0.05: 0.41 log units a change of nucleotides."""
    assert price_of_change(4) == pytest.approx(-WARP * math.log(0.25 - 0.25 * math.exp(-0.2 / 3)))
    assert price_of_change(4) == pytest.approx(0.4127, abs=1e-3)
