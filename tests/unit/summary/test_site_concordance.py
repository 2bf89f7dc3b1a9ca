"""Concordance of sites: quartets one by one, IQ-TREE's numbers, likelihoods against sums over all states."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.concordance import ConcordanceSettings, run_concordance
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.patterns import site_patterns
from phloem.errors import InputError
from phloem.inference.ml.searched import OneAlignment
from phloem.io.trees import parse_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.summary.concordance import around_branches
from phloem.summary.site_concordance import likely_concordance, seen_in_all, site_concordance
from phloem.tree.half_edges import preorder

MODELS = ["GTR{1.2,4,0.7,0.9,5}+F{0.35,0.3,0.1,0.25}+G4{0.5}", "HKY{3}+FQ+I{0.3}+R2{0.3,0.2,0.7,1.4}"]
TREE = "(a:.1,b:.2,((c:.1,d:.3):.15,(e:.2,(f:.1,g:.1):.1):.05):.1);"
RECORDED = json.loads((Path(__file__).parents[2] / "golden" / "iqtree_site_concordance.json").read_text())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    letters = rng.choice(list("ACGT"), (7, 80))
    letters = np.where(rng.random(letters.shape) < 0.5, letters, letters[0])
    letters[rng.random(letters.shape) < 0.05] = "R"
    letters[rng.random(letters.shape) < 0.05] = "-"
    rows = {name: "".join(row) for name, row in zip("abcdefg", letters)}
    return alignment_from_sequences(rows, alphabet("dna"))


def write(alignment, path):
    letters = np.array(list("ACGT-R"))
    rows = zip(alignment.taxa, alignment.codes)
    path.write_text("".join(f">{name}\n{''.join(letters[codes])}\n" for name, codes in rows))


def by_hand(alignment, groups):
    """Of all quartets, from the characters."""
    shares, sites = [], []
    for four in itertools.product(*(np.flatnonzero(own) for own in groups.T)):
        counts = np.zeros(3)
        for column in alignment.codes[list(four)].T:
            if max(column) < 4 and len(set(column)) == 2:
                for kind, (x, y, z, w) in enumerate(((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))):
                    counts[kind] += column[x] == column[y] and column[z] == column[w]
        sites.append(counts)
        if counts.sum():
            shares.append(counts / counts.sum())
    return np.mean(shares, axis=0), np.mean(sites, axis=0), len(sites)


def test_all_quartets_are_counted(data):
    groups = around_branches(parse_trees(TREE)[0])[1]
    found = site_concordance(site_patterns(data), groups, 1000, np.random.default_rng(1))
    for k in range(4):
        shares, sites, n = by_hand(data, groups[:, k])
        np.testing.assert_allclose(found.shares[k], shares, rtol=1e-12)
        np.testing.assert_allclose(found.sites[k], sites, rtol=1e-12)
        assert found.quartets[k] == found.telling[k] == n and found.decisive[k] == pytest.approx(sites.sum())
        wrong = by_hand(data, groups[:, k][:, [0, 2, 1, 3]])[0]  # an alternative's groups
        assert not np.allclose(found.shares[k], wrong)


def test_drawn_quartets_are_near_all_of_them(data):
    groups, patterns = around_branches(parse_trees(TREE)[0])[1], site_patterns(data)
    every = site_concordance(patterns, groups, 1000, np.random.default_rng(1))
    drawn, again = (site_concordance(patterns, groups, 3, np.random.default_rng(2)) for _ in range(2))
    np.testing.assert_array_equal(drawn.shares, again.shares)
    assert (drawn.quartets == 3).all() and not np.allclose(drawn.shares, every.shares)
    np.testing.assert_allclose(drawn.shares, every.shares, atol=0.35)


def test_sites_that_say_nothing():
    rows = dict(zip("abcd", ("AAAN", "AAAC", "AAAG", "AAAT")))
    patterns = site_patterns(alignment_from_sequences(rows, alphabet("dna")))
    groups = around_branches(parse_trees("(a,b,(c,d));")[0])[1]
    found = site_concordance(patterns, groups, 10, np.random.default_rng(1))
    assert np.isnan(found.shares).all() and found.decisive[0] == 0
    assert (found.quartets[0], found.telling[0]) == (1, 0)
    corners = np.broadcast_to(np.eye(4)[0], (1, 4, 3, 4))
    assert np.isnan(likely_concordance(corners, np.ones(3)).shares).all()


def test_shares_are_iqtrees(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.nwk").write_text(RECORDED["tree"])
    Path("d.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in RECORDED["alignment"].items()))
    result = run_concordance(ConcordanceSettings("t.nwk", alignment="d.fasta"))
    for row in result.rows:
        (theirs,) = [r for r in RECORDED["branches"] if abs(r["Length"] - row["length"]) < 1e-6]
        assert row["sCF"] == pytest.approx(theirs["sCF"], abs=0.4)  # of 20,000 quartets drawn
        assert row["sN"] == pytest.approx(theirs["sN"], abs=0.3)
        alternatives = sorted((theirs["sDF1"], theirs["sDF2"]))  # which is first is a name
        assert sorted((row["sDF1"], row["sDF2"])) == pytest.approx(alternatives, abs=0.4)


def brute_force(alignment, model, tree, tips, node_edges):
    """(L, S) of the node where subtrees meet: sums over all states below, category by category."""
    site_model = model.evaluate({})
    states, edges = 4, node_edges

    def up(h, category, column):
        """Likelihood by the state at h's node, of the tips behind it."""
        n = edges.n_tips
        if h < n:
            return alignment.state_sets[alignment.codes[h, column]].astype(float)
        first = n + 3 * ((h - n) // 3)
        likelihood = np.ones(states)
        for x in range(first, first + 3):
            if x != h:
                process = site_model.processes[site_model.process[category]].real_eigen
                rate = site_model.rates[category] * edges.lengths[x]
                matrix = process.right @ np.diag(np.exp(process.values * rate)) @ process.left
                likelihood = likelihood * (matrix @ up(int(edges.back[x]), category, column))
        return likelihood

    found = np.zeros((alignment.n_sites, states))
    for column in range(alignment.n_sites):
        for c, weight in enumerate(site_model.weights):
            frequencies = site_model.processes[site_model.process[c]].root_frequencies
            found[column] += weight * frequencies * up(tips, c, column)
        behind, constant = [tips], np.ones(states)
        for h in behind:
            if h < edges.n_tips:
                constant = constant * alignment.state_sets[alignment.codes[h, column]]
            else:
                first = edges.n_tips + 3 * ((h - edges.n_tips) // 3)
                behind += [int(edges.back[x]) for x in range(first, first + 3) if x != h]
        found[column] += site_model.invariant * site_model.invariant_frequencies * constant
    return found / found.sum(1, keepdims=True)


@pytest.mark.parametrize(
    "text", ["GTR{1.2,4,0.7,0.9,5}+F{0.35,0.3,0.1,0.25}+G4{0.5}", "HKY{3}+FQ+I{0.3}+R2{0.3,0.2,0.7,1.4}"]
)
def test_states_behind_a_node_are_the_sums_over_all_states(data, text):
    model = model_for_alignment(text, data)
    one, tree = OneAlignment(data, model), parse_trees(TREE)[0]
    edges, messages = one.edges(tree), one.messages(1, 1)
    one.put(messages, {})
    messages.fill(*edges, preorder(edges.back))
    ends = list(range(len(edges.back)))
    found = messages.states_behind(ends, edges.back)[:, site_patterns(data).site_pattern]
    for h in ends[::3]:
        np.testing.assert_allclose(found[h], brute_force(data, model, tree, h, edges), rtol=1e-9, atol=1e-12)
    assert not np.allclose(found[8], found[9])


def test_likelihoods_are_expected_numbers_of_sites():
    corners = np.random.default_rng(3).dirichlet(np.ones(4), (2, 4, 5))
    weights = np.array([1.0, 2, 1, 5, 1])
    found = likely_concordance(corners, weights)
    for k in range(2):
        counts = np.zeros(3)
        for p, four in itertools.product(range(5), itertools.product(range(4), repeat=4)):
            chance = weights[p] * np.prod([corners[k, i, p, s] for i, s in enumerate(four)])
            for kind, (x, y, z, w) in enumerate(((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2))):
                alike = four[x] == four[y] and four[z] == four[w] and four[x] != four[z]
                counts[kind] += chance * alike
        np.testing.assert_allclose(found.sites[k], counts, rtol=1e-12)
        np.testing.assert_allclose(found.shares[k], counts / counts.sum(), rtol=1e-12)


def test_quartets_without_a_decisive_site_are_in_no_mean():
    """Of e with d one site tells, for the branch; of c with d none (IQ-TREE counts 0 there: 50 %)."""
    tree = parse_trees("((a,b),d,(c,e));")[0]
    rows = dict(zip(tree.taxa, ("AA", "AA", "CC", "--", "CA")))
    patterns = site_patterns(alignment_from_sequences(rows, alphabet("dna")))
    groups = around_branches(tree)[1]
    k = next(k for k in range(2) if (groups[3, k] & groups[4, k]).any())  # c and e in one group
    found = site_concordance(patterns, groups, 10, np.random.default_rng(1))
    assert found.shares[k].tolist() == [1, 0, 0] and (found.quartets[k], found.telling[k]) == (2, 1)


def test_a_site_at_which_a_group_has_no_data_is_not_decisive(tmp_path, monkeypatch, data):
    """Neither of a state that is guessed from frequencies: a has no data at all, f and g have none in the
    first half. +ASC has patterns beside those of the data."""
    codes = data.codes.copy()
    codes[0], codes[5:, :40] = 4, 4
    lacking = replace(data, codes=codes)
    patterns, groups = site_patterns(lacking), around_branches(parse_trees(TREE)[0])[1]
    seen = seen_in_all(patterns, groups)[:, patterns.site_pattern]
    for k, own in enumerate(groups.transpose(1, 2, 0)):
        expected = [(codes[members] != 4).any(0) for members in own]
        np.testing.assert_array_equal(seen[k], np.all(expected, axis=0))
    assert seen.any(1).sum() == 3 and not seen.all(1).any()
    monkeypatch.chdir(tmp_path)
    Path("t.tree").write_text(TREE)
    varying = [len(set(column[column < 4])) > 1 for column in codes.T]
    write(replace(lacking, codes=codes[:, varying]), Path("d.fasta"))
    for model in ("HKY{2}+F", "HKY{2}+F+ASC"):
        settings = ConcordanceSettings("t.tree", alignment="d.fasta", scfl=True, model=model, redo=True)
        shares = {row["branch"]: row["sCFL"] for row in run_concordance(settings).rows}
        assert [name for name, share in shares.items() if share is None] == ["c,d,e,f,g"], model


def test_names_of_the_alignment_and_of_genes_are_equal_by_the_rule_of_nexus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.tree").write_text("('Homo sapiens',b,(c,d)90/1)100/0.9;")
    Path("d.fasta").write_text(">homo_sapiens\nAC\n>b\nAC\n>c\nAG\n>d\nAG\n")
    Path("g.nwk").write_text("(Homo_sapiens,B,(c,d));(HOMO_SAPIENS,c,d);")
    result = run_concordance(ConcordanceSettings("t.tree", "g.nwk", alignment="d.fasta", scfl=True))
    (row,) = result.rows
    assert (row["gCF"], row["gN"], row["sCF"]) == (100, 1, 100)
    assert result.names == ("label 1", "label 2", "gCF", "local posterior", "sCF", "sCFL")
    Path("g.nwk").write_text("(Homo_sapiens,b,(c,d));(Hommo_sapiens,B,(c,d));")
    with pytest.raises(InputError, match="gene tree 2 has a taxon 'Hommo_sapiens'") as caught:
        run_concordance(ConcordanceSettings("t.tree", "g.nwk", redo=True))
    assert (caught.value.file, caught.value.taxon) == ("g.nwk", "Hommo_sapiens")
    assert "'Homo sapiens'" in caught.value.hint


def test_files_of_genes_and_sites_together(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    Path("t.tree").write_text(TREE)
    Path("g.nwk").write_text(TREE)
    write(data, Path("d.fasta"))
    told = {"alignment": "d.fasta", "scfl": True, "model": "HKY{2}+F"}
    result = run_concordance(ConcordanceSettings("t.tree", "g.nwk", **told))
    assert result.names == ("gCF", "local posterior", "sCF", "sCFL")
    assert result.model.startswith("HKY{2.0}+F{")
    for row in result.rows:
        assert row["sCF"] + row["sDF1"] + row["sDF2"] == pytest.approx(100)
        assert row["sCFL"] + row["sDFL1"] + row["sDFL2"] == pytest.approx(100)
    record = json.loads(Path("t.cf.json").read_text())
    assert len(record["branches"]) == 4 and set(record["branches"][0]) == set(result.columns)
    head = Path("t.cf.tsv").read_text().splitlines()[0].split("\t")
    assert head[-5:] == ["sDFL1", "sDFL1_N", "sDFL2", "sDFL2_N", "sNL"]


@pytest.mark.parametrize(
    "told, words",
    [
        ({}, "nothing is given"),
        ({"genes": "t.tree", "scfl": True}, "--scfl is about sites"),
        ({"genes": "t.tree", "quartets": 5}, "--quartets is about sites"),
        ({"alignment": "d.fasta", "model": "JC"}, "of likelihoods"),
        ({"alignment": "d.fasta", "quartets": 0}, "0 quartets"),
        ({"alignment": "d.fasta"}, "'d' that the alignment has not"),
    ],
)
def test_what_cannot_be_counted_is_refused(tmp_path, monkeypatch, told, words):
    monkeypatch.chdir(tmp_path)
    Path("t.tree").write_text("(a,b,(c,d));")
    Path("d.fasta").write_text(">a\nAC\n>b\nAC\n>c\nAG\n>x\nAG\n")
    with pytest.raises(InputError, match=words):
        run_concordance(ConcordanceSettings("t.tree", **told))
    assert not list(tmp_path.glob("*.cf.*"))
