"""Concordance of gene trees: against IQ-TREE's counts, quartets by hand, the posterior by quadrature."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

from phloem.analysis.concordance import ConcordanceSettings, run_concordance
from phloem.errors import InputError, InputWarning
from phloem.io.trees import parse_trees, read_tree
from phloem.summary.concordance import around_branches, concordance, local_posterior
from phloem.tree.reroot import unroot
from phloem.tree.tree import Tree

RECORDED = json.loads((Path(__file__).parents[2] / "golden" / "iqtree_concordance.json").read_text())
SMALL = "(a,b,((c,d),(e,(f,g))));"


def trees(*texts: str) -> list[Tree]:
    return [parse_trees(text)[0] for text in texts]


def test_counts_are_iqtrees():
    (reference,), genes = trees(RECORDED["reference"]), trees(*RECORDED["genes"])
    found = concordance(reference, genes)
    numbers = found.concordant, found.first, found.second, found.neither, found.decisive
    for k, x in enumerate(found.branches.tolist()):
        (row,) = [r for r in RECORDED["branches"] if abs(r["Length"] - reference.lengths[x]) < 1e-6]
        own, *alternatives, neither, decisive = [int(column[k]) for column in numbers]
        assert (own, neither, decisive) == (row["gCF_N"], row["gDFP_N"], row["gN"])
        assert sorted(alternatives) == sorted((row["gDF1_N"], row["gDF2_N"]))  # which is first is a name
    without = concordance(reference, genes[1:])
    assert without.decisive.sum() < found.decisive.sum()


def distances(tree: Tree) -> dict[tuple[str, str], int]:
    """Branches between tips."""
    above = [[x] for x in range(tree.n_tips)]
    for path in above:
        while path[-1] != tree.n_nodes - 1:
            path.append(int(tree.parent[path[-1]]))
    names = tree.taxa
    return {
        (names[i], names[j]): len(set(above[i]) ^ set(above[j]))
        for i, j in itertools.product(range(tree.n_tips), repeat=2)
    }


def shares_by_hand(reference: Tree, gene: Tree, branch: int) -> np.ndarray:
    """Of all quartets of one taxon a group, by the four-point condition."""
    groups = around_branches(reference)[1][:, branch]
    members = [[n for n, inside in zip(reference.taxa, own) if inside and n in gene.taxa] for own in groups.T]
    d, counts = distances(gene), np.zeros(3)
    for a, b, c, e in itertools.product(*members):
        sums = np.array([d[a, b] + d[c, e], d[a, c] + d[b, e], d[a, e] + d[b, c]])
        if (sums == sums.min()).sum() == 1:
            counts[sums.argmin()] += 1
    return counts / counts.sum() if counts.sum() else counts


@pytest.mark.parametrize(
    "gene",
    [
        "(a,b,((c,d),(e,(f,g))));",
        "((a,c),((b,d),((e,g),f)));",
        "(g,(a,f),(b,c,d,e));",  # unresolved
        "(a,b,c,d,e,f,g);",
        "((a,(d,e)),(b,g));",
    ],
)
def test_quartets_are_those_counted_one_by_one(gene):
    (reference, tree) = trees(SMALL, gene)
    found = concordance(reference, [tree])
    for k in range(len(found.branches)):
        np.testing.assert_allclose(found.quartets[k], shares_by_hand(reference, tree, k), atol=1e-12)


def test_the_tree_agrees_with_itself_and_an_interchange_is_the_alternative():
    reference, other = trees(SMALL, "(a,c,((b,d),(e,(f,g))));")
    found = concordance(reference, [reference] * 3)
    assert (found.concordant == 3).all() and (found.posterior > 0.85).all()
    found = concordance(reference, [other])
    assert sorted(found.concordant.tolist()) == [0, 0, 1, 1] and found.neither.sum() == 2 - (
        found.first.sum() + found.second.sum()
    )


def test_the_posterior_is_the_integral():
    for z in ((8.0, 2.0, 6.0), (3.0, 3.0, 3.0), (0.0, 5.0, 1.0), (20.5, 6.2, 4.3)):
        weights = []
        for own in z:
            rest = sum(z) - own
            weights.append(quad(lambda t, own=own, rest=rest: t**own * ((1 - t) / 2) ** rest, 1 / 3, 1)[0])
        expected = weights[0] / sum(weights)  # a branch that is exponential with rate 1: flat in t
        assert local_posterior(np.array([z]))[0] == pytest.approx(expected, rel=1e-6)
    assert local_posterior(np.zeros((1, 3)))[0] == pytest.approx(1 / 3)
    assert local_posterior(np.array([[900.0, 40.0, 60.0]]))[0] == pytest.approx(1.0)


def test_files_carry_the_labels_the_tree_had(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = "[branch labels, in percent: UFBoot]\n"
    Path("t.tree").write_text(head + "(a:1,b:1,((c:1,d:1)90:1,(e:1,(f:1,g:1)80:1)70:1)60:1);\n")
    Path("g.nwk").write_text(SMALL + "\n" + "(a,b,(c,d));\n")
    result = run_concordance(ConcordanceSettings("t.tree", "g.nwk"))
    assert result.names == ("UFBoot", "gCF", "local posterior")
    text = Path("t.cf.tree").read_text()
    assert text.startswith("[branch labels, in percent: UFBoot/gCF/local posterior]\n")
    labels = [label for label in read_tree("t.cf.tree").labels if label]
    assert sorted(label.split("/")[0] for label in labels) == ["60", "70", "80", "90"]
    assert all(label.split("/")[1] == "100.0" for label in labels)
    table = Path("t.cf.tsv").read_text().splitlines()
    assert len(table) == 5 and json.loads(Path("t.cf.json").read_text())["gene_trees"] == 2
    with pytest.raises(InputError, match="exists already"):
        run_concordance(ConcordanceSettings("t.tree", "g.nwk"))


def test_a_branch_without_a_label_has_a_sign_in_its_place(tmp_path, monkeypatch):
    """Else its first number, gCF, would be read as what the others' first number is."""
    monkeypatch.chdir(tmp_path)
    Path("t.tree").write_text("(a,b,((c,d),(e,(f,g)80/95)70)60/90);")
    Path("g.nwk").write_text(SMALL)
    result = run_concordance(ConcordanceSettings("t.tree", "g.nwk"))
    assert result.names == ("label 1", "label 2", "gCF", "local posterior")
    labels = sorted(label for label in read_tree("t.cf.tree").labels if label)
    assert [label.rsplit("/", 2)[0] for label in labels] == ["-/-", "60/90", "70/-", "80/95"]
    Path("t.tree").write_text("(a,b,((c,d),(e,(f,g))));")
    run_concordance(ConcordanceSettings("t.tree", "g.nwk", redo=True))
    assert {label.count("/") for label in read_tree("t.cf.tree").labels if label} == {1}


def test_branches_without_a_length_resolve_nothing(tmp_path, monkeypatch):
    """Equal sequences are joined as they stand in the file, gene after gene."""
    monkeypatch.chdir(tmp_path)
    gene = "((c:.1,d:.1):.1,e:.1,(a1:0,(a2:0,a3:0):{}):.2);"
    Path("g.nwk").write_text(
        gene.format(0) + gene.format(2.6e-6) + "(c:.1,d:.1,(e:.1,(a1:0,a2:0):0):.2);" * 6
    )
    for pair in ("(a1,a2),a3", "(a2,a3),a1"):
        Path("t.tree").write_text(f"(c,d,(e,({pair})));")
        result = run_concordance(ConcordanceSettings("t.tree", "g.nwk", redo=True))
        row = next(row for row in result.rows if row["branch"].count(",") == 1)
        assert (row["gDFP_N"], row["gN"], row["local_posterior"]) == (2, 2, pytest.approx(1 / 3))
        assert result.short == (1, 1) + (1,) * 6
        assert json.loads(Path("t.cf.json").read_text())["short_branches"] == 8
        every = run_concordance(ConcordanceSettings("t.tree", "g.nwk", shortest=0, redo=True))
        row = next(row for row in every.rows if row["branch"].count(",") == 1)
        assert row["gCF_N"] == (2 if pair.startswith("(a2") else 0) and row["local_posterior"] != 1 / 3
    rooted = trees("((a1:0,(a2:0,a3:0):0):1e-7,(c:.1,(d:.1,e:.1):.1):1e-7);", "((a1,(a2,a3)),(c,(d,e)));")
    assert concordance(trees("(c,d,(e,(a1,(a2,a3))));")[0], rooted).short == (2, 0)
    Path("g.nwk").write_text("(c:.1,d:.1,(e:.1,(a1:.1,a2:.1):-.01):.2);")  # as neighbour joining leaves
    with pytest.warns(InputWarning, match="negative length, which counts as zero"):
        assert run_concordance(ConcordanceSettings("t.tree", "g.nwk", redo=True)).short == (1,)
    for given, said in (
        ({"shortest": -1.0, "genes": "g.nwk"}, "-1"),
        ({"shortest": 1.0}, "about gene trees"),
    ):
        with pytest.raises(InputError, match=said):
            run_concordance(ConcordanceSettings("t.tree", **({"alignment": "no"} | given)))


def test_trees_that_say_nothing_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("g.nwk").write_text("(a,b,(c,x));\n")
    Path("t.tree").write_text("(a,b,(c,d));\n")
    with pytest.raises(InputError, match=r"gene tree 1 has a taxon 'x'.*") as caught:
        run_concordance(ConcordanceSettings("t.tree", "g.nwk"))
    assert caught.value.file == "g.nwk"
    Path("t.tree").write_text("(a,b,c,d);\n")
    with pytest.raises(InputError, match="not an unrooted binary") as caught:
        run_concordance(ConcordanceSettings("t.tree", "g.nwk"))
    assert caught.value.file == "t.tree"
    rooted = unroot(trees("((a,b),(c,d));")[0])
    assert len(concordance(rooted, []).branches) == 1
