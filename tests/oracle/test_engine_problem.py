"""From an alignment and a model string to the engine's problem, against the sum over all internal states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from oracle.small_problems import brute_force_log_likelihood
from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.data.patterns import site_patterns
from phloem.io.trees import parse_trees
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.likelihood.problem import engine_problem
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.layout import tree_layout

DNA = {"a": "ACGTACRTAAG-TT", "b": "ACGTACGAAAGGTY", "c": "ACTTACGNAAGCTA"}
BINARY = {"a": "01101", "b": "10?11", "c": "00110"}
TREE = parse_trees("(a:0.1,b:0.25,c:0.4);")[0]


@pytest.mark.parametrize(
    "kind, sequences, model",
    [
        ("dna", DNA, "GTR{1.2,4.0,0.7,0.9,5.0}+F+I{0.15}+G4{0.8}"),
        ("dna", DNA, "JC+COV{switch_on=0.5,switch_off=0.8}"),
        ("dna", DNA, "HKY{3}+F+COV{switch_on=0.5,switch_off=0.8}*G3{0.4}"),
        ("dna", DNA, "HKY{3}+F+R2{0.3,0.2,0.7,1.5}"),
        ("binary", BINARY, "MK+F+G2{0.5}"),
        ("binary", {t: s.replace("?", "0") for t, s in BINARY.items()}, "MKV"),
        ("binary", {t: s.replace("?", "0") for t, s in BINARY.items()}, "MKV+FB4{0.3}+G2{0.5}"),
        ("binary", {t: s.replace("?", "0") for t, s in BINARY.items()}, "MK+FB5{0.1}+ASC{0}"),
    ],
)
@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_value(kind, sequences, model, engine):
    alignment = alignment_from_sequences(sequences, alphabet(kind))
    parsed = model_for_alignment(model, alignment)
    layout = tree_layout(TREE, alignment.taxa)
    problem = engine_problem(site_patterns(alignment), parsed, layout.children)
    lengths = layout.to_nodes(TREE.lengths[:-1])
    expected = brute_force_log_likelihood(problem, lengths, parsed.evaluate())
    found = TreeLikelihood(alignment, TREE, model, engine=engine, threads=1)
    assert found.log_likelihood() == pytest.approx(expected, rel=1e-10)
    shown = np.roll(problem.state_sets, 1, axis=1)  # characters shown by the wrong states
    wrong = brute_force_log_likelihood(replace(problem, state_sets=shown), lengths, parsed.evaluate())
    assert "F" not in model or "FB" in model or abs(wrong - expected) > 1e-3
