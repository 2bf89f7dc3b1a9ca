"""`phloem ml`: its files, its defaults, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phloem.analysis.ml import MlSettings, run_ml
from phloem.errors import InputError
from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree, read_trees
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
    result = run_ml(settings, told=lambda what, value: told.append(str(what)))
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


def test_a_model_is_chosen_and_searched_with(alignment):
    settings = MlSettings(alignment, model="auto", model_set="JC,HKY", rate_set="E,G", patience=0)
    result = run_ml(settings)
    assert list(result.files) == ["small.tree", "small.models.tsv", "small.json", "small.report"]
    record = json.loads(Path("small.json").read_text())
    chosen = record["model_choice"]
    assert chosen["winner"] == result.choice.winner.text and record["model"].startswith(
        chosen["winner"].split("+")[0]
    )
    names = {m["model"] for m in chosen["models"]} | {m["model"] for m in chosen["not_fitted"]}
    assert {"JC", "HKY+F", "HKY+F+G4"} <= names and "chose" not in record["start"]["origin"][:3]
    assert "the model was chosen" in record["start"]["origin"]
    table = Path("small.models.tsv").read_text().splitlines()
    assert len(table) == 1 + len(names) and table[1].startswith(chosen["winner"])
    report = Path("small.report").read_text().splitlines()
    assert any("has the best BIC" in line for line in report)
    assert max(len(line) for line in report if not line.startswith("model: ")) <= 80


def test_a_choice_without_a_search(alignment):
    result = run_ml(MlSettings(alignment, model="MF", model_set="JC,F81", rate_set="E", criterion="aic"))
    assert result.found is None and not Path("small.tree").exists()
    assert json.loads(Path("small.json").read_text())["model_choice"]["criterion"] == "aic"


@pytest.mark.parametrize("given", [{"model_set": "JC"}, {"criterion": "aic"}, {"rate_set": "G"}])
def test_options_of_a_choice_that_is_not_made(alignment, given):
    with pytest.raises(InputError, match="is about the choice of a model"):
        run_ml(MlSettings(alignment, model="JC", **given))


def test_supports_on_the_tree_and_in_the_record(alignment):
    settings = MlSettings(alignment, model="JC", patience=0, alrt=100, ufboot=1000, bootstrap="3")
    result = run_ml(settings)
    names = ["SH-aLRT", "UFBoot", "bootstrap", "TBE"]
    text = Path("small.tree").read_text()
    assert text.startswith("[branch labels, in percent: SH-aLRT/UFBoot/bootstrap/TBE]\n(")
    record = json.loads(Path("small.json").read_text())["supports"]
    assert record["names"] == names and record["bootstrap_replicates"] == 3
    tree = read_tree("small.tree")
    labels = [label for label in tree.labels if label]
    assert len(labels) == len(record["branches"]) == 2
    for label, branch in zip(sorted(labels), sorted(record["branches"], key=lambda b: b["SH-aLRT"])):
        assert len(label.split("/")) == 4 and set(branch) == {"taxa", "length", *names}
        assert "a" not in branch["taxa"]
    assert len(read_trees("small.bootstrap.nwk")) == 3 and "SH-aLRT" in Path("small.report").read_text()
    assert "small.bootstrap.nwk" in result.files


@pytest.mark.parametrize("given", [{"ufboot": 10}, {"bootstrap": "many"}, {"alrt": 100, "model": "MF"}])
def test_supports_that_cannot_be(alignment, given):
    with pytest.raises(InputError):
        run_ml(MlSettings(alignment, **({"model": "JC"} | given)))
