"""`phloem ml` on differences: chosen where it should be, refused where it cannot, its files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.differences.outbreaks import outbreak
from typer.testing import CliRunner

from phloem.analysis import ml_differences
from phloem.analysis.ml import run_ml
from phloem.analysis.ml_differences import MlDifferences, patterns, why_differences
from phloem.analysis.ml_genes import run_genes
from phloem.analysis.ml_settings import MlSettings
from phloem.cli import build_app
from phloem.data.patterns import site_patterns
from phloem.errors import InputError
from phloem.io.alignment import write_fasta, write_phylip
from phloem.io.genomes import genomes_of
from phloem.io.newick import parse_newick
from phloem.io.trees import read_trees
from phloem.tree.splits import robinson_foulds


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    alignment, _ = outbreak(30, 3)
    write_fasta(alignment, "x.fa")
    write_phylip(alignment, "x.phy")
    return tmp_path


def test_files_and_record(folder):
    result = run_ml(MlSettings("x.fa", engine="differences", sprta=True, prefix="o", model="HKY+F"))
    assert isinstance(result, MlDifferences)
    record = json.loads((folder / "o.json").read_text())
    assert record["engine"] == "differences"
    assert record["log_likelihood"] == result.found.log_likelihood
    assert record["data"]["taxa"] == 30
    assert len(record["supports"]["SPRTA"]) == len(result.found.supports)
    text = (folder / "o.tree").read_text()
    assert text.startswith("[branch labels, in percent: SPRTA]\n")
    tree = next(iter(read_trees("o.tree")))
    assert sum(label is not None for label in tree.labels) == len(result.found.supports)
    shown = [float(label) for label in result.found.tree.labels if label is not None]
    assert shown == pytest.approx(100 * result.found.supports, abs=0.51) and len(set(shown)) > 3
    assert "engine of differences" in (folder / "o.report").read_text()
    assert sorted(p.name for p in folder.glob("o.*")) == ["o.json", "o.model", "o.report", "o.tree"]
    again = run_ml(MlSettings("x.phy", engine="differences", prefix="p", model="@o.model"))
    assert isinstance(again, MlDifferences)
    assert again.found.log_likelihood == pytest.approx(result.found.log_likelihood, abs=0.05)
    with pytest.raises(InputError, match="exists already"):
        run_ml(MlSettings("x.fa", engine="differences", prefix="o"))


def test_it_is_chosen_for_outbreaks_only(folder, monkeypatch):
    monkeypatch.setattr(ml_differences, "_SMALL", 1 << 10)
    assert why_differences(MlSettings("x.fa")) == (None, ())  # few genomes
    monkeypatch.setattr(ml_differences, "_MANY", 20)
    monkeypatch.setattr(ml_differences, "_FEW", 0.05)
    chosen, said = why_differences(MlSettings("x.fa"))
    assert chosen is not None and "would take far longer" in chosen[2] and said == ()
    monkeypatch.setattr(ml_differences, "available_bytes", lambda: 10)
    assert "are free" in why_differences(MlSettings("x.fa"))[0][2]
    assert why_differences(MlSettings("x.fa", engine="patterns")) == (None, ())
    for other in (
        {"model": "GTR+G4"},
        {"alrt": 100},
        {"sites": "1-90"},
        {"datatype": "codon"},
        {"starts": 2},
    ):
        none, said = why_differences(MlSettings("x.fa", **other))
        assert none is None, other
        (name,) = other
        by_itself = name in ("alrt", "starts")  # the others are no data, or no model, of that engine
        assert bool(said) == by_itself and all(f"has no --{name}: this is on patterns" in s for s in said)
    monkeypatch.setattr(ml_differences, "_FEW", 1e-4)
    assert why_differences(MlSettings("x.fa")) == (None, ())  # too different


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "GTR+G4"}, "no rates across sites"),
        ({"alrt": 100}, "has no --alrt"),
        ({"model": "auto"}, "has no --model auto"),
        ({"datatype": "protein"}, "is for nucleotides"),
        ({"radius": 0}, "radius is 0"),
        ({"engine": "patterns", "sprta": True}, "belongs to the engine of differences"),
    ],
)
def test_what_it_cannot_do_is_said(folder, options, message):
    settings = MlSettings("x.fa", **({"engine": "differences", "prefix": "o"} | options))
    with pytest.raises(InputError, match=message) as caught:
        run_ml(settings)
    assert caught.value.hint
    assert not list(folder.glob("o.*"))


def test_new_genomes_join_a_tree(folder):
    alignment, _ = outbreak(30, 3)
    few = replace(alignment, taxa=alignment.taxa[:20], codes=alignment.codes[:20])
    write_fasta(few, "few.fa")
    run_ml(MlSettings("few.fa", engine="differences", prefix="few", model="HKY+F"))
    both = run_ml(MlSettings("x.fa", engine="differences", prefix="both", model="HKY+F", tree="few.tree"))
    alone = run_ml(MlSettings("x.fa", engine="differences", prefix="alone", model="HKY+F"))
    assert isinstance(both, MlDifferences) and isinstance(alone, MlDifferences)
    assert both.found.log_likelihood == pytest.approx(alone.found.log_likelihood, abs=0.5)
    assert sorted(both.found.tree.taxa) == sorted(alignment.taxa)
    with pytest.raises(InputError, match="is on the tree and not in the alignment") as caught:
        run_ml(MlSettings("few.fa", engine="differences", prefix="other", tree="alone.tree"))
    assert caught.value.file == "alone.tree"


def shares_by_split(prefix: str) -> dict[frozenset[str], float]:
    """Of every branch that has one in the record, where they stand as the labels do in the tree's text."""
    record = json.loads(Path(f"{prefix}.json").read_text())
    shares, labels = record["supports"]["SPRTA"], re.findall(r"\)([0-9.e+-]+)", record["tree"])
    assert [float(label) for label in labels] == pytest.approx([100 * share for share in shares], abs=0.51)
    places = iter(range(len(labels)))
    (tree,) = parse_newick(re.sub(r"\)[0-9.e+-]+", lambda _: f"){next(places)}", record["tree"]))
    found: dict[frozenset[str], float] = {}
    for x, place in enumerate(tree.labels):
        if place is not None:
            below = [x]
            for node in below:
                below += [int(child) for child in tree.children(node)]
            side = {tree.taxa[node] for node in below if node < tree.n_tips}
            split = side if min(tree.taxa) not in side else set(tree.taxa) - side
            found[frozenset(split)] = shares[int(place)]
    return found


def test_an_outgroup_changes_where_the_tree_begins_and_nothing_else(folder):
    taxa = outbreak(30, 3)[0].taxa
    plain = run_ml(MlSettings("x.fa", engine="differences", sprta=True, prefix="o", model="HKY+F"))
    for names in (taxa[7], f"{taxa[3]},{taxa[21]}"):
        settings = MlSettings(
            "x.fa", engine="differences", sprta=True, prefix="h", model="HKY+F", outgroup=names,
            picture="h.svg", redo=True,
        )  # fmt: skip
        hung = run_ml(settings)
        assert hung.found.log_likelihood == plain.found.log_likelihood
        one, other = next(iter(read_trees("o.tree"))), next(iter(read_trees("h.tree")))
        assert robinson_foulds(one, other) == 0
        top = [other.taxa[x] for x in other.children(other.n_nodes - 1) if x < other.n_tips]
        assert names.split(",")[0] in top
        assert shares_by_split("h") == pytest.approx(shares_by_split("o"))
        assert settings.files["h.svg"].endswith("from its outgroup")
    assert any("is no group of this tree" in warning for warning in hung.warnings)
    with pytest.raises(InputError, match="no taxon 'nobody'"):
        run_ml(MlSettings("x.fa", engine="differences", prefix="n", outgroup="nobody"))


def test_genes_have_no_engine(folder):
    with pytest.raises(InputError, match="--engine is of one alignment"):
        run_genes(MlSettings(".", engine="differences"))


def test_patterns_are_counted(folder):
    alignment, _ = outbreak(25, 9)
    assert patterns(genomes_of(alignment)) == len(site_patterns(alignment).weights)


def test_from_the_command_line(folder):
    result = CliRunner().invoke(build_app(), ["ml", "x.fa", "--engine", "differences", "--sprta", "-p", "c"])
    assert result.exit_code == 0, result.output
    assert "log-likelihood: " in result.output
    assert "SPRTA mean" in result.output
    shares = np.array(json.loads((folder / "c.json").read_text())["supports"]["SPRTA"])
    assert ((shares > 0) & (shares <= 1)).all()
