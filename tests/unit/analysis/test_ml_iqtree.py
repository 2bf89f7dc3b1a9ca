"""`phloem ml --iqtree-files`: files as IQ-TREE names and writes them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.ml import run_ml
from phloem.analysis.ml_settings import MlSettings
from phloem.inference.ml.replicates import extended_consensus, inner_shares
from phloem.io.partitions import read_partitions
from phloem.io.trees import parse_trees, read_tree, read_trees
from phloem.tree.splits import robinson_foulds, tree_splits

ROWS = {
    "a": "ACGTACGTACGTACGAACGTACGTAA",
    "b": "ACGTACGTACGTACTAACGTACGTAC",
    "c": "ACGTTCGAACGTACTAGCGTTCGTAC",
    "d": "ACGATCGAACGGACTAGCGTTCGAAC",
    "e": "ATGATCGAACGGACTTGCGATCGAAC",
    "f": "ATGATCGAACGGACTTGCGATCGAAC",  # as e
    "g'h": "ATGTTCGAACTGACTTGCGATCGACC",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    Path("two.txt").write_text("DNA, one = 1-12\nDNA, two = 13-26\n")


def of(**given):
    usual = {"model": "JC+G4", "threads": 1, "patience": 1, "prefix": "o", "iqtree_files": True}
    return run_ml(MlSettings("x.fasta", **(usual | given)))


def table(name: str) -> list[list[str]]:
    return [line.split("\t") for line in Path(name).read_text().splitlines() if not line.startswith("#")]


def test_every_file_that_is_announced_is_there():
    for given in ({"ufboot": 1000, "ancestral": True}, {"bootstrap": "3"}, {"model": "MF", "patience": None}):
        more = {"model_set": "JC,HKY", "rate_set": "E"} if given.get("model") == "MF" else {}
        result = of(**given, **more, redo=True)
        assert all(Path(name).exists() for name in result.files), given
    assert not any(name.endswith(".treefile") for name in result.files)


def test_what_scripts_look_for():
    result = of(ufboot=1000, alrt=100, ancestral=True, model="auto", model_set="JC,HKY", rate_set="E,G4")
    report, log, optimum = Path("o.iqtree").read_text(), Path("o.log").read_text(), result.found.optimum
    text = result.choice.winner.text
    for pattern, value in (
        (r"^Log-likelihood of the tree: (\S+) \(s\.e\. \d", optimum.log_likelihood),
        (r"^Number of free parameters .*: (\d+)$", optimum.n_free),
        (r"^Bayesian information criterion \(BIC\) score: (\S+)$", optimum.bic),
        (r"^Total tree length \(sum of branch lengths\): (\S+)$", optimum.tree.lengths[:-1].sum()),
    ):
        assert float(re.search(pattern, report, re.M)[1]) == pytest.approx(value, abs=1e-4), pattern
    assert f"Best-fit model according to BIC: {text}\n" in report
    assert f"Model of substitution: {text}\n" in report and "Input data: 7 sequences with 26 nucl" in report
    assert f"Best-fit model: {text} chosen according to BIC" in log
    assert f"BEST SCORE FOUND : {optimum.log_likelihood:.3f}" in log
    (newick,) = re.findall(r"^Tree in newick format:\n\n(.*)$", report, re.M)
    assert newick == Path("o.treefile").read_text().strip()


def test_the_tree_has_supports_and_names_and_the_table_its_names():
    of(ufboot=1000, alrt=100, ancestral=True, outgroup="d")
    tree, plain = read_tree("o.treefile"), read_tree("o.tree")
    assert robinson_foulds(tree, plain) == 0
    labels = [label for label in tree.labels if label]
    names = [label.split("/")[0] for label in labels]
    assert sorted(names) == sorted({row[0] for row in table("o.state")[1:]})
    supports = sorted(label.split("/", 1)[1] for label in labels if "/" in label)
    assert supports == sorted(label for label in plain.labels if label)
    below = {frozenset(x): y for x, y in clades(tree)}
    for members, label in clades(plain):
        assert below[frozenset(members)].split("/", 1)[1] == label  # the same at every branch


def clades(tree):
    inside = [{tree.taxa[x]} if x < tree.n_tips else set() for x in range(tree.n_nodes)]
    for x in range(tree.n_nodes - 1):
        inside[int(tree.parent[x])] |= inside[x]
    return [(inside[x], label) for x, label in enumerate(tree.labels) if label and inside[x] != set(ROWS)]


def test_sites_and_rates():
    result = of(model="JC+I+G4")
    head, line = Path("o.sitelh").read_text().splitlines()
    values = [float(x) for x in line.split()[1:]]
    assert head == "1 26" and line.startswith("Site_Lh ") and len(values) == 26
    assert sum(values) == pytest.approx(result.found.optimum.log_likelihood, abs=1e-6)
    rows, sites = table("o.rate"), table("o.sites")
    assert rows[0] == ["Site", "Rate", "Cat", "C_Rate"]
    assert [row[0] for row in rows[1:]] == [str(k) for k in range(1, 27)]
    found, own = [[float(row[k]) for row in rows[1:]] for k in (1, 3)]
    np.testing.assert_allclose(found, [float(row[2]) for row in sites[1:]], atol=6e-6)
    likelihood = result.found.likelihood
    shares, rates = likelihood.site_categories(), [*likelihood.category_rates, 0.0]
    np.testing.assert_allclose(own, [rates[k] for k in shares.argmax(0)], atol=6e-6)
    assert len({row[2] for row in rows[1:]}) > 1


def test_parts():
    result = of(model="auto", model_set="JC,HKY", rate_set="E", partitions="two.txt")
    rows = table("o.rate")
    assert rows[0][0] == "Part" and [row[:2] for row in rows[12:14]] == [["1", "12"], ["2", "1"]]
    values = [float(x) for x in Path("o.sitelh").read_text().split()[3:]]
    assert sum(values) == pytest.approx(result.found.optimum.log_likelihood, abs=1e-6)
    scheme = read_partitions("o.best_scheme.nex", 26)
    assert [subset.name for subset in scheme.subsets] == ["one", "two"]
    assert [subset.model_text for subset in scheme.subsets] == [
        result.choices[name].winner.text for name in ("one", "two")
    ]
    assert [len(subset.sites) for subset in scheme.subsets] == [12, 14]
    assert "Best-fit model according to BIC: " in Path("o.iqtree").read_text()


def test_splits_and_consensus_of_replicates():
    of(bootstrap="20")
    text, trees = Path("o.splits.nex").read_text(), list(read_trees("o.boottrees"))
    assert len(trees) == 20 and "[7] 'g''h'" in text
    shares = {
        frozenset(int(k) for k in members.split()): float(percent) / 100
        for percent, members in re.findall(r"^\t(\S+)\t ([\d ]+),$", text, re.M)
    }
    assert len(shares) == int(re.search(r"nsplits=(\d+)", text)[1])
    members = {name: k for k, name in enumerate(ROWS, 1)}
    ef = frozenset((members["e"], members["f"]))
    for split, share in shares.items():
        assert len(split & ef) != 1  # equal sequences are together
        having = 0
        for tree in trees:
            inside = [{members[tree.taxa[x]]} if x < 7 else set() for x in range(tree.n_nodes)]
            for x in range(tree.n_nodes - 1):
                inside[int(tree.parent[x])] |= inside[x]
            having += split in map(frozenset, inside) or set(range(1, 8)) - split in inside
        assert share == pytest.approx(having / 20)
    consensus = read_tree("o.contree")
    assert set(consensus.taxa) == set(ROWS) and (consensus.lengths[:-1] >= 0).all()
    labels = {label for label in consensus.labels if label}
    assert labels <= {f"{100 * share:.0f}" for share in shares.values()} and labels
    assert len(tree_splits(consensus)) == len([label for label in consensus.labels if label]) + 1  # e, f


def test_the_extended_consensus_is_greedy():
    taxa = tuple("abcdef")
    bits = {name: 1 << k for k, name in enumerate(taxa)}

    def key(names: str) -> bytes:
        return np.array([sum(bits[c] for c in names)], np.uint64).tobytes()

    shares = {
        key("ef"): 0.6,
        key("cd"): 0.4,
        key("de"): 0.55,
        key("def"): 0.3,
        key("cdef"): 0.35,
        key("bc"): 0.1,
    }
    tree = extended_consensus(shares, taxa)
    want = parse_trees("(a,b,((c,d)40,(e,f)60)35);")[0]
    assert robinson_foulds(tree, want) == 0  # de contradicts ef, def contradicts cd
    assert {label for label in tree.labels if label} == {"60", "40", "35"}
    assert inner_shares(shares | {key("b"): 1.0, key("bcdef"): 1.0, key("cde"): 0.0}, 6) == shares
    star = extended_consensus({}, taxa)
    assert star.n_nodes == 7


def test_three_taxa_have_no_splits():
    Path("x.fasta").write_text("".join(f">{name}\n{ROWS[name]}\n" for name in "abe"))
    result = of(ufboot=1000)
    assert all(Path(name).exists() for name in result.files)
    assert "nsplits=0;" in Path("o.splits.nex").read_text()
    assert read_tree("o.contree").lengths[:-1] == pytest.approx(read_tree("o.tree").lengths[:-1])
