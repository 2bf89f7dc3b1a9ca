"""`phloem ml --genes FOLDER`: one table, a tree a gene; bad genes are told, killed runs go on."""

from __future__ import annotations

import bz2
import json
from dataclasses import replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from phloem.analysis import ml_adequacy, ml_genes
from phloem.analysis.ml import run_ml
from phloem.analysis.ml_adequacy import IN_A_ROW
from phloem.analysis.ml_genes import run_genes
from phloem.analysis.ml_settings import MlSettings
from phloem.errors import InputError
from phloem.io.journal import Journal
from phloem.io.trees import read_tree, read_trees
from phloem.tree.splits import robinson_foulds
from unit.inference.mcmc.ranks_in_threads import PATIENCE, led

ROWS = (
    "ACGTACGTACGTACGAAC",
    "ACGTACGTACGTACTAAC",
    "ACGTTCGAACGTACTAGC",
    "ACGATCGAACGGACTAGC",
    "ACGATCGTACGGACTTGC",
)
SETTINGS = MlSettings("genes", model="JC", patience=0, threads=1, prefix="o")


def fasta(rows) -> str:
    return "".join(f">{name}\n{row}\n" for name, row in zip("abcde", rows))


@pytest.fixture
def genes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "genes"
    folder.mkdir()
    (folder / "x.fasta").write_text(fasta(ROWS))
    (folder / "y.fa").write_text(fasta(row[::-1] + "AC" for row in ROWS))
    (folder / "z.fasta").write_text(fasta((*ROWS[:3], ROWS[3][:-1], ROWS[4])))
    (folder / "notes.txt").write_text("nothing\n")
    return folder


def table() -> list[dict[str, str]]:
    head, *rows = [line.split("\t") for line in Path("o.genes.tsv").read_text().splitlines()]
    return [dict(zip(head, row)) for row in rows]


def test_every_gene_is_as_alone_and_a_bad_one_does_not_end_the_run(genes):
    told = []
    result = run_genes(replace(SETTINGS, alrt=100), lambda doing, value: told.append(str(doing)))
    x, y, z = table()
    assert [x["gene"], y["gene"], z["gene"]] == ["x", "y", "z"] and told[1] == "gene 2 of 3, y"
    assert "z.fasta:7:2" in z["error"] and "hint:" in z["error"] and not z["log_likelihood"]
    assert [row["gene"] for row in result.failed] == ["z"] and x["error"] == ""
    alone = run_ml(MlSettings("genes/y.fa", model="JC", patience=0, threads=1, prefix="alone", alrt=100))
    optimum = alone.found.optimum
    assert float(y["log_likelihood"]) == pytest.approx(optimum.log_likelihood, abs=1e-6)
    assert float(y["tree_length"]) == pytest.approx(optimum.branch_lengths.sum(), abs=1e-6)
    assert float(y["support_mean"]) == pytest.approx(100 * alone.supports.shares.mean(), abs=0.06)
    (own,) = alone.adequacy.parts
    pairs = own.symmetry.p[np.isfinite(own.symmetry.p)]
    assert (int(y["composition_tested"]), int(y["composition_failing"])) == (5, len(own.failing))
    assert (int(y["symmetry_tested"]), int(y["symmetry_failing"])) == (len(pairs), int((pairs < 0.05).sum()))
    assert float(y["symmetry_p_corrected"]) == pytest.approx(min(1, pairs.min() * len(pairs)), rel=1e-3)
    assert not z["composition_tested"] and not z["symmetry_p_corrected"]
    assert Path("o.gene_trees/y.tree").read_text() == Path("alone.tree").read_text()
    assert robinson_foulds(read_tree("o.gene_trees/x.tree"), next(iter(read_trees("o.genes.nwk")))) == 0
    assert len(list(read_trees("o.genes.nwk"))) == 2 and not Path("o.gene_trees/z.tree").exists()
    assert len(json.loads(Path("o.genes.json").read_text())["genes"]) == 3
    assert not Path("o.genes.checkpoint").exists()
    with pytest.raises(InputError, match="exists already"):
        run_genes(SETTINGS)


def test_composition_and_symmetry_of_every_gene(genes, monkeypatch):
    """One sequence of A alone, and too many sequences for pairs."""
    (genes / "y.fa").write_text(fasta((*ROWS[:4], "A" * 18)))
    (genes / "z.fasta").unlink()
    run_genes(SETTINGS)
    x, y = table()
    assert (x["composition_failing"], y["composition_failing"]) == ("0", "1")
    assert int(y["symmetry_failing"]) > int(x["symmetry_failing"]) == 0
    assert float(y["symmetry_p_corrected"]) < float(x["symmetry_p_corrected"])
    monkeypatch.setattr(ml_adequacy, "MOST_TAXA", 4)
    run_genes(replace(SETTINGS, redo=True))
    assert [table()[1][name] for name in IN_A_ROW] == ["5", "1", "", "", ""]


def interrupted_at_y(monkeypatch):
    """A run that ends when the second gene begins."""
    analysed = ml_genes.analysed

    def mortal(settings):
        if settings.prefix == "y":
            raise KeyboardInterrupt
        return analysed(settings)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(ml_genes, "analysed", mortal)
        run_genes(SETTINGS)


def test_a_run_that_was_killed_goes_on(genes, monkeypatch):
    whole = run_genes(replace(SETTINGS, prefix="whole"))
    interrupted_at_y(monkeypatch)
    with Path("o.genes.checkpoint").open("a") as stream:
        stream.write('\n{"gene": "y", "tr')  # cut short
    with pytest.raises(InputError, match="another analysis"):
        run_genes(replace(SETTINGS, model="HKY"))
    again = run_genes(SETTINGS)
    assert again.kept == 1
    for one, other in zip(again.rows, whole.rows):
        assert {k: v for k, v in one.items() if k != "seconds"} == {
            k: v for k, v in other.items() if k != "seconds"
        }


def test_a_gene_that_changed_is_done_again(genes, monkeypatch):
    interrupted_at_y(monkeypatch)
    (genes / "x.fasta").write_text(fasta(row + "A" for row in ROWS))
    assert run_genes(SETTINGS).kept == 0
    assert table()[0]["sites"] == "19"


def test_what_is_of_one_alignment_is_refused(genes):
    for change, words in (
        ({"partitions": "p"}, "--partitions is of one"),
        ({"tree": "t.nwk"}, "--tree is of one"),
        ({"picture": "p.svg"}, "--picture is of one"),
        ({"model": "MF"}, "searches none"),
        ({"ufboot": 5}, "5 replicates"),
        ({"alignment": "genes/x.fasta"}, "wants a folder"),
    ):
        with pytest.raises(InputError, match=words):
            run_genes(replace(SETTINGS, **change))
    (genes / "x.phy").write_text("")
    with pytest.raises(InputError, match="same gene, 'x'"):
        run_genes(SETTINGS)
    (genes / "empty").mkdir()
    with pytest.raises(InputError, match="no alignments"):
        run_genes(replace(SETTINGS, alignment="genes/empty"))
    assert not list(Path().glob("o.*"))


def without_times(rows) -> list[dict]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


def test_genes_are_shared_by_processes(genes):
    alone = run_genes(replace(SETTINGS, prefix="alone"))
    for size in (2, 5):
        settings = replace(SETTINGS, prefix=f"of{size}")
        found = led(size, lambda here, settings=settings: run_genes(settings, here=here))
        assert without_times(found.rows) == without_times(alone.rows) and found.kept == 0
        assert Path(f"of{size}.genes.nwk").read_text() == Path("alone.genes.nwk").read_text()
        assert not list(Path().glob("*.checkpoint*"))
    sizes = {name: str(genes / f"{name}.fa") for name in "abcd"}
    for name, n in zip("abcd", (9, 4, 7, 1)):
        Path(sizes[name]).write_text("x" * n)
    assert ml_genes.shares_of_genes(sizes, 2) == [["a", "d"], ["c", "b"]]


def test_what_all_processes_had_done_is_kept(genes, monkeypatch):
    """Two processes, one of which ends before its gene does; another number of them goes on."""
    analysed, add, other_has_both = ml_genes.analysed, Journal.add, Event()

    def mortal(settings):
        if settings.prefix == "x":
            assert other_has_both.wait(PATIENCE)
            raise RuntimeError("killed")
        return analysed(settings)

    def noted(self, row):
        add(self, row)
        if row["gene"] == "z":
            other_has_both.set()

    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="killed"):
        patched.setattr(ml_genes, "analysed", mortal)
        patched.setattr(Journal, "add", noted)
        patched.setattr(ml_genes, "shares_of_genes", lambda genes, size: [["x"], ["y", "z"]])
        led(2, lambda here: run_genes(SETTINGS, here=here))
    assert Path("o.genes.checkpoint.1").exists() and not Path("o.genes.checkpoint").exists()
    other = Path("o.genes.checkpoint.1").read_text()
    again = led(3, lambda here: run_genes(SETTINGS, here=here))
    assert again.kept == 2 and not list(Path().glob("*.checkpoint*"))
    Path("p.genes.checkpoint.1").write_text(other)
    monkeypatch.setattr(Journal, "_all", lambda self: [])  # planted: that of the first one alone
    assert run_genes(replace(SETTINGS, prefix="p")).kept == 0


def test_a_gene_tree_has_the_taxa_that_the_gene_knows(genes):
    """A taxon of dashes would be drawn somewhere, two of them together as a clade. Of a gene of dashes alone
    that is said, whatever the model; genes may be packed."""
    (genes / "z.fasta").unlink()
    (genes / "z.fasta.bz2").write_bytes(bz2.compress(fasta(["-" * 9] * 5).encode()))
    (genes / "y.fa").write_text(fasta((*ROWS[:4], "-" * 18)) + ">f\n" + "N" * 18 + "\n")
    result = run_genes(replace(SETTINGS, model="JC+F"))
    x, y = read_trees("o.genes.nwk")
    assert table()[2]["gene"] == "z" and "z.fasta.bz2: nothing is known of any taxon" in table()[2]["error"]
    assert sorted(x.taxa) == list("abcde") and sorted(y.taxa) == list("abcd")
    assert [row["taxa"] for row in table()[:2]] == ["5", "4"]
    (row,) = result.warned
    assert (
        row["gene"] == "y" and "of 2 taxa nothing is known, and the tree is without: e, f" in row["warnings"]
    )
