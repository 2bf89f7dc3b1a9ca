"""`phloem summarise`: what the summaries of trees say, for files of runs and from the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.summarise import SummariseSettings, run_summarise
from phloem.errors import InputError
from phloem.io.trees import read_tree, read_tree_sample, write_trees
from phloem.summary.clade_trees import clade_tree
from phloem.summary.splits import split_frequency_deviation
from phloem.summary.trees import consensus_tree, maximum_clade_credibility
from phloem.tree.random import yule
from phloem.tree.splits import tree_splits

GOLDEN = Path(__file__).parents[2] / "golden" / "mrbayes_sumt"
RUNS = tuple(str(GOLDEN / f"sample.run{k}.t") for k in (1, 2))


def splits_of(tree):
    return {row.tobytes() for row in tree_splits(tree)}


KINDS = ("majority", "allcompat", "mcc")


@pytest.fixture
def loose_runs(tmp_path):
    """Two runs that hardly agree: random rooted trees."""
    rng = np.random.default_rng(1)
    files = [str(tmp_path / f"run{k}.trees") for k in (1, 2)]
    for file in files:
        write_trees(file, [yule(8, rng) for _ in range(40)])
    return tuple(files)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("made", ["MrBayes", "random"])
def test_the_tree_is_the_summary_of_both_runs(kind, made, loose_runs):
    runs = RUNS if made == "MrBayes" else loose_runs
    found = run_summarise(SummariseSettings(runs, kind, burn_in=0.1))
    samples = [read_tree_sample(run, 0.1) for run in runs]
    expected = maximum_clade_credibility(samples) if kind == "mcc" else consensus_tree(samples, kind)
    assert splits_of(found.tree) == splits_of(expected)
    np.testing.assert_array_equal(found.tree.lengths, expected.lengths)
    assert found.per_run == tuple(sample.n_trees for sample in samples)
    assert found.deviation == split_frequency_deviation(samples)
    assert 0 < found.credible <= found.topologies <= sum(found.per_run)
    one = run_summarise(SummariseSettings(runs[:1], kind, burn_in=0.9))
    assert one.deviation is None and one.per_run[0] < found.per_run[0]


def test_the_kinds_of_summary_differ(loose_runs):
    """Negative control: what is compared above is not the same for all of them."""
    found = {kind: splits_of(run_summarise(SummariseSettings(loose_runs, kind)).tree) for kind in KINDS}
    assert found["majority"] < found["allcompat"] and found["mcc"] != found["majority"]


@pytest.mark.parametrize("kind", ["hipstr", "ccd"])
def test_trees_of_clades(kind, loose_runs):
    samples = [read_tree_sample(run, 0.25) for run in loose_runs]
    found = run_summarise(SummariseSettings(loose_runs, kind, middle="median"))
    assert splits_of(found.tree) == splits_of(clade_tree(samples, kind, "median"))
    if kind == "ccd":  # the control: with so loose runs no sampled tree is as good
        assert splits_of(found.tree) != splits_of(maximum_clade_credibility(samples))
    with pytest.raises(InputError, match="rooted, binary"):
        run_summarise(SummariseSettings(RUNS, kind))


def test_heights_of_rooted_trees(tmp_path):
    rng = np.random.default_rng(1)
    file = tmp_path / "run.trees"
    write_trees(file, [yule(6, rng) for _ in range(20)])
    heights = [
        run_summarise(SummariseSettings((str(file),), "mcc", middle=middle)).tree.lengths.sum()
        for middle in ("mean", "median", "common-ancestor", "keep")
    ]
    assert len(set(heights)) == 4


def test_the_command_writes_a_tree_and_prints_how_runs_agree(tmp_path):
    command = [sys.executable, "-m", "phloem", "summarise", *RUNS, "--tree", "mcc", "-o", "mcc.tre"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "split frequencies differ by" in done.stderr and "topologies" in done.stderr
    expected = maximum_clade_credibility([read_tree_sample(run, 0.25) for run in RUNS])
    assert splits_of(read_tree(tmp_path / "mcc.tre")) == splits_of(expected)
    again = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert again.returncode == 2 and "exists already" in again.stderr


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"middle": "keep"}, "a consensus has no 'keep'"),
        ({"tree": "mcc", "middle": "common-ancestor"}, "no common ancestors"),
        ({"mass": 1.5}, "no share"),
        ({"burn_in": 1.0}, "leaves no tree"),
        ({"out": RUNS[0], "redo": True}, "is an input"),
        ({"files": (RUNS[0], "no-such.t")}, "no such file"),
    ],
)
def test_what_cannot_be_summarised(changes, message):
    with pytest.raises(InputError, match=message):
        run_summarise(SummariseSettings(**({"files": RUNS} | changes)))
