"""The CPU engine on real alignments against the values that BEAGLE 4 printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from phloem.pruning.cpu.evaluator import CpuEvaluator

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
problems = pytest.importorskip("problems")


@pytest.mark.skipif(
    not (ROOT / ".." / "shared" / "bench" / "problems.py").exists(), reason="../shared is not there"
)
@pytest.mark.parametrize(
    "name, precision, tolerance",
    [
        ("carnivores_nuc", "float64", 1e-11),
        ("carnivores_codon", "float64", 1e-11),
        ("carnivores_codon", "float32", 1e-5),
    ],
)
def test_value_and_gradient_sum(name, precision, tolerance):
    case = problems.named(name, precision)
    got = CpuEvaluator(case.problem, threads=2).gradient(case.lengths, case.model)
    assert got.log_likelihood == pytest.approx(case.value, rel=tolerance)
    assert got.branch_lengths.sum() == pytest.approx(case.gradient_sum, rel=10 * tolerance)
