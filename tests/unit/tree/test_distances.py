"""Distances between trees against all quartets one by one, and lengths by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.trees import parse_trees
from phloem.tree.distances import branch_score, quartet_distance
from phloem.tree.random import uniform_unrooted, yule
from phloem.tree.reroot import root_at_midpoint
from phloem.tree.splits import split_members, tree_splits
from phloem.tree.tree import Tree


def tree(text: str) -> Tree:
    return parse_trees(text)[0]


def resolutions(one: Tree, taxa) -> list[frozenset | None]:
    """Of every quartet of taxa the pair that is with the first of them, by looking at all branches."""
    place = {name: i for i, name in enumerate(one.taxa)}
    sides = split_members(tree_splits(one), one.n_tips)[:, [place[name] for name in taxa]]
    found: list[frozenset | None] = []
    for four in combinations(range(len(taxa)), 4):
        halves = [row[list(four)] for row in sides if row[list(four)].sum() == 2]
        found.append(frozenset(np.flatnonzero(halves[0] == halves[0][0]).tolist()) if halves else None)
    return found


def by_hand(a: Tree, b: Tree) -> float:
    pairs = zip(resolutions(a, a.taxa), resolutions(b, a.taxa))
    return sum(0.0 if x == y else 0.5 if None in (x, y) else 1.0 for x, y in pairs)


@pytest.mark.parametrize("n", [4, 5, 7, 11])
def test_quartets_one_by_one(n):
    rng = np.random.default_rng(n)
    for _ in range(6):
        a, b = uniform_unrooted(n, rng), uniform_unrooted(n, rng)
        assert quartet_distance(a, b) == pytest.approx(by_hand(a, b), abs=1e-9)
        assert quartet_distance(a, a) == pytest.approx(0, abs=1e-9)
    assert any(by_hand(a, uniform_unrooted(n, rng)) > 0 for _ in range(9))


def test_quartets_of_trees_that_are_not_resolved():
    rows = ["((a,b),(c,d),(e,f,g));", "(a,b,c,d,e,f,g);", "((a,c,b),d,(e,(f,g)));", "((a,b,c,d),(e,f),g);"]
    for one, other in combinations(map(tree, rows), 2):
        assert quartet_distance(one, other) == pytest.approx(by_hand(one, other))


def test_a_root_changes_no_distance():
    rng = np.random.default_rng(1)
    a, b = uniform_unrooted(9, rng), uniform_unrooted(9, rng)
    rooted = root_at_midpoint(b)
    assert rooted.rooted and quartet_distance(a, rooted) == pytest.approx(quartet_distance(a, b))
    assert branch_score(a, rooted) == pytest.approx(branch_score(a, b))
    assert branch_score(b, rooted) == pytest.approx(0, abs=1e-12)
    assert quartet_distance(yule(4, rng), yule(4, rng)) in (0, 1)


def test_branch_scores_by_hand():
    a, b = tree("((a:1,b:2):3,c:4,d:5);"), tree("((a:1,c:4):1,b:2,d:7);")
    assert branch_score(a, b) == pytest.approx(np.sqrt(3**2 + 1**2 + 2**2))
    assert branch_score(a, a) == 0
    with pytest.raises(InputError, match="no length"):
        branch_score(a, tree("((a,b),c,d);"))
    with pytest.raises(InputError):
        branch_score(a, tree("((a:1,b:2):3,c:4,x:5);"))
