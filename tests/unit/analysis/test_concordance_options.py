"""`phloem concordance --replicates` and `--partitions`: supports by given trees; sites of every part."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.concordance import ConcordanceSettings, run_concordance
from phloem.errors import InputError
from phloem.io.trees import newick_text, parse_trees
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.grammar import parse_model
from phloem.tree.random import uniform_unrooted

TREE = "((a,b)9:1,c,((d,e)8:1,f)7:1);"
REPLICATES = (
    "((a,b),c,((d,e),f));",  # all three
    "((a,b),c,((d,f),e));",  # ab, def
    "(((a,c),b),(d,(e,f)));",  # rooted: def
    "((d,e),(a,f),(b,c));",  # de; def is one tip away
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.nwk").write_text(TREE)
    Path("b.nwk").write_text("\n".join(REPLICATES))


def test_supports_by_given_trees_are_those_counted_by_hand():
    found = run_concordance(ConcordanceSettings("t.nwk", replicates="b.nwk"))
    by_branch = {row["branch"]: row for row in found.rows}
    assert found.n_replicates == 4 and found.names == ("label", "bootstrap", "TBE")
    assert {k: row["bootstrap"] for k, row in by_branch.items()} == {"a,b": 50, "d,e": 50, "f,d,e": 75}
    # of two taxa a miss is as far as can be: TBE is the share; of three it is half of that in the last tree
    assert by_branch["a,b"]["TBE"] == pytest.approx(50) and by_branch["d,e"]["TBE"] == pytest.approx(50)
    assert by_branch["f,d,e"]["TBE"] == pytest.approx(100 * (3 + 0.5) / 4)
    text = Path("t.cf.tree").read_text()
    assert "7/75.0/87.5" in text and text.startswith("[branch labels, in percent: label/bootstrap/TBE]")


def test_replicates_of_other_taxa_are_refused():
    Path("b.nwk").write_text("((a,b),c,(d,e));")
    with pytest.raises(InputError, match=r"b\.nwk.*f"):
        run_concordance(ConcordanceSettings("t.nwk", replicates="b.nwk"))
    assert not Path("t.cf.tree").exists()


def test_sites_of_parts_add_up_to_those_of_all(tmp_path):
    tree = uniform_unrooted(12, np.random.default_rng(1), 0.2)
    data = simulate_alignment(tree, parse_model("JC", datatype="dna"), 200, seed=2)
    rows = ["".join(data.alphabet.states[c] for c in row) for row in data.codes]
    Path("d.fa").write_text("".join(f">{name}\n{row}\n" for name, row in zip(data.taxa, rows)))
    Path("s.nwk").write_text(newick_text([tree]))
    Path("p.txt").write_text("DNA, one = 1-50\nDNA, two = 51-200\\2\nDNA, three = 52-200\\2\n")
    for quartets in (1000, 20):  # all of them, and so many drawn, which are the same in every part
        settings = ConcordanceSettings(
            "s.nwk", alignment="d.fa", partitions="p.txt", quartets=quartets, redo=True
        )
        found = run_concordance(settings)
        assert len(found.parts) == 3 * len(found.rows) == 27
        sums = Counter[str]()
        for row in found.parts:
            sums[row["branch"]] += row["sCF_N"] + 1000 * row["sDF1_N"]
        for row in found.rows:
            assert sums[row["branch"]] == pytest.approx(row["sCF_N"] + 1000 * row["sDF1_N"])
    table = Path("s.cf.parts.tsv").read_text().splitlines()
    assert len(table) == 28 and table[0].startswith("branch\tpart\tcharacters\tsCF")
    Path("p.txt").write_text("DNA, one = 1-50\n")  # control: a part is less than all
    less = run_concordance(ConcordanceSettings("s.nwk", alignment="d.fa", partitions="p.txt", redo=True))
    assert sum(row["sN"] for row in less.parts) < 0.5 * sum(row["sN"] for row in less.rows)


def test_parts_without_sites_are_refused():
    with pytest.raises(InputError, match="--partitions is about sites"):
        run_concordance(ConcordanceSettings("t.nwk", replicates="b.nwk", partitions="p.txt"))
    assert parse_trees(TREE)
