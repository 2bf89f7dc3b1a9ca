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
    for name in ("bootstrap", "kh", "wkh", "sh", "wsh", "elw", "au"):
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


HKY_OF_PARTS = """\
HKY+F+G4, position1 = 2-457\\3, 660-897\\3
HKY+F+G4, position2 = 3-457\\3, 661-898\\3
HKY+F+G4, position3 = 1-457\\3, 662-898\\3
HKY+F+G4, trna = 458-659
"""


def test_parts_have_the_same_verdicts(tmp_path, monkeypatch):
    """iqtree2 -p parts.nex -z trees -zb 10000 -zw -au, of the first tree and the fourth."""
    monkeypatch.chdir(tmp_path)
    Path("two.nwk").write_text("\n".join((GOLDEN["trees"][0], GOLDEN["trees"][3])))
    Path("hky.partitions").write_text(HKY_OF_PARTS)
    given = {"replicates": 3000, "prefix": "out", "threads": 1}
    result = run_tree_tests(TreeTestsSettings(str(PRIMATES), "two.nwk", partitions="hky.partitions", **given))
    tests = result.tests
    np.testing.assert_allclose(tests.log_likelihood, [-5431.043745, -5436.064313], atol=0.12)
    assert tests.log_likelihood[0] > -5431.04
    theirs = {"bootstrap": [0.913, 0.087], "kh": [0.904, 0.096], "sh": [1, 0.096], "wsh": [0.904, 0.096]}
    theirs |= {"elw": [0.89, 0.11], "au": [0.934, 0.066]}
    for name, values in theirs.items():
        assert np.abs(getattr(tests, name) - values).max() < 0.025, name
    rows = [row.split("\t") for row in Path("out.sites.tsv").read_text().splitlines()]
    assert rows[0] == ["part", "site", "tree_1", "tree_2"] and rows[1][:2] == ["position1", "2"]
    sums = np.array([row[2:] for row in rows[1:]], float).sum(0)
    np.testing.assert_allclose(sums, tests.log_likelihood, rtol=1e-8)
    assert [list(one) for one in result.models] == [["position1", "position2", "position3", "trna"]] * 2
