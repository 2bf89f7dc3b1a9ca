"""Tests of trees beside what IQ-TREE printed of the same trees (iqtree_tree_tests.json)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from phloem.analysis.tree_tests import TreeTestsSettings, run_tree_tests

GOLDEN = json.loads(Path(__file__).with_name("iqtree_tree_tests.json").read_text())
PRIMATES = Path(__file__).parents[2] / "examples" / "primates.nex"


def test_the_same_verdicts_within_sampling_error(tmp_path):
    trees = tmp_path / "trees.nwk"
    trees.write_text("\n".join(GOLDEN["trees"]))
    prefix = str(tmp_path / "out")
    settings = TreeTestsSettings(
        str(PRIMATES), str(trees), model="GTR+F+G4", replicates=3000, prefix=prefix, threads=1
    )
    result = run_tree_tests(settings)
    tests, rows = result.tests, GOLDEN["rows"]
    theirs = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    gains = tests.log_likelihood - theirs["log_likelihood"]  # IQ-TREE keeps the first tree's parameters
    assert gains.min() > -0.01 and gains.max() < 1.1
    for name in ("bootstrap", "kh", "sh", "wsh", "elw", "au"):
        mine = getattr(tests, name)
        assert np.abs(mine - theirs[name]).max() < 0.025, name
        assert ((mine < 0.04) == (theirs[name] < 0.04)).all(), name
    assert np.abs(tests.sh - theirs["kh"]).max() > 0.1  # the columns are not one another
    assert tests.in_elw_set.tolist() == [True, False, False, True, False, False, False, True]
    assert [one.robinson_foulds for one in result.distances] == [0, 4, 4, 2, 4, 2, 4, 2]
    table = (tmp_path / "out.tests.tsv").read_text().splitlines()
    sites = np.loadtxt(tmp_path / "out.sites.tsv", skiprows=1)[:, 1:]
    assert len(table) == 9 and max(map(len, result.lines())) <= 85
    np.testing.assert_allclose(sites.sum(0), tests.log_likelihood, rtol=1e-8)
