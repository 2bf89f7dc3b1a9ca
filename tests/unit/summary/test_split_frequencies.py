"""Frequencies of splits and ASDSF against counting by hand."""

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.io.newick import parse_newick
from phloem.summary.splits import split_frequency_deviation, split_table, topology_table
from phloem.tree.random import uniform_unrooted, yule
from phloem.tree.rearrange import topology_key
from phloem.tree.sample import sample_of_arrays, sample_of_trees
from phloem.tree.splits import split_members, tree_splits


def runs_of(*texts):
    return [sample_of_trees(parse_newick(text, taxa=["a", "b", "c", "d", "e"])) for text in texts]


AB_CD, AB_CE, AC_DE = "((a,b),(c,d),e);", "((a,b),(c,e),d);", "((a,c),(d,e),b);"


def test_frequencies_by_hand():
    table = split_table(runs_of(AB_CD * 3 + AC_DE, AB_CD + AB_CE * 2 + AC_DE))
    names = {
        "".join("abcde"[x] for x in np.flatnonzero(row)): frequency.tolist()
        for row, frequency, trivial in zip(split_members(table.splits, 5), table.frequency.T, table.trivial)
        if not trivial
    }
    assert names == {
        "cde": [0.75, 0.75], "cd": [0.75, 0.25], "ce": [0, 0.5], "bde": [0.25, 0.25], "de": [0.25, 0.25],
    }  # fmt: skip
    deviation = split_frequency_deviation(table)
    expected = [np.std(pair, ddof=1) for pair in names.values()]
    assert deviation.average == pytest.approx(np.mean(expected))
    assert deviation.largest == pytest.approx(max(expected))
    assert deviation.n_splits == 5
    assert deviation.average != pytest.approx(np.mean([np.std(pair) for pair in names.values()]))


def test_rare_splits_do_not_count():
    first, second = runs_of(AB_CD * 95 + AC_DE * 5, AB_CD * 99 + AC_DE)
    assert split_frequency_deviation([first, second]).n_splits == 2
    assert split_frequency_deviation([first, second], minimum=0.05).n_splits == 4


def test_equal_runs_agree_and_one_run_cannot():
    (run,) = runs_of(AB_CD + AC_DE)
    assert split_frequency_deviation([run, run]).average == 0
    with pytest.raises(InputError, match="two runs"):
        split_frequency_deviation([run])


@pytest.mark.parametrize("n", [5, 70])
def test_table_agrees_with_single_trees(n):
    rng = np.random.default_rng(n)
    trees = [uniform_unrooted(n, rng) for _ in range(30)]
    table = split_table(sample_of_trees(trees))
    for i, tree in enumerate(trees):
        mine = table.which[i][table.which[i] >= 0]
        mine = np.unique(mine[~table.trivial[mine]])
        np.testing.assert_array_equal(table.splits[mine], tree_splits(tree))


def test_sample_from_arrays_in_any_numbering():
    rng = np.random.default_rng(4)
    trees = [uniform_unrooted(9, rng) for _ in range(20)]
    parent, lengths = np.empty((20, 16), int), np.empty((20, 16))
    for i, tree in enumerate(trees):
        new = np.concatenate([np.arange(9), 9 + rng.permutation(7)])
        parent[i, new] = np.append(new[tree.parent[:-1]], -1)
        lengths[i, new] = tree.lengths
    sample = sample_of_arrays(trees[0].taxa, parent, lengths)
    assert np.all(sample.parent[:, :-1] > np.arange(15)) and np.all(sample.parent[:, -1] == -1)
    for i, tree in enumerate(trees):
        assert topology_key(sample.tree(i)) == topology_key(tree)
        assert sample.tree(i).lengths[:9].tolist() == tree.lengths[:9].tolist()


def test_samples_that_make_no_sense():
    tree = yule(5, np.random.default_rng(1))
    with pytest.raises(InputError, match="two children"):
        sample_of_arrays(tree.taxa, tree.parent[None], tree.lengths[None], rooted=False)
    with pytest.raises(InputError, match="rooted"):
        sample_of_trees([tree, uniform_unrooted(5, np.random.default_rng(1))])
    with pytest.raises(InputError, match="no trees"):
        sample_of_trees([])


def test_topologies_and_their_credible_set():
    table = topology_table(runs_of(AB_CE + AB_CD * 6 + AC_DE * 3, "((b,a),e,(d,c));" * 10))
    assert table.frequency.tolist() == [0.8, 0.15, 0.05]
    assert table.first.tolist() == [1, 7, 0]
    assert table.credible_set(0.8).tolist() == [0]
    assert table.credible_set(0.95).tolist() == [0, 1]
    assert table.credible_set(0.96).tolist() == [0, 1, 2]
    assert table.of_tree[:3].tolist() == [2, 0, 0]


def test_multifurcations_are_topologies_of_their_own():
    table = topology_table(runs_of("(a,b,c,d,e);" * 2 + AB_CD * 3 + "((a,b),c,d,e);"))
    assert table.frequency.tolist() == [0.5, pytest.approx(1 / 3), pytest.approx(1 / 6)]
