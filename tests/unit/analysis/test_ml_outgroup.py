"""`phloem ml`: the tree beside its outgroup, taxa without data, variable characters only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phloem.analysis.ml import run_ml
from phloem.analysis.ml_settings import MlSettings
from phloem.errors import InputError
from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.splits import robinson_foulds

ROWS = {
    "a": "ACGTACGTACGTACGAAC",
    "b": "ACGTACGTACGTACTAAC",
    "c": "ACGTTCGAACGTACTAGC",
    "d": "ACGATCGAACGGACTAGC",
    "e": "ACGATCGTACGGACTTGC",
}


@pytest.fixture
def alignment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    return "small.fasta"


def of(alignment, prefix, **given):
    given = {"model": "JC", "patience": 1, "threads": 1, "alrt": 100} | given
    return run_ml(MlSettings(alignment, prefix=prefix, **given))


def by_split(prefix) -> dict[tuple[str, ...], float]:
    found = json.loads(Path(f"{prefix}.json").read_text())["supports"]["branches"]
    return {tuple(branch["taxa"]): branch["SH-aLRT"] for branch in found}


def test_the_outgroup_is_beside_all_others_and_changes_nothing_else(alignment):
    plain, hung = of(alignment, "plain"), of(alignment, "hung", outgroup="d, e", picture="hung.svg")
    assert hung.warnings == () and by_split("plain") == by_split("hung")
    one, other = read_tree("plain.tree"), read_tree("hung.tree")
    assert robinson_foulds(one, other) == 0 and one.lengths.sum() == pytest.approx(other.lengths.sum())
    assert hung.found.optimum.log_likelihood == plain.found.optimum.log_likelihood
    top = other.children(other.n_nodes - 1)
    outside = [x for x in top if {other.taxa[i] for i in tips(other, x)} in ({"d", "e"}, {"a", "b", "c"})]
    assert len(outside) == 1 and plain.newick != hung.newick
    assert other.labels[outside[0]] == f"{100 * by_split('hung')[('d', 'e')]:.1f}".removesuffix(".0")


def tips(tree, node) -> list[int]:
    below = [int(node)]
    for x in below:
        below += [int(child) for child in tree.children(x)]
    return [x for x in below if x < tree.n_tips]


def test_an_outgroup_that_is_no_group_or_no_taxon(alignment):
    apart = of(alignment, "apart", outgroup="a,e")
    assert len(apart.warnings) == 1 and "hangs from 'a'" in apart.warnings[0]
    for wrong, words in (("a,x", "no taxon 'x'"), ("a,b,c,d", "fewer than two")):
        with pytest.raises(InputError, match=words):
            of(alignment, "wrong", outgroup=wrong)


def test_taxa_without_data_are_named(alignment, tmp_path):
    (tmp_path / "more.fasta").write_text(Path(alignment).read_text() + f">f\n{'N' * 18}\n>g\n{'-' * 18}\n")
    said = of("more.fasta", "more").warnings
    assert len(said) == 1 and said[0].endswith("f, g") and of(alignment, "none").warnings == ()


def test_variable_characters_only(alignment, tmp_path):
    variable = [column for column in zip(*ROWS.values()) if len(set(column)) > 1]
    rows = zip(ROWS, zip(*variable))
    (tmp_path / "snps.fasta").write_text("".join(f">{name}\n{''.join(row)}\n" for name, row in rows))
    found = of("snps.fasta", "snps", model="JC+ASC", ufboot=1000)
    data, tree = read_alignment("snps.fasta"), read_tree("snps.tree")
    again = TreeLikelihood(data, tree, "JC+ASC", engine="reference")
    assert again.log_likelihood() == pytest.approx(found.found.optimum.log_likelihood, abs=1e-6)
    with pytest.raises(InputError, match="constant"):
        of(alignment, "constant", model="JC+ASC")
