"""Consensus trees by hand, and against sets of names on random samples."""

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.summary.trace import hpd_interval
from phloem.summary.trees import consensus_tree
from phloem.tree.random import uniform_rooted, uniform_unrooted
from phloem.tree.rearrange import nni_neighbours, topology_key
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import split_members, tree_splits

TAXA = ["a", "b", "c", "d", "e"]


def sample(text):
    return sample_of_trees(parse_newick(text, taxa=TAXA))


def topology(text):
    return topology_key(parse_newick(text, taxa=TAXA)[0])


TEXT = (
    "((a:1,b:2):3,(c:4,d:5):6,e:7);" * 3
    + "((a:2,b:2):1,(c:4,e:5):6,d:7);" * 2
    + "((a:3,c:2):1,(b:4,e:5):6,d:7);" * 4
)


def test_majority_rule_drops_what_has_no_majority():
    tree = consensus_tree(sample(TEXT))
    assert topology_key(tree) == topology("((a,b),c,d,e);")
    node = 5
    assert tree.annotations[node]["prob"] == pytest.approx(5 / 9)
    assert tree.lengths[node] == pytest.approx((3 * 3 + 2 * 1) / 5)
    assert tree.lengths[0] == pytest.approx((3 * 1 + 2 * 2 + 4 * 3) / 9)
    assert not tree.rooted and tree.parent[0] == tree.n_nodes - 1


def test_exactly_half_is_no_majority():
    assert consensus_tree(sample("((a,b),c,d,e);((a,c),b,d,e);")).n_nodes == 6


def test_allcompat_adds_the_next_best():
    tree = consensus_tree(sample(TEXT), "allcompat")
    assert topology_key(tree) == topology("((a,b),(c,d),e);")


def test_runs_are_weighed_by_their_trees():
    runs = [sample("((a:1,b:1):1,c:1,d:1,e:1);" * 3), sample("((a:1,c:1):1,b:1,d:1,e:1);")]
    tree = consensus_tree(runs)
    notes = tree.annotations[5]
    assert notes["prob"] == 0.75
    assert notes["prob_range"] == (0.0, 1.0)
    assert notes["prob_stddev"] == pytest.approx(np.std([0, 1], ddof=1))
    assert notes["prob(percent)"] == "75"


def test_lengths_and_their_interval():
    rng = np.random.default_rng(3)
    drawn = rng.gamma(2.0, 1.0, 200)
    tree = consensus_tree(sample("".join(f"((a:1,b:1):{x},c:1,d:1,e:1);" for x in drawn)))
    notes = tree.annotations[5]
    assert notes["length_mean"] == pytest.approx(drawn.mean())
    assert notes["length_median"] == pytest.approx(np.median(drawn))
    assert notes["length_95%HPD"] == pytest.approx(hpd_interval(drawn))


@pytest.mark.parametrize("n", [7, 37, 503])
def test_hpd_is_that_of_arviz_where_the_share_is_no_whole_number(n):
    from arviz_stats.base import array_stats

    values = np.random.default_rng(n).gamma(2.0, size=n)
    assert hpd_interval(values) == pytest.approx(tuple(array_stats.hdi(values, prob=0.95, axis=-1)))
    whole = np.random.default_rng(n).gamma(2.0, size=100)
    assert hpd_interval(whole) != pytest.approx(tuple(array_stats.hdi(whole, prob=0.95, axis=-1)))


def test_hpd_is_the_shortest_interval():
    values = np.random.default_rng(1).exponential(1.0, 501)
    low, high = hpd_interval(values, 0.9)
    ordered = np.sort(values)
    held = int(np.ceil(0.9 * 501))
    widths = [ordered[i + held - 1] - ordered[i] for i in range(501 - held + 1)]
    assert high - low == min(widths)
    assert np.mean((values >= low) & (values <= high)) >= 0.9
    assert hpd_interval(np.array([2.0])) == (2.0, 2.0)


@pytest.mark.parametrize("n", [6, 12, 80])
@pytest.mark.parametrize("rooted", [False, True])
def test_against_sets(n, rooted):
    rng = np.random.default_rng(n)
    make = uniform_rooted if rooted else uniform_unrooted
    centre = make(n, rng)
    trees = [centre] * 12 + [make(n, rng) for _ in range(8)]
    if not rooted:
        trees += nni_neighbours(centre)[:6]
    counted: dict[frozenset, int] = {}
    for tree in trees:
        for row in split_members(tree_splits(tree), n):
            group = frozenset(np.flatnonzero(row).tolist())
            counted[group] = counted.get(group, 0) + 1
    majority = {group for group, count in counted.items() if count > len(trees) / 2}
    tree = consensus_tree(sample_of_trees(trees))
    found = {frozenset(np.flatnonzero(row).tolist()) for row in split_members(tree_splits(tree), n)}
    assert found == majority
    assert tree.rooted == rooted
    full = consensus_tree(sample_of_trees(trees), "allcompat")
    assert full.is_binary or not rooted
    assert full.n_nodes == (2 * n - 1 if rooted else 2 * n - 2)


def test_thresholds_below_half_are_refused():
    with pytest.raises(InputError):
        consensus_tree(sample(TEXT), threshold=0.3)
