"""`phloem ml --fixed-tree`: files, models chosen, parts, equal sequences, what is refused, killed runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.ml import run_ml
from phloem.analysis.ml_report import report_text
from phloem.analysis.ml_settings import MlSettings
from phloem.errors import InputError, ModelError
from phloem.inference.ml import model_choice
from phloem.inference.ml.search_state import Checkpoint
from phloem.io.journal import Journal
from phloem.io.trees import read_tree
from phloem.tree.splits import robinson_foulds

ROWS = {
    "a": "ACGTACGTACGTACGAACGTTACG",
    "b": "ACGTACGTACGTACTAACGTTACG",
    "c": "ACGTTCGAACGTACTAGCGTTACG",
    "d": "ACGATCGAACGGACTAGCGATACG",
    "e": "ACGATCGTACGGACTTGCGATAGG",
    "f": "ACGATCGTACGGACTTGCGATAGG",  # as e
}
TREE = "((a:1,e:1)95:1,b:1,((c:1,d:1)'x y':1,f:1)100:1);"  # parts the equal sequences


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    Path("t.nwk").write_text(TREE)
    Path("parts.txt").write_text("DNA, one = 1-12\nDNA, two = 13-24\n")


def of(**given):
    return MlSettings("small.fasta", **{"model": "JC", "prefix": "out", "fixed_tree": "t.nwk"} | given)


SETS = {"model_set": "JC,HKY", "rate_set": "E,G4", "frequency_set": "F"}


@pytest.mark.parametrize(
    "given",
    [
        {"alrt": 100, "lbp": 100, "abayes": True, "parametric_alrt": True},
        {"ancestral": True, "auspice": True, "iqtree_files": True, "outgroup": "a"},
        {"model": "auto", **SETS},
        {"model": "HKY+AG4"},
        {
            "model": None,
            "partitions": "parts.txt",
            "linkage": "unlinked",
            "alrt": 100,
            "sampling": "genesite",
        },
        {"model": "auto", "partitions": "parts.txt", "merge": "greedy", **SETS},
        {"lengths": "given"},
        {"lengths": "scaled", "partitions": "parts.txt", "model": None},
    ],
)
def test_the_topology_is_the_one_given(given):
    settings = of(**given)
    result = run_ml(settings)
    held = read_tree("t.nwk")
    assert robinson_foulds(read_tree("out.tree"), held) == 0 and not result.rows.n_copies
    record = json.loads(Path("out.json").read_text())
    assert record["fixed_tree"]["lengths"] == (settings.lengths or "fitted")
    assert record["start"] is None and record["effort"] is None and record["tries"] == 0
    assert "the tree of t.nwk is held, not searched" in report_text(result)
    assert all(Path(name).exists() for name in settings.files) and not list(Path().glob("*.checkpoint*"))
    labels = [label for label in read_tree("out.tree").labels or () if label]
    assert not {"95", "100", "x y"} & set(labels)
    if result.supports is not None:
        assert len(labels) == 3 and len(result.supports.names) == len(record["supports"]["names"])
    for choice in result.choices.values():
        assert choice.held and choice.origin.startswith("the tree of t.nwk")


@pytest.mark.parametrize("linkage", [None, "linked", "unlinked"])
def test_a_taxon_without_data_has_no_length(linkage):
    Path("small.fasta").write_text(
        Path("small.fasta").read_text() + f">g\n{'-' * 12}{'ACGT' * 3}\n>h\n{'-' * 24}\n"
    )
    Path("t.nwk").write_text("((a,e),b,((c,d),(f,(g:.3,h:.3))));")
    parts = {} if linkage is None else {"partitions": "parts.txt", "linkage": linkage}
    result = run_ml(of(**parts))
    parts = result.found.likelihood.part_trees if linkage == "unlinked" else {"": result.tree}
    for name, tree in parts.items():
        lengths = dict(zip(tree.taxa, tree.lengths))
        assert lengths["h"] == 1e-8
        assert (lengths["g"] == 1e-8) == (name == "one")  # which has no data of it
    assert result.found.likelihood.log_likelihood() == pytest.approx(result.found.optimum.log_likelihood)


def test_a_multifurcation_stays_in_all_files():
    Path("t.nwk").write_text("(a,b,(c,d,(e,f)));")
    result = run_ml(of(model="auto", alrt=100, **SETS))
    tree = read_tree("out.tree")
    assert tree.n_nodes == 9 and "1 multifurcation stays" in report_text(result)
    shares = result.supports.shares[:, 0]
    assert np.isnan(shares).all() and '"SH-aLRT": null' in Path("out.json").read_text()
    Path("t.nwk").write_text("(a,b,(c,(d,(e,f))));")  # control: resolved, all three have one
    assert np.isfinite(run_ml(of(alrt=100, prefix="whole")).supports.shares).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tree": "t.nwk"}, "--tree"),
        ({"constraint": "t.nwk"}, "--constraint"),
        ({"ufboot": 1000}, "--ufboot"),
        ({"bootstrap": 100}, "--bootstrap"),
        ({"starts": 2}, "--starts"),
        ({"fast": True}, "--fast"),
        ({"radius": 3}, "--radius"),
        ({"engine": "differences"}, "--engine"),
        ({"lengths": "given", "model": "auto"}, "best lengths"),
        ({"lengths": "scaled", "alrt": 100}, "supports fit"),
        ({"lengths": "given", "partitions": "parts.txt", "model": None, "linkage": "unlinked"}, "own"),
        ({"fixed_tree": None, "lengths": "given"}, "--lengths is about"),
        ({"model": "JC+AG4", "alrt": 100}, "every support"),
        ({"model": "JC+AG4", "ancestral": True}, "--ancestral"),
        ({"model": "JC+G4", "gamma": "median", "lengths": "given", "fixed_tree": "two.nwk"}, "2 trees"),
        ({"fixed_tree": "few.nwk"}, "few.nwk.*'f'"),
        ({"fixed_tree": "negative.nwk", "lengths": "given"}, "negative"),
    ],
)
def test_what_would_not_be_obeyed_is_refused(given, said):
    Path("two.nwk").write_text(TREE * 2)
    Path("few.nwk").write_text("((a,e),b,(c,d));")
    Path("negative.nwk").write_text(TREE.replace("a:1", "a:-1"))
    with pytest.raises((InputError, ModelError), match=said):
        run_ml(of(**given))
    assert not list(Path().glob("out.*"))


def test_a_killed_choice_of_models_on_a_held_tree_goes_on(monkeypatch):
    Path("t.nwk").write_text("(a,b,(c,d,(e,f)));")
    monkeypatch.setattr(Checkpoint, "models", lambda self: Journal(f"{self.path}.models", self._identity))
    settings, made = of(model="auto", **SETS), []
    whole = run_ml(replace(settings, prefix="whole"))

    def counted(*given, **named):
        made.append(1)
        if len(made) == 5:
            raise KeyboardInterrupt
        return fitted(*given, **named)

    fitted = model_choice.refine
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("phloem.inference.ml.model_choice.refine", counted)
        run_ml(settings)
    assert Path("out.checkpoint.models").exists()
    with pytest.raises(InputError, match="of another analysis"):
        run_ml(replace(settings, fixed_tree=None))  # control: a search is another analysis
    again = run_ml(settings)
    assert again.found.optimum.log_likelihood == whole.found.optimum.log_likelihood
    for name in (".tree", ".models.tsv", ".model", ".sites"):
        assert Path(f"out{name}").read_bytes() == Path(f"whole{name}").read_bytes()
