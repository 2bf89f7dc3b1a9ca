"""Summaries of two runs against what MrBayes 3.2.7a's sumt printed for the same files.

mrbayes_sumt/sample.run{1,2}.t: 200 trees each of 8 taxa; sample.con.tre: `sumt contype=allcompat burnin=0`;
its log said "Average standard deviation of split frequencies = 0.066782".
"""

from pathlib import Path

import pytest

from phloem.io.trees import read_tree, read_trees
from phloem.summary.splits import split_frequency_deviation, split_table
from phloem.summary.trees import consensus_tree
from phloem.tree.sample import sample_of_trees
from phloem.tree.splits import robinson_foulds, sample_splits

FOLDER = Path(__file__).parent / "mrbayes_sumt"


@pytest.fixture(scope="module")
def table():
    return split_table([sample_of_trees(read_trees(FOLDER / f"sample.run{r}.t")) for r in (1, 2)])


def nodes_by_split(tree):
    splits = sample_splits(sample_of_trees([tree]))[0]
    return {splits[x].tobytes(): x for x in range(tree.n_nodes - 1)}


def test_asdsf(table):
    deviation = split_frequency_deviation(table)
    assert f"{deviation.average:.6f}" == "0.066782"
    assert deviation.largest == pytest.approx(1.732412e-01, rel=1e-6)
    assert f"{split_frequency_deviation(table, minimum=0.5).average:.6f}" != "0.066782"


def test_consensus(table):
    mine, theirs = consensus_tree(table, "allcompat"), read_tree(FOLDER / "sample.con.tre")
    assert mine.taxa == theirs.taxa and not theirs.rooted
    assert robinson_foulds(mine, theirs) == 0
    place = nodes_by_split(theirs)
    for split, x in nodes_by_split(mine).items():
        notes, expected = mine.annotations[x], theirs.annotations[place[split]]
        for key in ("prob", "prob_stddev", "length_mean"):
            assert notes[key] == pytest.approx(expected[key], rel=1e-6, abs=1e-9)
        assert notes["prob_range"] == pytest.approx(expected["prob_range"])
        assert notes["prob(percent)"] == str(expected["prob(percent)"])
        # MrBayes takes the upper of two middle values, and truncates 0.95 n where this rounds it up.
        assert notes["length_median"] == pytest.approx(expected["length_median"], rel=0.02)
        if notes["prob"] == 1.0:
            assert notes["length_95%HPD"] == pytest.approx(expected["length_95%HPD"])


def test_lengths_by_median_as_mrbayes_writes_them(table):
    mine, theirs = consensus_tree(table, "allcompat", lengths="median"), read_tree(FOLDER / "sample.con.tre")
    place = nodes_by_split(theirs)
    for split, x in nodes_by_split(mine).items():
        assert mine.lengths[x] == pytest.approx(theirs.lengths[place[split]], rel=0.02)
