"""Log-likelihoods that IQ-TREE and codeml print, reproduced by the models and the reference kernels."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from phloem.data.alignment import Alignment
from phloem.data.genetic_code import genetic_code
from phloem.data.patterns import site_patterns
from phloem.io.alignment import read_alignment
from phloem.io.trees import read_tree
from phloem.model.frequencies import CodonTable, codon_position_counts, empirical_frequencies
from phloem.model.grammar import parse_model
from phloem.model.model import Model
from phloem.pruning.interface import Problem
from phloem.pruning.reference.evaluator import ReferenceEvaluator
from phloem.tree.layout import binary_children, resolve
from phloem.tree.match import match_taxa

GOLDEN = Path(__file__).with_name("fixed_trees")
MORE = Path(__file__).with_name("more_loglik.json")
CASES = [
    {"id": f"more{i:02d}", **case} if path is MORE else case
    for path in (GOLDEN / "loglik.json", MORE)
    for i, case in enumerate(json.loads(path.read_text())["cases"])
]


def model_string(case: dict[str, str]) -> str:
    """The JSON writes codon models in prose."""
    if "freqs=" not in case["model"]:
        return case["model"]
    kappa, omega, frequencies = re.match(
        r"GY94/M0 kappa=(\S+) omega=(\S+) freqs=(\w+)", case["model"]
    ).groups()
    suffix = {"uniform": "FQ", "F1X4": "F1X4", "F3X4": "F3X4", "Fcodon": "F"}[frequencies]
    return f"GY94{{omega={omega},kappa={kappa}}}+{suffix}"


def load(case: dict[str, str]) -> tuple[Alignment, CodonTable | None]:
    codon = case["datatype"].startswith("codon")
    datatype = "codon" if codon else case["datatype"].lower()
    alignment = read_alignment(GOLDEN / case["alignment"], datatype=datatype, genetic_code=2 if codon else 1)
    if not codon:
        return alignment, None
    code, codons = genetic_code(2), alignment.alphabet.states
    return alignment, CodonTable(codons, "".join(code.translate(c) for c in codons))


def model_of(text: str, alignment: Alignment, table: CodonTable | None) -> Model:
    patterns = site_patterns(alignment)
    counted = patterns.codes, patterns.state_sets, patterns.weights
    return parse_model(
        text,
        datatype=alignment.alphabet.kind,
        codon_table=table,
        empirical_frequencies=empirical_frequencies(*counted),
        codon_position_counts=codon_position_counts(*counted, table) if table else None,
    )


def log_likelihood(alignment: Alignment, tree_file: str, model: Model) -> float:
    patterns = site_patterns(alignment)
    binary, _ = resolve(match_taxa(read_tree(GOLDEN / tree_file), alignment.taxa))
    left, right = binary_children(binary)
    problem = Problem(
        tip_codes=patterns.codes,
        state_sets=patterns.state_sets,
        pattern_weights=patterns.weights,
        ascertained=np.zeros(len(patterns.weights), bool),
        left=left,
        right=right,
        n_categories=model.n_categories,
    )
    return ReferenceEvaluator(problem).log_likelihood(np.nan_to_num(binary.lengths), model.evaluate())


@pytest.mark.parametrize("case", CASES, ids=[c["id"] for c in CASES])
def test_value(case: dict) -> None:
    alignment, table = load(case)
    model = model_of(model_string(case), alignment, table)
    tolerance = 2e-6 if "codeml" in case["program"] else 2e-4
    assert log_likelihood(alignment, case["tree"], model) == pytest.approx(case["lnL"], abs=tolerance)


@pytest.mark.parametrize("text", ["GTR{1.2,4.0,0.7,0.9,5.0}+F{0.35,0.30,0.10,0.25}+G4a{0.5}", "K80{3.6}"])
def test_other_settings_give_other_values(text: str) -> None:
    """Medians instead of means, or a slightly different kappa: the tolerance must tell."""
    case = next(c for c in CASES if c["id"] == ("nuc12" if "G4" in text else "nuc02"))
    alignment, table = load(case)
    value = log_likelihood(alignment, case["tree"], model_of(text, alignment, table))
    assert abs(value - case["lnL"]) > 1e-2
