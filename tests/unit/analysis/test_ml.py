"""`phloem ml`: its files, its defaults, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phloem.analysis.ml import MlSettings, run_ml
from phloem.errors import InputError
from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree
from phloem.likelihood.tree_likelihood import TreeLikelihood

ROWS = (
    "ACGTACGTACGTACGAAC",
    "ACGTACGTACGTACTAAC",
    "ACGTTCGAACGTACTAGC",
    "ACGATCGAACGGACTAGC",
    "ACGATCGTACGGACTTGC",
)


@pytest.fixture
def alignment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "".join(f">{name}\n{row}\n" for name, row in zip("abcde", ROWS))
    (tmp_path / "small.fasta").write_text(text)
    return "small.fasta"


def test_the_three_files_tell_one_result(alignment):
    told = []
    settings = MlSettings(alignment, model="JC", patience=1)
    result = run_ml(settings, told=lambda what, value: told.append(what))
    assert list(result.files) == ["small.tree", "small.json", "small.report"]
    record = json.loads(Path("small.json").read_text())
    data, tree = read_alignment(alignment), read_tree("small.tree")
    value = TreeLikelihood(data, tree, record["model"], engine="reference").log_likelihood()
    assert value == pytest.approx(record["log_likelihood"], rel=1e-9)
    assert record["optimum"]["free_numbers"] == 7 and record["settings"]["patience"] == 1
    report = Path("small.report").read_text()
    assert f"log-likelihood: {value:.4f}" in report and "unrooted" in report and "BIONJ" in report
    assert told[0] == "first climb" and told[-1].startswith("try")
    with pytest.raises(InputError, match="exists already"):
        run_ml(settings)


def test_a_tree_to_begin_from_and_a_usual_model(alignment):
    Path("start.nwk").write_text("((a,c),(b,d),e);")
    result = run_ml(MlSettings(alignment, tree="start.nwk", prefix="out", patience=0))
    assert result.found.origin == "the tree given"
    assert result.to_json()["model"].startswith("GTR{") and "+G4{" in result.to_json()["model"]


def test_names_that_no_file_can_have(alignment):
    with pytest.raises(InputError, match="names a folder"):
        run_ml(MlSettings(alignment, prefix="somewhere/"))
    with pytest.raises(InputError, match="one part"):
        run_ml(MlSettings(alignment, partitions="parts.txt"))
