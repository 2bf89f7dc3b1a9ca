"""Rare changes on very short branches, and none at all on branches of length zero."""

from __future__ import annotations

import math

import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.errors import NumericalError
from phloem.io.trees import parse_trees
from phloem.likelihood.tree_likelihood import TreeLikelihood

# Two taxa that differ at their one site, under equal rates: model, states, the two characters.
CASES = [("dna", "JC", 4, "AC"), ("protein", "Poisson", 20, "AR")]
ENGINES = ("reference", "cpu")


def likelihood(kind: str, model: str, states: str, length: float, engine: str) -> TreeLikelihood:
    alignment = alignment_from_sequences({"a": states[0], "b": states[1], "c": states[1]}, alphabet(kind))
    tree = parse_trees(f"(a:{length!r},b:0,c:0);")[0]
    return TreeLikelihood(alignment, tree, model, engine=engine, threads=1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind, model, n, states", CASES)
@pytest.mark.parametrize("length", [1e-3, 1e-9, 1e-14, 1e-30])
def test_closed_form(kind, model, n, states, length, engine):
    rate = n / (n - 1)
    exact = math.log(-math.expm1(-rate * length) / n**2)
    found = likelihood(kind, model, states, length, engine).log_likelihood()
    assert found == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind, model, n, states", CASES)
def test_no_change_without_time(kind, model, n, states, engine):
    with pytest.raises(NumericalError, match="likelihood 0"):
        likelihood(kind, model, states, 0.0, engine).log_likelihood()
