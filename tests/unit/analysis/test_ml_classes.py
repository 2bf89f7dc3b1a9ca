"""What `phloem ml` writes under classes of sites with branch lengths of their own (+H)."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from phloem.analysis.likelihood import LikelihoodSettings, run_likelihood
from phloem.analysis.ml import run_ml
from phloem.analysis.ml_classes import has_classes
from phloem.analysis.ml_settings import MlSettings
from phloem.io.trees import read_trees

ROWS = {
    "a": "ACGTACGTACGTACGAACTTAG",
    "b": "ACGTACGTACGTACTAACTTAC",
    "c": "ACGTTCGAACGTACTAGCTAAG",
    "d": "ACGATCGAACGGACTAGCTAAC",
    "e": "ACGATCGTACGGACTTGCTTGG",
}


def test_models_with_classes_are_known_by_their_names():
    for model in ("JC+H2", "GTR+F+H", "HKY+h3", "JC+H{0.3,0.7}", "HKY*H2", "GTR+FO*H"):
        assert has_classes(model), model
    for model in ("HKY+F+G4", "GTR+F+I+R4", "MIX{HKY,HKY}", "HKY85", None):
        assert not has_classes(model), model


@pytest.mark.parametrize("model", ["JC+H2", "JC+H"])
def test_every_file_is_told_and_the_classes_feed_back(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.fasta").write_text("".join(f">{name}\n{row}\n" for name, row in ROWS.items()))
    result = run_ml(MlSettings("x.fasta", model=model, patience=0))
    assert set(result.files) == set(os.listdir()) - {"x.fasta"}
    record = json.loads((tmp_path / "x.json").read_text())
    trees, classes = read_trees("x.classes.nwk"), record["classes"]
    assert len(trees) == len(classes) == (2 if model == "JC+H2" else 4)
    assert sum(one["weight"] for one in classes) == pytest.approx(1.0)
    lengths = [tree.lengths[:-1].sum() for tree in trees]
    np.testing.assert_allclose(lengths, [one["tree_length"] for one in classes])
    assert lengths == sorted(lengths) and "class 2:" in (tmp_path / "x.report").read_text()
    again = run_likelihood(LikelihoodSettings("x.fasta", tree="x.classes.nwk", model="@x.model"))
    assert again.log_likelihood == pytest.approx(record["log_likelihood"], abs=1e-6)
