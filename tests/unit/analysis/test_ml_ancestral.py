"""`phloem ml --ancestral`: the table and the tree, against the sum over all states and against IQ-TREE."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

from phloem.analysis.ml import run_ml
from phloem.analysis.ml_settings import MlSettings
from phloem.io.alignment import read_alignment
from phloem.io.trees import newick_text, parse_trees, read_tree
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.tree import Tree

GOLDEN = Path(__file__).parents[2] / "golden" / "iqtree_ancestral.json"
PRIMATES = Path(__file__).parents[3] / "examples" / "primates.nex"
ROWS = {
    "a": "ACGTRCGTNCGTACGAAC",
    "b": "ACGTACGTNCGTACTAAC",
    "c": "ACGTTCGANCGTACTAGC",
    "d": "ACGATCGANCGGACTAGC",
    "e": "AAAAAAAANAAAAAATAA",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("small.fasta", ROWS)
    return tmp_path


def write(name: str, rows: dict[str, str]) -> None:
    Path(name).write_text("".join(f">{taxon}\n{row}\n" for taxon, row in rows.items()))


def of(alignment: str = "small.fasta", prefix: str = "o", **given):
    settings = {"model": "F81+F", "threads": 1, "fast": True, "ancestral": True} | given
    return run_ml(MlSettings(alignment, prefix=prefix, **settings))


def table(prefix: str = "o") -> dict[str, list[list[str]]]:
    """Node → its rows."""
    lines = [x for x in Path(f"{prefix}.state").read_text().splitlines() if not x.startswith("#")]
    found: dict[str, list[list[str]]] = {}
    for line in lines[1:]:
        name, *cells = line.split("\t")
        found.setdefault(name, []).append(cells)
    return found


def probabilities(rows) -> np.ndarray:
    return np.array([[float(x) for x in row[-4:]] for row in rows])


def brute_force(tree: Tree, result) -> dict[str, np.ndarray]:
    """Node's name → (L, 4), by summing over all states of all inner nodes."""
    likelihood = result.found.likelihood
    process = likelihood._accepted.point.site_model.processes[0]
    alignment, inner = likelihood.alignment, range(tree.n_tips, tree.n_nodes)
    p = [expm(process.rate_matrix * length) for length in tree.lengths]
    found = {tree.labels[x]: np.zeros((alignment.n_sites, 4)) for x in inner}
    row = {taxon: k for k, taxon in enumerate(alignment.taxa)}
    for states in product(range(4), repeat=len(inner)):
        at = dict(zip(inner, states))
        term = np.full(alignment.n_sites, process.root_frequencies[states[-1]])
        for x in range(tree.n_nodes - 1):
            own = p[x][at[int(tree.parent[x])]]
            if x < tree.n_tips:
                term *= alignment.state_sets[alignment.codes[row[tree.taxa[x]]]] @ own
            else:
                term *= own[at[x]]
        for x in inner:
            found[tree.labels[x]][:, at[x]] += term
    return {name: of_node / of_node.sum(1, keepdims=True) for name, of_node in found.items()}


@pytest.mark.parametrize("outgroup", [None, "d", "c,d"])
def test_states_are_sums_over_all_assignments(folder, outgroup):
    result = of(outgroup=outgroup)
    tree, found = read_tree("o.ancestral.tree"), table()
    want = brute_force(tree, result)
    assert set(want) == {"Node1", "Node2", "Node3"} == set(found) and tree.labels[-1] == "Node1"
    for name, posterior in want.items():
        assert [row[0] for row in found[name]] == [str(k) for k in range(1, 19)]
        np.testing.assert_allclose(probabilities(found[name]), posterior, atol=6e-6)
        for row, best, p in zip(found[name], posterior.argmax(1), posterior.max(1)):
            assert row[1] == ("-" if row[0] == "9" else "ACGT"[best]), (name, row, p)  # nobody has site 9
    other = probabilities(found["Node1"]) - probabilities(found["Node3"])
    assert np.abs(other).max() > 0.1  # another node's row would be seen
    assert newick_text([Tree(tree.taxa, tree.parent, tree.lengths, None, {}, tree.rooted)]).strip() == (
        Path("o.tree").read_text().strip()
    )


def test_equal_sequences_have_nodes_of_their_own(folder):
    """a, and two copies of it: nodes that join them have what is at a, an ambiguous character filled in."""
    write("copies.fasta", ROWS | {"x": ROWS["a"], "y": ROWS["a"]})
    of("copies.fasta", "c", model="F81+F{0.25,0.25,0.25,0.25}", outgroup="x")
    names = {name: rows for name, rows in table("c").items()}
    assert len(names) == 5 and all(len(rows) == 18 for rows in names.values())
    tree = read_tree("c.ancestral.tree")
    joins = [tree.labels[int(tree.parent[tree.taxa.index(copy)])] for copy in ("x", "y")]
    for name in joins:
        text = "".join(row[1] for row in names[name])
        assert text[:4] == "ACGT" and text[4] in "AG" and text[5:8] == "CGT", text
        np.testing.assert_allclose(probabilities(names[name])[4, [1, 3]], 0.0)  # R is A or G
    others = [name for name in names if name not in joins]
    assert {tuple(map(tuple, names[name])) for name in joins} != {tuple(map(tuple, names[n])) for n in others}


def test_parts_are_numbered_and_have_their_own_states(folder):
    Path("two.txt").write_text("DNA, one = 1-10\nDNA, two = 11-18\n")
    result = of(partitions="two.txt")
    lines = Path("o.state").read_text().splitlines()
    assert "# Part: 1 = one, 2 = two" in lines
    assert "Node\tPart\tSite\tState\tp_A\tp_C\tp_G\tp_T" in lines
    rows = table()["Node2"]
    assert [row[0] for row in rows] == ["1"] * 10 + ["2"] * 8 and rows[10][1] == "1"
    alone = result.found.likelihood.alone("two")
    posteriors = [posterior[alone.site_pattern] for _, posterior in alone.states_of_all_nodes()]
    found = probabilities(rows[10:])
    assert any(np.allclose(found, want, atol=6e-6) for want in posteriors)


def test_parts_of_other_alphabets_say_whose_columns_they_are(folder):
    write("mixed.fasta", {"a": "ACGTACMK01", "b": "ACGTTCMR01", "c": "AGGTACLR11", "d": "AGGAACLK10"})
    Path("mixed.txt").write_text("DNA, n = 1-6\nAA, p = 7-8\nBIN, m = 9-10\n")
    of("mixed.fasta", partitions="mixed.txt", model=None)
    lines = Path("o.state").read_text().splitlines()
    assert "# p_1, p_2, … of part 3: 0, 1" in lines
    head = next(line for line in lines if line.startswith("Node\t")).split("\t")
    assert head[4:] == [f"p_{k}" for k in range(1, 21)]
    assert all(len(row) == 23 for row in table()["Node1"])


def test_primates_are_as_iqtree_has_them():
    recorded = json.loads(GOLDEN.read_text())
    tree = next(iter(parse_trees(recorded["tree"])))
    likelihood = TreeLikelihood(read_alignment(PRIMATES), tree, recorded["model"])
    sites = np.array(recorded["sites"]) - 1
    for name, rows in recorded["nodes"].items():
        found = likelihood.ancestral_states("root" if name == "Node1" else name)[sites]
        np.testing.assert_allclose(found, [row[1:] for row in rows], atol=6e-6)
    assert np.abs(found[:, ::-1] - [row[1:] for row in rows]).max() > 0.5  # other columns would be seen
    of_all = {x: posterior for x, posterior in likelihood.states_of_all_nodes()}
    assert len(of_all) == likelihood.tree.n_nodes
    base = of_all[likelihood.tree.n_nodes - 1][likelihood.site_pattern]
    np.testing.assert_allclose(base, likelihood.ancestral_states(), atol=1e-12)
