"""Ambiguity codes, gaps, missing data and identical sequences, as IQ-TREE and codeml read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree
from phloem.likelihood.tree_likelihood import TreeLikelihood

FOLDER = Path(__file__).parent / "ambiguous"
RECORD = json.loads((FOLDER / "loglik.json").read_text())
TOLERANCE = {"IQ-TREE": 2e-4, "codeml": 2e-6}


def likelihood(case: dict, ambiguity: str = "partial") -> TreeLikelihood:
    alignment = read_alignment(
        FOLDER / case["alignment"], case["datatype"], case.get("genetic_code", 1), ambiguity=ambiguity
    )
    return TreeLikelihood(
        alignment, read_tree(FOLDER / RECORD["tree"]), case["model"], engine="cpu", threads=1
    )


@pytest.mark.parametrize("case", RECORD["cases"], ids=lambda c: f"{c['alignment']}-{c['model']}")
def test_value(case):
    tolerance = TOLERANCE[case["program"].split()[0]]
    assert abs(likelihood(case).log_likelihood() - case["lnL"]) <= tolerance
    if case["datatype"] in ("dna", "protein", "codon"):  # these have partly ambiguous characters
        assert abs(likelihood(case, "missing").log_likelihood() - case["lnL"]) > 0.1
