"""Codons under positive selection: their probabilities, and the files of `phloem ml` that have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phloem.analysis.ml import run_ml
from phloem.analysis.ml_settings import MlSettings
from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree
from phloem.likelihood.tree_likelihood import TreeLikelihood

GOLDEN = Path(__file__).resolve().parents[2] / "golden/fixed_trees"
DATA, TREE = str(GOLDEN / "carnivores13_codon.fasta"), str(GOLDEN / "carnivores13_codon.nwk")
OMEGAS, SHARES, KAPPA = (0.05, 1.0, 3.0), (0.7, 0.2, 0.1), 3.0
M2A = "M2a{0.05,3.0,0.7,0.2,0.1,3.0}+FQ"


def by_hand(alignment, tree, omegas=OMEGAS) -> np.ndarray:
    """(2, L) from the likelihoods of one class at a time, each a GY94 on lengths times its speed."""
    model = TreeLikelihood(alignment, tree, M2A, engine="reference")
    speeds = [-(p.frequencies @ np.diag(p.rate_matrix)) for p in model.model.evaluate().processes]
    assert np.dot(speeds, SHARES) == pytest.approx(1) and speeds[0] < speeds[1] < speeds[2]
    joint = []
    for omega, share, speed in zip(OMEGAS, SHARES, speeds):
        one = TreeLikelihood(alignment, tree, f"GY94{{{omega},{KAPPA}}}+FQ", engine="reference")
        one.set(branch_lengths=one.branch_lengths * speed)
        joint.append(np.log(share) + one.site_log_likelihoods())
    shares = np.exp(joint - np.logaddexp.reduce(joint, axis=0))
    return np.stack([shares[np.array(omegas) > 1].sum(0), np.array(omegas) @ shares])


@pytest.fixture
def codons():
    return read_alignment(DATA, datatype="codon", genetic_code=2, sites="1-120")


def test_they_are_those_of_the_classes(codons):
    tree = read_tree(TREE)
    found = TreeLikelihood(codons, tree, M2A, engine="reference").site_omegas()
    assert found.shape == (2, 40) and found[0].max() > 0.1
    np.testing.assert_allclose(found, by_hand(codons, tree), rtol=1e-9)
    exchanged = by_hand(codons, tree, (0.05, 3.0, 1.0))  # control: of classes in another order
    assert not np.allclose(found, exchanged, atol=0.01)
    assert TreeLikelihood(codons, tree, "GY94{0.1,3}+FQ+G4{1}", engine="reference").site_omegas() is None


def test_files_have_them(tmp_path, monkeypatch, codons):
    monkeypatch.chdir(tmp_path)
    given = {"datatype": "codon", "genetic_code": 2, "sites": "1-120", "tree": TREE, "patience": 0}
    result = run_ml(MlSettings(DATA, model=M2A.replace("0.05,3.0", "0.05,60.0"), prefix="o", **given))
    head, *rows = [line.split("\t") for line in Path("o.sites").read_text().splitlines()]
    assert head == ["site", "log_likelihood", "rate", "omega", "positive_selection"] and len(rows) == 40
    positive, omega = result.found.likelihood.site_omegas()
    np.testing.assert_allclose([float(row[4]) for row in rows], positive, rtol=1e-5)
    np.testing.assert_allclose([float(row[3]) for row in rows], omega, rtol=1e-5)
    sure = int((positive > 0.95).sum())
    said = f"codons with omega > 1, probability above 0.95: {sure or 'none'}"
    assert said in Path("o.report").read_text()
    run_ml(MlSettings(DATA, model="GY94{0.1,3}+FQ", prefix="plain", **given))
    assert "omega" not in Path("plain.sites").read_text() + Path("plain.report").read_text()


def test_of_parts_others_have_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("parts.nex").write_text(
        "#nexus\nbegin sets;\ncharset coding = CODON2, 1-90;\ncharset other = DNA, 91-150;\n"
        f"charpartition p = {M2A}:coding, HKY{{3}}+FQ:other;\nend;\n"
    )
    some = {"partitions": "parts.nex", "unassigned_sites": "drop"}
    run_ml(MlSettings(DATA, tree=TREE, patience=0, prefix="o", **some))
    head, *rows = [line.split("\t") for line in Path("o.sites").read_text().splitlines()]
    assert head[4:] == ["omega", "positive_selection"]
    assert {tuple(row[4:]) for row in rows if row[0] == "other"} == {("-", "-")}
    assert all(0 < float(row[4]) < 3 for row in rows if row[0] == "coding")
    assert "codons of part 'coding' with omega > 1" in Path("o.report").read_text()
