"""TreeLikelihood on the CPU engine gives the log-likelihoods that IQ-TREE and codeml printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree
from phloem.likelihood.tree_likelihood import TreeLikelihood

GOLDEN = Path(__file__).with_name("fixed_trees")
CASES = json.loads((GOLDEN / "loglik.json").read_text())["cases"]
TOLERANCE = {"IQ-TREE": 2e-4, "codeml": 2e-6}
FREQUENCIES = {"uniform": "FQ", "F1X4": "F1X4", "F3X4": "F3X4", "Fcodon": "F"}


def build(case: dict) -> TreeLikelihood:
    model, options = case["model"], {"datatype": case["datatype"].lower()}
    if case["id"].startswith("codon"):
        kappa, omega, frequencies = re.search(r"kappa=(\S+) omega=(\S+) freqs=(\w+)", model).groups()
        model = f"GY94{{omega={omega},kappa={kappa}}}+{FREQUENCIES[frequencies]}"
        options = {"datatype": "codon", "genetic_code": 2}
    alignment = read_alignment(GOLDEN / case["alignment"], **options)
    return TreeLikelihood(alignment, read_tree(GOLDEN / case["tree"]), model, engine="cpu", threads=1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_value(case):
    tolerance = TOLERANCE[case["program"].split()[0]]
    likelihood = build(case)
    assert abs(likelihood.log_likelihood() - case["lnL"]) <= tolerance
    likelihood.set(branch_lengths=likelihood.branch_lengths * 1.001)
    assert abs(likelihood.log_likelihood() - case["lnL"]) > tolerance  # a slightly wrong tree is seen
