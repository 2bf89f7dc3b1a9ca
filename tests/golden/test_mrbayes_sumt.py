"""Summaries of two runs against what MrBayes 3.2.7a's sumt printed for the same files.

mrbayes_sumt/sample.run{1,2}.t: 200 trees each of 8 taxa; sample.con.tre, .parts, .tstat, .vstat:
`sumt relburnin=no burnin=0 contype=allcompat`; its log said "Average standard deviation of split
frequencies = 0.066782".
"""

from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.split_tables import scale_reduction, write_split_tables
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


def rows_of(file):
    """Column heads, and rows by the taxa of their split."""
    lines = [line.split("\t") for line in file.read_text().splitlines() if not line.startswith("[ID")]
    return lines[0], lines[1:]


def assert_same_tables(ours, theirs):
    """Splits may be numbered otherwise where they are as frequent."""
    numbers = [{row[0]: row[1] for row in rows_of(file.with_suffix(".parts"))[1]} for file in (ours, theirs)]
    (head, mine), (expected_head, expected) = rows_of(ours), rows_of(theirs)
    assert head == expected_head and len(mine) == len(expected)
    keys = [
        {of_file[row[0].removeprefix("length[").removesuffix("]")]: row[1:] for row in rows}
        for of_file, rows in zip(numbers, (mine, expected))
    ]
    assert keys[0].keys() == keys[1].keys()
    if ours.suffix == ".parts":
        return
    for split, row in keys[0].items():
        for column, value, wanted in zip(head[1:], row, keys[1][split]):
            if not value:
                assert not wanted
                continue
            # MrBayes truncates 0.95 n where this rounds it up, takes the upper of two middle values, and in
            # PSRF counts the variance inside the first of two runs twice that of the second
            if column in ("Mean", "Variance", "#obs", "Nruns") or column.endswith("(s)"):
                assert float(value) == pytest.approx(float(wanted), rel=2e-6), (split, column)


@pytest.mark.parametrize("ending", ["parts", "tstat", "vstat"])
def test_tables_of_splits(ending, table, tmp_path):
    write_split_tables(str(tmp_path / "sample"), table)
    assert_same_tables(tmp_path / f"sample.{ending}", FOLDER / f"sample.{ending}")


def test_other_samples_have_other_tables(table, tmp_path):
    first = split_table([table.sample.select(slice(0, 150)), table.sample.select(slice(200, 350))])
    write_split_tables(str(tmp_path / "sample"), first)
    for ending in ("tstat", "vstat"):
        with pytest.raises(AssertionError):
            assert_same_tables(tmp_path / f"sample.{ending}", FOLDER / f"sample.{ending}")


def test_a_single_run_has_no_columns_of_several(table, tmp_path):
    """As MrBayes 3.2.7a: tstat without deviations, vstat without PSRF."""
    write_split_tables(str(tmp_path / "one"), split_table(table.sample.select(slice(0, 200))), "[ID: 7]")
    tstat, vstat = ((tmp_path / f"one.{ending}").read_text().splitlines() for ending in ("tstat", "vstat"))
    assert tstat[:2] == ["[ID: 7]", "ID\t#obs\tProbability(=s)"] and tstat[2] == "9\t\t193\t9.650000e-01"
    assert vstat[1].endswith("Median") and vstat[2].startswith("length[1]\t9.831771e-02\t8.707556e-03")


def test_scale_reduction_is_of_runs_that_differ():
    rng = np.random.default_rng(5)
    run = np.repeat([0, 1], 500)
    values = rng.normal(size=1000)
    inside = (values[:500].var(ddof=1) + values[500:].var(ddof=1)) / 2
    between = (values[:500].mean() - values[500:].mean()) ** 2 / 2
    assert scale_reduction(values, run, 2) == pytest.approx(np.sqrt(499 / 500 + between / inside), rel=1e-12)
    assert scale_reduction(values, run, 2) == pytest.approx(1, abs=0.01)
    assert scale_reduction(values + 2 * run, run, 2) > 1.5
    assert np.isnan(scale_reduction(values[:501], run[:501], 2)) and np.isnan(
        scale_reduction(run * 0.0, run, 2)
    )
