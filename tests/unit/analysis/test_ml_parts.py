"""`phloem ml --partitions`: its files, what feeds back, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.likelihood import LikelihoodSettings
from phloem.analysis.ml import run_ml
from phloem.analysis.ml_settings import MlSettings
from phloem.analysis.partitioned_likelihood import run_partitioned_likelihood
from phloem.errors import InputError
from phloem.io.alignment import read_alignment
from phloem.io.trees import read_trees
from phloem.tree.splits import tree_splits

EXAMPLES = Path(__file__).parents[3] / "examples"
GOLDEN = Path(__file__).parents[2] / "golden" / "iqtree_parts.json"
RECORDED = json.loads(GOLDEN.read_text())
FEW = {"patience": 1, "threads": 1}


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.nex").write_text((EXAMPLES / "primates.nex").read_text())
    (tmp_path / "parts.nex").write_text(RECORDED["partitions"])
    return tmp_path


@pytest.mark.parametrize("linkage", ["proportional", "linked", "unlinked"])
def test_as_high_as_iqtree_and_as_many_free_numbers(place, linkage):
    found = run_ml(MlSettings("p.nex", partitions="parts.nex", linkage=linkage, **FEW)).found
    recorded = RECORDED[linkage]
    apart = found.optimum.log_likelihood - recorded["log_likelihood"]
    assert -0.01 < apart < 0.02 and found.optimum.n_free == recorded["free_numbers"]
    for name in ("aic", "bic"):
        assert getattr(found.optimum, name) == pytest.approx(recorded[name], abs=0.04)


def test_the_files_tell_one_result_and_feed_back(place):
    settings = MlSettings("p.nex", partitions="parts.nex", prefix="o", alrt=100, bootstrap="2", **FEW)
    result = run_ml(settings)
    record = json.loads(Path("o.json").read_text())
    assert [part["name"] for part in record["parts"]] == ["first", "second", "third", "rest"]
    value = record["log_likelihood"]
    assert sum(part["log_likelihood"] for part in record["parts"]) == pytest.approx(value, abs=1e-8)
    assert record["linkage"] == "proportional" and record["data"]["parts"] == 4
    head, *rows = [line.split("\t") for line in Path("o.sites").read_text().splitlines()]
    assert head == ["part", "site", "log_likelihood", "rate"]
    assert sum(float(row[2]) for row in rows) == pytest.approx(value, abs=1e-5)
    assert sorted(int(row[1]) for row in rows) == list(range(1, 899))
    trees = list(read_trees("o.parts.nwk"))
    lengths = [tree.lengths[:-1].sum() for tree in trees]
    np.testing.assert_allclose(lengths, [part["tree_length"] for part in record["parts"]], rtol=1e-6)
    report = Path("o.report").read_text()
    assert "4 parts; branch lengths of the parts are proportional" in report and "SH-aLRT" in report
    assert max(len(line) for line in report.splitlines() if " " in line.strip() and "{" not in line) <= 80
    assert len(list(read_trees("o.bootstrap.nwk"))) == 2

    again = run_ml(MlSettings("p.nex", partitions="parts.nex", prefix="again", model="@o.model", **FEW))
    assert again.found.optimum.log_likelihood == pytest.approx(value, abs=1e-3)
    rates, lengths_and_counted = 3, 21 + 9  # +F of three parts stays counted
    assert again.found.optimum.n_free == rates + lengths_and_counted < result.found.optimum.n_free

    kept = {"tree": "o.tree", "model": "@o.model", "linkage": "proportional", "optimize": True}
    given = LikelihoodSettings("p.nex", partitions="parts.nex", **kept)
    assert run_partitioned_likelihood(given).log_likelihood == pytest.approx(value, abs=1e-3)


def test_a_part_without_a_model_has_the_usual_one_and_declared_sets_do(place):
    Path("two.txt").write_text("DNA, a = 1-400\nHKY, b = 401-898\n")
    result = run_ml(MlSettings("p.nex", partitions="two.txt", linkage="linked", patience=0, threads=1))
    texts = result.found.optimum.model_texts
    assert texts["a"].startswith("GTR{") and "+G4" in texts["a"] and texts["b"].startswith("HKY{")
    assert "p.parts.nwk" not in result.files and not Path("p.parts.nwk").exists()


def test_what_is_not_obeyed_is_refused(place):
    with pytest.raises(InputError, match="--linkage is about parts"):
        run_ml(MlSettings("p.nex", linkage="linked"))
    with pytest.raises(InputError, match="--link is about parts"):
        run_ml(MlSettings("p.nex", link=("alpha",)))
    Path("m.model").write_text('[[part]]\nname = "first"\nmodel = "JC"\n')
    with pytest.raises(InputError, match="models of parts: first"):
        run_ml(MlSettings("p.nex", model="@m.model"))
    with pytest.raises(InputError, match="no model of part 'second'"):
        run_ml(MlSettings("p.nex", partitions="parts.nex", model="@m.model"))
    Path("bad.model").write_text('part = 3\nmodel = "JC"\n')
    with pytest.raises(InputError, match="no model file"):
        run_ml(MlSettings("p.nex", partitions="parts.nex", model="@bad.model"))
    Path("short.txt").write_text("GTR, a = 1-400\n")
    with pytest.raises(InputError, match="in no subset"):
        run_ml(MlSettings("p.nex", partitions="short.txt"))
    dropped = MlSettings("p.nex", partitions="short.txt", unassigned_sites="drop", patience=0)
    result = run_ml(dropped)
    assert "498 columns are in no part" in result.warnings[0]
    assert result.found.optimum.n_free > 0 and read_alignment("p.nex").n_sites == 898


def test_models_of_parts_are_chosen_each_by_its_own_data(place):
    Path("free.txt").write_text("DNA, a = 1-300\nK80, b = 301-600\nDNA, c = 601-898\n")
    small = {"model_set": "JC,HKY", "rate_set": "E,G", "patience": 0, "threads": 1}
    result = run_ml(MlSettings("p.nex", partitions="free.txt", model="auto", **small))
    assert list(result.choices) == ["a", "c"] and result.choice is None
    texts = result.found.optimum.model_texts
    assert texts["b"].startswith("K80{")
    for part, choice in result.choices.items():
        assert texts[part].startswith(choice.winner.text.split("+")[0]) and choice.winner.text != "JC"
        best = min(choice.candidates, key=lambda c: c.fit.bic)
        assert choice.winner is best
    trees = {tuple(sorted(map(bytes, tree_splits(c.winner.fit.tree)))) for c in result.choices.values()}
    assert len(trees) == 1  # one topology
    table = Path("p.models.tsv").read_text().splitlines()
    assert table[0].startswith("part\tmodel\t") and {row.split("\t")[0] for row in table[1:]} == {"a", "c"}
    record = json.loads(Path("p.json").read_text())
    assert record["model_choices"]["c"]["winner"] == result.choices["c"].winner.text
    assert "part c:" in Path("p.report").read_text()
    named = MlSettings("p.nex", partitions="parts.nex", model="auto", prefix="q")
    with pytest.raises(InputError, match="every part has a model"):
        run_ml(named)
    only = MlSettings(
        "p.nex", partitions="free.txt", model="MF", prefix="mf", model_set="JC,HKY", rate_set="E"
    )
    assert run_ml(only).found is None and Path("mf.models.tsv").exists()
    with pytest.raises(InputError, match="part 'a'"):
        run_ml(MlSettings("p.nex", partitions="free.txt", model="auto", model_set="LG", prefix="lg"))


@pytest.mark.parametrize("linkage", ["proportional", "linked", "unlinked"])
def test_parts_are_merged_as_iqtree_merges_them(place, linkage):
    """Its tree is parsimonious and lengths are held, so that values are some units apart; numbers are not."""
    recorded = RECORDED["merging"]
    (place / "four").write_text("".join(f"DNA, {line}\n" for line in recorded["parts"]))
    told = {"model": "MF", "model_set": "HKY", "rate_set": "E", "merge": "greedy", "prefix": "o"}
    run_ml(MlSettings("p.nex", partitions="four", linkage=linkage, threads=1, **told))
    merging = json.loads(Path("o.json").read_text())["merging"]
    theirs = recorded[linkage]
    assert len(merging["steps"]) == len(theirs["steps"])
    for step, (numbers, value, bic) in zip(merging["steps"], theirs["steps"]):
        assert step["n_free"] == numbers
        assert value - 0.1 < step["log_likelihood"] < value + 8 and step["value"] < bic + 0.2
    joined = [sorted(name for group in step["joined"] for name in group) for step in merging["steps"][1:]]
    assert joined == [sorted(own) for own in theirs["joined"]]
    assert merging["refused"]["value"] > merging["steps"][-1]["value"]


def test_the_scheme_feeds_back(place):
    recorded = RECORDED["merging"]["parts"]
    (place / "four").write_text(
        "".join(f"DNA, {line}\n" for line in recorded[:3]) + f"HKY+G4, {recorded[3]}\n"
    )
    told = {"merge": "relaxed", "merge_percent": 100.0, "model_set": "HKY,GTR", "rate_set": "G"}
    first = run_ml(MlSettings("p.nex", partitions="four", model="auto", prefix="o", **told, **FEW))
    lines = Path("o.scheme").read_text().splitlines()
    assert lines[-1] == "HKY+G4, trna = 458-659"  # it has a model: it is not merged
    again = run_ml(MlSettings("p.nex", partitions="o.scheme", prefix="again", patience=1, threads=1))
    assert again.found.optimum.log_likelihood == pytest.approx(first.found.optimum.log_likelihood, abs=1e-3)
    assert again.found.optimum.n_free == first.found.optimum.n_free
    sites, others = (Path(f"{name}.sites").read_text().splitlines() for name in ("o", "again"))
    assert [row.split("\t")[:2] for row in sites] == [row.split("\t")[:2] for row in others]
    assert "merging of parts" in Path("o.report").read_text()


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"model": None}, "models are chosen"),
        ({"partitions": None}, "models are chosen"),
        ({"link": ("kappa",)}, "makes new ones"),
        ({"merge_percent": 20.0}, "tries all pairs"),
        ({"merge": None, "merge_percent": 20.0}, "about --merge relaxed"),
        ({"merge": "relaxed", "linkage": "linked"}, "have one"),
        ({"merge": "relaxed", "merge_percent": 0.0}, "percent"),
    ],
)
def test_merging_that_could_not_be_obeyed_is_refused(place, wrong, words):
    told = {"partitions": "parts.nex", "model": "auto", "merge": "greedy"} | wrong
    with pytest.raises(InputError, match=words):
        run_ml(MlSettings("p.nex", **told))
    assert not list(place.glob("*.json"))
