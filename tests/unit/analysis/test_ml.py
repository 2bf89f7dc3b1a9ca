"""`phloem ml`: its files, its defaults, what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from phloem.analysis.ml import run_ml
from phloem.analysis.ml_data import read_ml_data
from phloem.analysis.ml_genes import run_genes
from phloem.analysis.ml_settings import MlSettings
from phloem.analysis.ml_supports import supports_of
from phloem.analysis.outputs import alone
from phloem.analysis.tree_tests import TreeTestsSettings, run_tree_tests
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import InputError
from phloem.inference.ml import model_choice
from phloem.inference.ml.identical import distinct
from phloem.inference.ml.search_state import Checkpoint
from phloem.io.alignment import read_alignment
from phloem.io.journal import Journal
from phloem.io.trees import parse_trees, read_tree, read_trees
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
    assert list(result.files) == ["small.tree", "small.model", "small.sites", "small.json", "small.report"]
    record = json.loads(Path("small.json").read_text())
    data, tree = read_alignment(alignment), read_tree("small.tree")
    value = TreeLikelihood(data, tree, record["model"], engine="reference").log_likelihood()
    assert value == pytest.approx(record["log_likelihood"], rel=1e-9)
    assert record["optimum"]["free_numbers"] == 7 and record["settings"]["patience"] == 1
    report = Path("small.report").read_text()
    assert f"log-likelihood: {value:.4f}" in report and "unrooted" in report and "BIONJ" in report
    assert told[0] == "first climb" and " try " in f" {told[-1]}"
    with pytest.raises(InputError, match="exists already"):
        run_ml(settings)


def test_a_tree_to_begin_from_and_a_usual_model(alignment):
    Path("start.nwk").write_text("((a,c),(b,d),e);")
    result = run_ml(MlSettings(alignment, tree="start.nwk", prefix="out", patience=0))
    assert result.found.origin == "the tree given"
    assert result.to_json()["model"].startswith("GTR{") and "+G4{" in result.to_json()["model"]
    Path("few.nwk").write_text("((a,c),b,d);")
    with pytest.raises(InputError, match="not in the tree: 'e'") as caught:
        run_ml(MlSettings(alignment, tree="few.nwk", prefix="out", redo=True))
    assert caught.value.file == "few.nwk"


def test_names_that_no_file_can_have(alignment):
    with pytest.raises(InputError, match="names a folder"):
        run_ml(MlSettings(alignment, prefix="somewhere/"))


def test_only_one_process_works_on_a_prefix(alignment):
    Path("genes").mkdir()
    Path("genes/a.fasta").write_text(Path(alignment).read_text())
    Path("two.nwk").write_text("((a,b),c,(d,e));((a,e),c,(d,b));\n")
    works = (
        lambda: run_ml(MlSettings(alignment, prefix="out")),
        lambda: run_genes(MlSettings("genes", prefix="out")),
        lambda: run_tree_tests(TreeTestsSettings(alignment, "two.nwk", model="JC", prefix="out")),
    )
    with alone("out", [alignment]):
        for work in works:
            with pytest.raises(InputError, match="--prefix out is in use by process"):
                work()
    assert not list(Path().glob("out*"))


def test_a_model_is_chosen_and_searched_with(alignment):
    settings = MlSettings(alignment, model="auto", model_set="JC,HKY", rate_set="E,G", patience=0)
    result = run_ml(settings)
    assert {"small.tree", "small.models.tsv", "small.model", "small.json"} < set(result.files)
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


def test_identical_sequences_are_put_back(alignment):
    copies = f">f\n{ROWS[1]}\n>g\n{ROWS[1]}\n>h\n{ROWS[4]}\n"
    Path("more.fasta").write_text(Path(alignment).read_text() + copies)
    result = run_ml(MlSettings("more.fasta", model="F81+F", patience=1, alrt=100, bootstrap="2"))
    record, tree = json.loads(Path("more.json").read_text()), read_tree("more.tree")
    assert record["identical_sequences"] == {"b": ["f", "g"], "e": ["h"]} and tree.n_tips == 8
    value = TreeLikelihood(read_alignment("more.fasta"), tree, record["model"], engine="reference")
    assert value.log_likelihood() == pytest.approx(record["log_likelihood"], rel=1e-12)
    assert record["optimum"]["free_numbers"] == 7 + 3  # of five sequences; frequencies of all eight
    assert len(record["supports"]["branches"]) == len(result.supports.shares) == 2
    assert sum(label is not None for label in tree.labels) == 2
    assert all(one.n_tips == 8 for one in read_trees("more.bootstrap.nwk"))
    assert "f, g identical to b" in Path("more.report").read_text()
    with_all = run_ml(MlSettings("more.fasta", model="F81+F", patience=0, keep_identical=True, prefix="all"))
    assert with_all.found.optimum.log_likelihood == pytest.approx(record["log_likelihood"], abs=1e-4)
    assert with_all.found.optimum.n_free == 13 + 3


def test_transfer_supports_count_the_copies_too():
    """(b, c) is no branch of the replicate, but one taxon of nine apart from b and its copies; without these,
    as far as can be."""
    rows = {name: row for name, row in zip("abcde", ROWS)} | dict.fromkeys("fghi", ROWS[1])
    data = alignment_from_sequences(rows, alphabet("dna"))
    tree, replicate = parse_trees("(a,(b:1,c:1):1,(d:1,e:1):1);(a,(b:1,d:1):1,(c:1,e:1):1);")
    found = supports_of(tree, {}, [replicate], distinct(data))
    assert found.names == ("bootstrap", "TBE") and found.tree.n_tips == 9
    members = [set(one["taxa"]) for one in found.to_json()["branches"]]
    k = members.index({"b", "c", *"fghi"})
    assert found.shares[k].tolist() == [0, 0.5] and found.shares[1 - k].tolist() == [0, 0]
    few = alignment_from_sequences(dict(list(rows.items())[:5]), alphabet("dna"))
    assert supports_of(tree, {}, [replicate], distinct(few)).shares.tolist() == [[0, 0], [0, 0]]


def test_copies_that_make_characters_informative_stay(alignment):
    rows = {
        "a": "00110",
        "b": "01011",
        "c": "11000",
        "d": "10101",
        "e": "10101",
    }  # of the last, d and e alone
    Path("copies.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in rows.items()))
    given = MlSettings("copies.fasta", datatype="binary", model="MK+ASC")
    assert read_ml_data(given).rows.n_copies == 1
    found = read_ml_data(replace(given, model="MK+ASC{informative}"))
    assert found.rows.n_copies == 0 and found.distinct[0].n_taxa == 5


def test_too_few_sequences_are_distinct(alignment):
    Path("two.fasta").write_text(">a\nACGT\n>b\nACGT\n>c\nACGA\n")
    with pytest.raises(InputError, match="only 2 are distinct"):
        run_ml(MlSettings("two.fasta", model="JC"))


def test_the_model_feeds_back_and_counted_numbers_count(alignment):
    first = run_ml(MlSettings(alignment, model="HKY+F+G4", gamma="median", patience=0))
    again = run_ml(MlSettings(alignment, model="@small.model", prefix="again", tree="small.tree", patience=0))
    assert again.found.optimum.log_likelihood == pytest.approx(first.found.optimum.log_likelihood, abs=1e-4)
    assert again.found.optimum.model_text == first.found.optimum.model_text
    assert first.found.optimum.n_free == 7 + 3 + 2 and again.found.optimum.n_free == 7 + 3
    text = Path("small.model").read_text()
    Path("uncounted.model").write_text(text.replace('counted = ["frequencies"]', "counted = []"))
    plain = run_ml(MlSettings(alignment, model="@uncounted.model", prefix="plain", patience=0))
    assert plain.found.optimum.n_free == 7
    for spoilt in (
        ('["frequencies"]', "oops"),
        ('"frequencies"', '"omega"'),
        ("model =", "modl ="),
        ("\n", "\nnew = 1\n"),
    ):
        Path("spoilt.model").write_text(text.replace(*spoilt))
        with pytest.raises(InputError):
            run_ml(MlSettings(alignment, model="@spoilt.model", prefix="out"))


def test_several_starts_a_picture_and_progress(alignment):
    given = MlSettings(alignment, model="JC", patience=2, starts=3, picture="t.svg")
    told = []
    result = run_ml(given, lambda what, value: told.append((what.stage, what.done, what.total)))
    assert ("search", 6, 6) in told
    record = json.loads(Path("small.json").read_text())
    assert [one["origin"].split()[0] for one in record["starts"]] == ["BIONJ", "parsimony,", "a"]
    assert max(one["log_likelihood"] for one in record["starts"]) <= record["log_likelihood"] + 1e-6
    assert 0 <= record["difficulty"]["value"] <= 1 and record["difficulty"]["climbs"] >= 5
    assert "<svg" in Path("t.svg").read_text() and "t.svg" in result.files
    for wrong in ({"picture": "t.jpg"}, {"picture": alignment}, {"starts": 0}):
        with pytest.raises(InputError):
            run_ml(MlSettings(alignment, **({"model": "JC", "prefix": "x"} | wrong)))


def test_sites_sum_to_the_whole(alignment):
    result = run_ml(MlSettings(alignment, model="JC+G4", patience=0))
    rows = [line.split("\t") for line in Path("small.sites").read_text().splitlines()]
    assert rows[0] == ["site", "log_likelihood", "rate"] and len(rows) == 1 + 18
    total = sum(float(row[1]) for row in rows[1:])
    assert total == pytest.approx(result.found.optimum.log_likelihood, abs=1e-6)
    assert float(rows[4][2]) >= float(rows[1][2])  # the fourth column varies, the first does not


def test_distances_of_tested_trees_and_a_model_from_a_file(alignment):
    run_ml(MlSettings(alignment, model="HKY+F", patience=0))
    Path("two.nwk").write_text(Path("small.tree").read_text() + "((a,e),(b,d),c);\n")
    given = TreeTestsSettings(alignment, "two.nwk", model="@small.model", replicates=1000, prefix="t")
    result = run_tree_tests(given)
    best, other = result.distances
    assert best == (0, 0.0, 0.0) and other.robinson_foulds == 4 and 0 < other.quartets <= 5
    assert other.branch_score > 0
    rows = [line.split("\t") for line in Path("t.tests.tsv").read_text().splitlines()]
    assert rows[0][-3:] == ["robinson_foulds", "branch_score", "quartets"] and rows[2][-3] == "4"
    record = json.loads(Path("t.tests.json").read_text())["trees"]
    assert record[1]["quartets"] == other.quartets and record[0]["model"] == record[1]["model"]


def test_a_taxon_without_data_has_no_length(alignment, monkeypatch):
    Path("gaps.fasta").write_text(Path(alignment).read_text() + f">f\n{'-' * len(ROWS[0])}\n")
    Path("two.txt").write_text("JC, one = 1-9\nJC, two = 10-18\n")
    for more in ({"model": "JC"}, {"partitions": "two.txt", "linkage": "unlinked"}):
        result = run_ml(MlSettings("gaps.fasta", patience=1, prefix="o", redo=True, **more))
        tree = result.tree
        assert tree.lengths[tree.taxa.index("f")] <= 1.1e-8 and tree.lengths.sum() < 3
        assert any("of 1 taxon nothing is known" in text for text in result.warnings)
    whole = run_ml(MlSettings(alignment, model="JC", patience=1))
    assert not whole.warnings
    alone = run_ml(MlSettings("gaps.fasta", model="JC", patience=1, prefix="o", redo=True))
    assert alone.found.optimum.log_likelihood == pytest.approx(whole.found.optimum.log_likelihood, abs=1e-4)
    monkeypatch.setattr("phloem.inference.ml.searched.SHORTEST", 5.0)  # control: no fit mends a wrong one
    wrong = run_ml(MlSettings("gaps.fasta", model="JC", patience=1, prefix="o", redo=True))
    tree = wrong.tree
    assert tree.lengths[tree.taxa.index("f")] > 4 and len(wrong.warnings) == 1
    assert wrong.found.optimum.log_likelihood == pytest.approx(whole.found.optimum.log_likelihood, abs=1e-4)


@pytest.mark.parametrize("given", [{}, {"partitions": "two.txt", "merge": "greedy"}])
def test_a_killed_choice_of_models_goes_on(alignment, given, monkeypatch):
    Path("two.txt").write_text("DNA, x = 1-6\nDNA, y = 7-12\nDNA, z = 13-18\n")
    monkeypatch.setattr(Checkpoint, "models", lambda self: Journal(f"{self.path}.models", self._identity))
    sets = {"model_set": "JC,HKY", "rate_set": "E,G4", "frequency_set": "F", "patience": 1, "seed": 3}
    settings = MlSettings(alignment, model="auto", **sets, **given)
    made = []

    def counted(*given, **named):
        made.append(1)
        if len(made) == last:
            raise KeyboardInterrupt
        return fitted(*given, **named)

    fitted = model_choice.refine
    monkeypatch.setattr("phloem.inference.ml.model_choice.refine", counted)
    last = 0
    whole = run_ml(replace(settings, prefix="whole"))
    all_fits = len(made)
    made.clear()
    last = all_fits - 1
    with pytest.raises(KeyboardInterrupt):
        run_ml(settings)
    assert Path("small.checkpoint.models").exists() and not Path("small.checkpoint").exists()
    with pytest.raises(InputError, match="of another analysis"):
        run_ml(replace(settings, criterion="aic"))
    made.clear()
    last = 0
    again = run_ml(settings)
    assert 1 <= len(made) <= 3  # of a model at most: its starts, and the fit
    assert not list(Path().glob("*.checkpoint*"))
    for name in (".tree", ".models.tsv", ".model", ".sites"):
        assert Path(f"small{name}").read_bytes() == Path(f"whole{name}").read_bytes()
    steps = [result.merging and result.merging[0] for result in (again, whole)]
    assert steps[0] == steps[1]
    made.clear()
    only = replace(settings, model="MF", patience=None, prefix="only", seed=1)
    run_ml(only)
    assert made and not list(Path().glob("*.checkpoint*"))
