"""`phloem ml`: an option is obeyed, or refused with a remedy; none is passed over in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phloem.analysis.likelihood import LikelihoodSettings, run_likelihood
from phloem.analysis.ml import run_ml
from phloem.analysis.ml_settings import MlSettings
from phloem.analysis.partitioned_likelihood import run_partitioned_likelihood
from phloem.errors import InputError

ROWS = {
    "a": "ACGTACGTACGTACGAACRA",
    "b": "ACGTACGTACGTACTAACAA",
    "c": "ACGTTCGAACGTACTAGCAA",
    "d": "ACGATCGAACGGACTAGCCA",
    "e": "ATGATCGAACGGACTTGCCT",
    "f": "ATGATCGAACGGACTTGCCT",
    "g": "ATGTTCGAACGGACTAGCCT",
}
MF = {"model": "MF", "model_set": "HKY,JC", "rate_set": "E,G4"}
AUTO = MF | {"model": "auto"}
PARTS = {"partitions": "two.txt", "model": "HKY"}
HELD = {"model": "HKY+G4", "fixed_tree": "t.nwk"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    Path("two.txt").write_text("DNA, one = 1-10\nDNA, two = 11-20\n")
    Path("named.txt").write_text("JC, one = 1-10\nHKY, two = 11-20\n")
    Path("t.nwk").write_text("(a:.1,(b:.1,f:.1):.1,(c:.1,(d:.1,(e:.1,g:.1):.1):.1):.1);\n")
    Path("tips.tsv").write_text("name\tplace\na\tx\nb\ty\n")
    Path("groups.nwk").write_text("((a,e),b,c,d);\n")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (MF | {"starts": 1}, "--starts is about the search, and --model MF searches none"),
        (MF | {"starts": 4}, "--starts is about the search"),
        (MF | {"patience": 0}, "--patience is about the search"),
        (MF | {"device": "gpu"}, "--device gpu is about the search"),
        ({"engine": "differences", "device": "gpu"}, "--engine differences has no --device gpu"),
        (MF | {"outgroup": "a"}, "--outgroup is about a tree"),
        (MF | {"ancestral": True}, "--ancestral is about a tree"),
        ({"gamma": "median", "model": "HKY"}, "--gamma median is about .G"),
        ({"gamma": "median", "model": "HKY+R3"}, "--gamma median is about .G"),
        ({"gamma": "median", "model": "HKY+G4m"}, "--gamma median is about .G"),
        (PARTS | {"gamma": "median"}, "--gamma median is about .G"),
        ({"model": "TEST"}, "--model TEST is no model, and no choice that is read"),
        ({"model": "mfp+merge"}, "is no model, and no choice that is read"),
        ({"model": "MF+FO"}, "is no model, and no choice that is read"),
        (
            {"model": "auto+ASC", "partitions": "two.txt", "merge": "greedy"},
            "merged under usual models, which have no .ASC",
        ),
        (AUTO | {"gamma": "median", "rate_set": "E,R"}, "--gamma median is about .G"),
        (AUTO | {"gamma": "median", "model_set": "HKY+F+R2", "rate_set": None}, "--gamma median is about .G"),
        (AUTO | {"most_classes": 3}, "--most-classes is about .R"),
        (AUTO | {"most_classes": 3, "rate_set": None, "model_set": "HKY+F,JC+R2"}, "--most-classes is about"),
        (AUTO | {"model_set": "HKY+F,JC+G4"}, "all models of this set bring their own rates"),
        (
            AUTO | {"model_set": "JC,K80", "frequency_set": "FO"},
            "no family of this set has the frequencies FO",
        ),
        (AUTO | {"model_set": "HKY+F+R2", "rate_set": None, "frequency_set": "F"}, "has the frequencies F"),
        (AUTO | {"partitions": "two.txt", "most_classes": 3}, "--most-classes is about .R"),
        ({"partitions": "named.txt", "model": "GTR"}, "every part has a model already"),
        ({"partition_name": "x", "model": "JC"}, "--partition-name is about --partitions"),
        ({"unassigned_sites": "drop", "model": "JC"}, "--unassigned-sites is about --partitions"),
        ({"partitions": "declared", "partition_name": "x"}, "the alignment declares no parts"),
        (PARTS | {"datatype": "rna"}, "every part has a data type already, and --datatype rna is for parts"),
        (
            {"stop_codons": "mask", "model": "JC"},
            "stop codons are to be masked, and the data are read as dna",
        ),
        (PARTS | {"stop_codons": "mask"}, "stop codons are to be masked, and the data are read as dna"),
        ({"engine": "differences", "gamma": "median"}, "--engine differences has no --gamma"),
        ({"sampling": "gene", "ufboot": 1000, "model": "JC"}, "--sampling gene draws parts"),
        (PARTS | {"sampling": "genesite"}, "--sampling is about replicates"),
        (PARTS | {"sampling": "genes", "ufboot": 1000}, "unknown --sampling 'genes'"),
    ],
)
def test_what_would_not_be_obeyed_is_refused_before_anything_is_fitted(folder, given, said, monkeypatch):
    def fitted(*_):
        raise AssertionError("something was fitted")

    monkeypatch.setattr("phloem.inference.ml.model_choice.climbed_once", fitted)
    monkeypatch.setattr("phloem.inference.ml.tree_search.climbed_once", fitted)
    monkeypatch.setattr("phloem.inference.ml.bootstrap.climbed_tree", fitted)
    monkeypatch.setattr("phloem.inference.ml.tree_search.search", fitted)
    with pytest.raises(InputError, match=said) as caught:
        run_ml(MlSettings("small.fasta", **given))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "JC", "gamma": "median"}, "--gamma median is about"),
        ({"partitions": "named.txt", "model": "GTR"}, "every part has a model already"),
        ({"partitions": "named.txt", "gamma": "median"}, "--gamma median is about"),
    ],
)
def test_the_same_of_a_likelihood(folder, given, said):
    run = run_partitioned_likelihood if "partitions" in given else run_likelihood
    with pytest.raises(InputError, match=said):
        run(LikelihoodSettings("small.fasta", tree="t.nwk", **({"model": None} | given)))


OTHERS = {
    "datatype": "rna", "sites": "1-12", "ambiguity": "missing", "partitions": "two.txt",
    "model": "K80", "model_set": "F81", "rate_set": "I", "frequency_set": "FO", "criterion": "aic",
    "most_classes": 2, "merge": "greedy", "merge_percent": 40.0, "tree": "t.nwk", "constraint": "groups.nwk",
    "linkage": "unlinked", "link": ("kappa",), "keep_identical": True, "alrt": 100, "ufboot": 1000,
    "abayes": True,
    "bnni": True, "bootstrap": "2", "starts": 2, "patience": 3, "fast": True, "thorough": True,
    "engine": "differences", "sprta": True, "outgroup": "c", "ancestral": True,
    "iqtree_files": True,
    "picture": "x.svg", "gamma": "median", "sampling": "gene",
    "genetic_code": 2, "stop_codons": "mask", "block": "1", "phylip_layout": "sequential",
    "partition_name": "x", "unassigned_sites": "drop",
    "fixed_tree": "t.nwk", "lengths": "given", "parametric_alrt": True, "lbp": 100,
    "auspice": True, "metadata": "tips.tsv", "metadata_column": ("place",),
}  # fmt: skip
FREE = {
    "part",
    "alignment",
    "prefix",
    "seed",
    "threads",
    "redo",
    "radius",
    "device",
    "genes",
}  # may leave all as is


def outcome(given: dict) -> object:
    """What is written, without settings and times, or what is refused."""
    try:
        run_ml(MlSettings("small.fasta", prefix="o", redo=True, **given))
    except InputError as error:
        return error
    record = json.loads(Path("o.json").read_text())
    for name in ("settings", "provenance", "seconds", "effort"):
        record.pop(name)
    written = {name for name in ("x.svg", "o.state", "o.iqtree", "o.auspice.json") if Path(name).exists()}
    for name in written:
        Path(name).unlink()
    return record | {"written": written}


@pytest.mark.slow
@pytest.mark.parametrize(
    "context", [{"model": "HKY"}, {"model": "HKY+G4", "ufboot": 1000}, MF, AUTO, PARTS, HELD, HELD | AUTO]
)
def test_every_option_changes_what_is_written_or_is_refused(folder, context):
    assert {field for field in MlSettings.__dataclass_fields__} == {*OTHERS, *FREE}
    usual, idle = outcome(context), []
    assert isinstance(usual, dict)
    for name, value in OTHERS.items():
        if context.get(name) == value:
            continue
        found = outcome(context | {name: value})
        if isinstance(found, InputError):
            assert found.hint, (name, found)
        elif found == usual and not (
            name == "unassigned_sites" and "partitions" in context
        ):  # there are none
            idle.append(name)
    assert idle == []


@pytest.mark.slow
def test_an_option_that_is_passed_over_would_be_seen(folder, monkeypatch):
    monkeypatch.setattr("phloem.analysis.ml.require_search", lambda settings: None)
    assert outcome(MF | {"patience": 3}) == outcome(MF)
