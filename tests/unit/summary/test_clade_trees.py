"""Trees put together of clades, against all trees that the clades allow."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.summary.clade_trees import all_pairs, best_of_clades, clade_tree, log_score, tree_of_clades
from phloem.summary.splits import split_table
from phloem.summary.trees import log_clade_credibility
from phloem.tree.random import uniform_unrooted, yule
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import split_members
from phloem.tree.tree import node_heights


def clade_sets(tree):
    below = [frozenset([x]) for x in range(tree.n_tips)] + [frozenset()] * (tree.n_nodes - tree.n_tips)
    for x in range(tree.n_nodes - 1):
        below[tree.parent[x]] |= below[x]
    return below


def named(tree):
    """Its topology, whatever the order of its taxa."""
    return {frozenset(tree.taxa[x] for x in clade) for clade in clade_sets(tree)}


def pairs_of(trees, kind):
    """Clade → pairs that it may fall into."""
    counted, found = set(), {}
    for tree in trees:
        below = clade_sets(tree)
        counted |= set(below)
        for x in range(tree.n_tips, tree.n_nodes):
            a, b = (below[y] for y in tree.children(x))
            found.setdefault(below[x], set()).add(frozenset((a, b)))
    if kind == "hipstr":
        return found
    return {
        c: {frozenset(p) for p in combinations(counted, 2) if p[0] | p[1] == c and not p[0] & p[1]}
        for c in found
    }


def all_scores(trees, kind):
    """Σ log f of every tree that the pairs allow, by recursion without a table."""
    n, pairs = len(trees), pairs_of(trees, kind)
    share = {}
    for tree in trees:
        for clade in set(clade_sets(tree)):
            share[clade] = share.get(clade, 0) + 1 / n

    def scores(clade):
        if len(clade) == 1:
            return [0.0]
        own = np.log(share[clade])
        return [
            own + x + y
            for pair in pairs[clade]
            for x in scores(sorted(pair, key=sorted)[0])
            for y in scores(sorted(pair, key=sorted)[1])
        ]

    return scores(frozenset(range(trees[0].n_tips)))


@pytest.mark.parametrize("kind", ["hipstr", "ccd"])
@pytest.mark.parametrize("n_tips, n_trees, seed", [(2, 3, 1), (4, 5, 2), (5, 6, 3), (6, 8, 4), (6, 12, 5)])
def test_no_tree_is_better(kind, n_tips, n_trees, seed):
    rng = np.random.default_rng(seed)
    trees = [yule(n_tips, rng) for _ in range(n_trees)]
    table = split_table(sample_of_trees(trees))
    expected = max(all_scores(trees, kind))
    found = best_of_clades(table, kind)
    assert log_score(table, found) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert log_score(table, found) >= log_clade_credibility(table).max() - 1e-12
    if kind == "ccd":
        assert log_score(table, found) >= log_score(table, best_of_clades(table, "hipstr")) - 1e-12
    if n_tips > 4:  # not any tree of these clades would do
        assert min(all_scores(trees, kind)) < expected - 1e-6


def test_a_tree_that_was_not_sampled_is_found():
    """Each half has its best form in another tree, and ccd joins clades that never met as halves of one."""
    left, other = "((a:1,b:1):1,c:2):2", "((a:1,c:1):1,b:2):2"
    right, beside = "((d:1,e:1):1,f:2):2", "((d:1,f:1):1,e:2):2"
    text = f"[&R]({left},{beside});" * 3 + f"[&R]({other},{right});" * 3
    text += f"[&R]({left},((e:1,f:1):1,d:2):2);[&R](((b:1,c:1):1,a:2):2,{right});"
    trees = parse_newick(text)
    sample = sample_of_trees(trees)
    best = parse_newick(f"[&R]({left},{right});")[0]
    assert named(best) not in [named(tree) for tree in trees]
    for kind in ("hipstr", "ccd"):
        tree = clade_tree(sample, kind, "mean")
        assert named(tree) == named(best)
        assert tree.name == kind
        node = clade_sets(tree).index(frozenset(tree.taxa.index(name) for name in "ab"))
        assert tree.annotations[node]["prob"] == 0.5
        assert tree.annotations[node]["height_mean"] == 1.0
    assert named(tree_of_clades(sample, "mcc")) != named(best)


def test_only_ccd_joins_clades_that_never_were_sisters():
    trees = parse_newick(
        "[&R]((((a:1,b:1):1,c:2):1,d:3):1,e:4);" * 2
        + "[&R](((a:1,b:1):1,c:2):2,(d:1,e:1):3);"
        + "[&R]((((d:1,e:1):1,c:2):1,a:3):1,b:4);" * 2
    )
    table = split_table(sample_of_trees(trees))
    members = split_members(table.splits, 5)
    sisters = [
        {frozenset(np.flatnonzero(members[a])), frozenset(np.flatnonzero(members[b]))}
        for _, a, b in zip(*all_pairs(table))
    ]
    assert {frozenset({0, 1, 2}), frozenset({3, 4})} in sisters
    assert {frozenset({0, 1}), frozenset({2, 3, 4})} in sisters  # in no tree
    for kind in ("hipstr", "ccd"):
        assert log_score(table, best_of_clades(table, kind)) == pytest.approx(max(all_scores(trees, kind)))
    assert max(all_scores(trees, "ccd")) >= max(all_scores(trees, "hipstr"))


def test_heights_are_those_of_clades():
    rng = np.random.default_rng(8)
    sample = sample_of_trees([yule(9, rng) for _ in range(30)])
    for kind in ("hipstr", "ccd"):
        for choice in ("mean", "median", "common-ancestor"):
            tree = clade_tree(sample, kind, choice)
            heights = node_heights(tree)
            assert (heights[tree.parent[:-1]] >= heights[:-1]).all()
            assert tree.rooted and tree.n_nodes == 17
        with pytest.raises(InputError, match="no heights to keep"):
            clade_tree(sample, kind, "keep")


@pytest.mark.parametrize("kind", ["mcc", "hipstr"])
def test_numbers_along_branches_are_of_the_same_clade_in_every_tree(kind):
    """Of a number that a clade has wherever it is, plus noise, the noise is the spread."""
    rng = np.random.default_rng(9)
    sample = sample_of_trees([yule(5, rng) for _ in range(60)])
    table = split_table(sample)
    own = rng.normal(size=table.n_splits)
    rate = own[table.which] + 0.01 * rng.normal(size=table.which.shape)
    rate[:, -1] = np.nan
    tree = tree_of_clades(sample, kind, along={"rate": rate})
    assert {"prob", "height_mean", "rate", "rate_median", "rate_95%_HPD"} <= set(tree.annotations[5])
    assert "rate" not in tree.annotations[8]  # no branch above the root
    for x in range(8):
        low, high = tree.annotations[x]["rate_95%_HPD"]
        assert abs(own - tree.annotations[x]["rate"]).min() < 0.02
        assert low <= tree.annotations[x]["rate_median"] <= high and high - low < 0.06
    clades = {frozenset(c): x for x, c in enumerate(tips_below(tree))}
    for split in range(table.n_splits):
        tree_, node = np.argwhere(table.which == split)[0]
        members = frozenset(tips_below(sample.tree(int(tree_)))[node])
        if members in clades and len(members) < 5:
            assert tree.annotations[clades[members]]["rate"] == pytest.approx(own[split], abs=0.02)


def test_branches_that_have_no_number_count_for_nothing():
    rng = np.random.default_rng(9)
    sample = sample_of_trees([yule(5, rng) for _ in range(60)])
    rate = np.full((60, 9), 2.0)
    rate[:45, 0], rate[:, 1] = np.nan, np.nan
    tree = tree_of_clades(sample, "mcc", along={"rate": rate})
    assert tree.annotations[0]["rate"] == 2.0 == tree.annotations[2]["rate"]
    assert tree.annotations[0]["rate_95%_HPD"] == (2.0, 2.0)
    assert "rate" not in tree.annotations[1] and "prob" in tree.annotations[1]


def tips_below(tree):
    found = [{x} if x < tree.n_tips else set() for x in range(tree.n_nodes)]
    for x in range(tree.n_nodes - 1):
        found[tree.parent[x]] |= found[x]
    return found


def test_what_has_no_clades_is_refused():
    rng = np.random.default_rng(9)
    with pytest.raises(InputError, match="rooted, binary"):
        clade_tree(sample_of_trees([uniform_unrooted(5, rng) for _ in range(3)]), "ccd")
    with pytest.raises(InputError, match="rooted, binary"):
        clade_tree(
            sample_of_trees(parse_newick("[&R](a:1,b:1,(c:1,d:1):1);[&R]((a:1,b:1):1,(c:1,d:1):1);")), "ccd"
        )
