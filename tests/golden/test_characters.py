"""Mk, Mkv and ordered characters: values that IQ-TREE 2.0.7 prints (-st MORPH -te TREE -blfix)."""

from __future__ import annotations

from pathlib import Path

import pytest

import phloem

HERE = Path(__file__).resolve().parent
TREE = HERE / "fixed_trees" / "primates.nwk"


def log_likelihood(model: str) -> float:
    alignment = phloem.read_alignment(HERE / "characters.phy", datatype="standard")
    likelihood = phloem.TreeLikelihood(alignment, phloem.read_tree(TREE), model, engine="reference")
    return likelihood.log_likelihood()


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("MK", -617.8592),
        ("MK+ASC", -614.9333),
        ("MKV", -614.9333),
        ("MK+G4{0.5}", -617.3819),
        ("MK+G4{0.5}+ASC", -598.2248),
        ("MK+R2{0.5,0.5,0.5,1.5}", -614.5756),
        ("ORDERED", -825.0007),
    ],
)
def test_value(model: str, expected: float) -> None:
    assert log_likelihood(model) == pytest.approx(expected, abs=2e-4)


def test_a_missed_correction_is_noticed() -> None:
    assert abs(log_likelihood("MK") - log_likelihood("MKV")) > 1
