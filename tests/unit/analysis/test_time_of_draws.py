"""`phloem time`: tables of sites and of codons under selection are of the draws that chains hold."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis import time_of_draws
from phloem.analysis.left_out import compared_models
from phloem.analysis.mrbayes import block_analysis
from phloem.analysis.time import TimeTreeSettings, run_time
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree, read_trees


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    base = rng.choice(list("ACG"), 24)
    rows = [np.where(rng.random(24) < 0.3, rng.choice(list("ACG"), 24), base) for _ in range(5)]
    Path("a.fa").write_text("".join(f">t{i}\n{''.join(row)}\n" for i, row in enumerate(rows)))
    Path("parts").write_text("HKY+FO+G4, a = 1-15\nJC, b = 16-24\n")
    return tmp_path


CHAINS = TimeSettings(generations=2000, sample_every=50, check_every=1000, n_runs=2, threads=1)
PARTS = TimeTreeSettings(
    "a.fa", partitions="parts", linkage="unlinked", prior=("clock_rate{a}=1",), prefix="x", chains=CHAINS,
    device="cpu", site_table=True, tree=TreeModel(clock="ucln"),
)  # fmt: skip


def log_likelihoods() -> list[float]:
    """Means over the draws after the warm-up, all of which are looked at."""
    tables = [np.genfromtxt(f"x.run{r}.log", names=True) for r in (1, 2)]
    return [table["LnL"][table["state"] > 400].mean() for table in tables]


def test_sites_of_parts_with_clocks_of_their_own(folder, monkeypatch):
    result = run_time(PARTS)
    table = np.genfromtxt("x.sites", names=True, dtype=None, encoding="utf-8", delimiter="\t")
    assert table["site"].tolist() == list(range(1, 25)) and table["part"].tolist() == ["a"] * 15 + ["b"] * 9
    assert table["log_likelihood"].sum() == pytest.approx(np.mean(log_likelihoods()), rel=1e-6)
    assert result.left_out is not None and result.left_out.sites == 24 and "x.sites" in result.files
    record = json.loads(Path("x.json").read_text())
    assert record["data"] == {"taxa": 5, "sites": 24} and record["leave_one_out"]["sites"] == 24
    before, trees = Path("x.sites").read_bytes(), Path("x.run1.trees").read_bytes()
    Path("x.sites").unlink()
    assert run_time(PARTS).left_out == result.left_out  # of an analysis that is finished
    assert Path("x.sites").read_bytes() == before and Path("x.run1.trees").read_bytes() == trees
    strict = replace(PARTS, prefix="y", tree=TreeModel(), prior=("clock_rate=1",), linkage=None)
    run_time(strict)
    found = compared_models(["x", "y"])
    told = {one.model.partition("JC, ")[2] for one in found}
    assert told == {"strict clock, constant", "ucln clock, constant"}
    # planted: the rates of the first clock for both parts
    whole = time_of_draws.lengths_by_clock
    monkeypatch.setattr(time_of_draws, "lengths_by_clock", lambda *what: whole(*what)[[0, 0]])
    run_time(PARTS)
    table = np.genfromtxt("x.sites", names=True, dtype=None, encoding="utf-8", delimiter="\t")
    assert table["log_likelihood"].sum() != pytest.approx(np.mean(log_likelihoods()), rel=1e-6)


def states_by_hand(tree, codes):
    """(N, L, 4) of the states of all nodes under JC, summed over those of the inner ones; branches last years
    at a rate of 1."""
    n = tree.n_nodes
    p = -0.25 * np.expm1(-4 / 3 * tree.lengths)
    found = np.zeros((n, codes.shape[1], 4))
    for inner in product(range(4), repeat=n - tree.n_tips):
        states = np.concatenate([codes, np.repeat(np.array(inner)[:, None], codes.shape[1], 1)])
        same = states[:-1] == states[tree.parent[:-1]]
        weight = np.where(same, 1 - 3 * p[:-1, None], p[:-1, None]).prod(0)
        for x in range(n):
            found[x, np.arange(codes.shape[1]), states[x]] += weight
    return found / found.sum(2, keepdims=True)


def clades(tree) -> dict[frozenset[str], int]:
    below = {x: {taxon} for x, taxon in enumerate(tree.taxa)}
    for x in range(tree.n_tips, tree.n_nodes):
        below[x] = set().union(*(below[int(y)] for y in tree.children(x)))
    return {frozenset(taxa): x for x, taxa in below.items() if x >= tree.n_tips}


def test_states_of_ancestors(folder):
    """Means over the draws that have a clade, of the states of all nodes summed by hand; the root's, too."""
    of_one = {"model": "JC", "site_table": False, "ancestral": True, "prior": ("clock_rate=1",)}
    settings = replace(PARTS, partitions=None, linkage=None, tree=TreeModel(), **of_one)
    result = run_time(settings)
    alignment = read_alignment("a.fa", datatype="dna")
    sums: dict[frozenset[str], list[np.ndarray]] = {}
    for tree in (tree for r in (1, 2) for tree in list(read_trees(f"x.run{r}.trees"))[9:]):
        order = [alignment.taxa.index(taxon) for taxon in tree.taxa]
        by_hand = states_by_hand(tree, alignment.codes[order])
        for clade, x in clades(tree).items():
            sums.setdefault(clade, []).append(by_hand[x])
    named = read_tree("x.ancestral.tree")
    lines = [line.split("\t") for line in Path("x.state").read_text().splitlines() if line[0] != "#"]
    assert len(lines) == 1 + 4 * 24 and {"x.state", "x.ancestral.tree"} <= result.files.keys()
    worst, planted = 0.0, 0.0
    for clade, x in clades(named).items():
        own = [row for row in lines if row[0] == named.labels[x]]
        found = np.array([[float(cell) for cell in row[3:]] for row in own])
        worst = max(worst, np.abs(found - np.mean(sums[clade], axis=0)).max())
        planted = max(planted, np.abs(found - np.mean(sums[frozenset(named.taxa)], axis=0)).max())
    assert worst < 1e-4 < planted


def test_codons_under_selection(folder):
    chains, prior = replace(CHAINS, generations=1000), ("clock_rate=1",)
    of_codons = {"model": "M2a+FQ", "datatype": "codon", "prior": prior, "chains": chains}
    settings = replace(PARTS, partitions=None, linkage=None, site_table=False, **of_codons)
    result = run_time(settings)
    rows = [line.split("\t") for line in Path("x.possel").read_text().splitlines()]
    assert [row[:2] for row in rows[1:]] == [
        ["all", str(k)] for k in range(1, 9)
    ] and "x.possel" in result.files
    assert all(0 < float(p) < 1 < 1 + float(omega) for _, _, p, omega in rows[1:])
    assert run_time(settings).was_finished


def test_a_block_with_a_clock_asks_for_them(folder):
    rows = Path("a.fa").read_text().replace(">", "").split()
    matrix = "\n".join(f"{name} {row}" for name, row in zip(rows[::2], rows[1::2]))
    head = "#NEXUS\nbegin data; dimensions ntax=5 nchar=24; format datatype=dna;"
    said = "lset nucmodel=codon nst=2 omegavar=ny98; prset brlenspr=clock:uniform; report siterates=yes;"
    Path("b.nex").write_text(f"{head} matrix\n{matrix}\n; end;\nbegin mrbayes; {said} mcmc; end;\n")
    found = block_analysis("b.nex").options
    assert found["site_table"] is True and found["model"] == "M2a+FO"
    assert found["prior"] == ["kappa=ratios(1)", "omega_3=exponential(1)", "clock_rate=1"]
