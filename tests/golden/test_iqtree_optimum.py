"""The optimum reaches what `iqtree2 -te TREE -m MODEL` (2.0.7) printed, or more (docs/validation.md)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phloem.density.space import Space
from phloem.inference.ml.optimize import optimize
from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree
from phloem.likelihood.tree_likelihood import TreeLikelihood

GOLDEN = Path(__file__).with_name("fixed_trees")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BEST_SCORES = [
    ("primates", "JC", -6424.202),
    ("primates", "HKY+F+G4", -5728.066),
    ("primates", "GTR+F+I", -5758.856),
    ("primates", "GTR+F+I+G4", -5719.455),
    ("primates", "GTR+F+R3", -5719.233),
    ("primates", "GTR+FO+G4", -5708.931),
    ("primates", "SYM+G4", -5821.905),
    ("carnivores_aa", "LG+G4", -5902.707),
    ("carnivores13_codon", "GY94+F3X4", -3999.625),
    ("carnivores_aa", "LG4M", -5896.952),
    ("carnivores13_codon", "M1a+F3X4", -3947.550),  # codeml (PAML 4.9j), kappa and lengths fitted too
]


def build(name: str, model: str) -> TreeLikelihood:
    options = {"datatype": "codon", "genetic_code": 2} if name == "carnivores13_codon" else {}
    alignment = read_alignment(GOLDEN / f"{name}.fasta", **options)
    return TreeLikelihood(alignment, read_tree(GOLDEN / f"{name}.nwk"), model, threads=1)


@pytest.mark.parametrize("name, model, best", BEST_SCORES)
def test_reaches_the_optimum(name, model, best):
    likelihood = build(name, model)
    found = optimize(likelihood)
    assert found.converged
    assert best - 0.01 < found.log_likelihood < best + 0.2
    assert likelihood.log_likelihood() == pytest.approx(found.log_likelihood, rel=1e-12)
    fitted = TreeLikelihood(likelihood.alignment, found.tree, found.model_text, threads=1)
    assert fitted.log_likelihood() == pytest.approx(found.log_likelihood, abs=1e-6)


def test_a_flipped_derivative_does_not_get_there(monkeypatch):
    true = Space.pull_back
    monkeypatch.setattr(Space, "pull_back", lambda self, x, g: -true(self, x, g))
    assert optimize(build("primates", "JC")).log_likelihood < -6424.202 - 1.0


def test_branches_that_start_near_zero_grow():
    likelihood = build("primates", "HKY+F+G4")
    likelihood.set(branch_lengths=np.full(len(likelihood.branch_names), 1e-7))
    assert optimize(likelihood).log_likelihood > -5728.066 - 0.01


def test_many_branches_of_length_zero_do_not_stop_the_climb():
    """104 West Nile genomes: IQ-TREE 2.0.7 stops at -25075.436; at phloem's optimum it prints -25074.012."""
    alignment, tree = read_alignment(EXAMPLES / "west_nile.fasta.gz"), read_tree(EXAMPLES / "west_nile.nwk")
    likelihood = TreeLikelihood(alignment, tree, "HKY+F+G4")
    found = optimize(likelihood)
    assert found.converged and found.evaluations < 300
    assert found.log_likelihood > -25074.012 - 0.01
