"""Free numbers and information criteria as IQ-TREE counts them (information_criteria.json)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.inference.ml.criteria import criteria, free_numbers
from phloem.inference.ml.optimize import fit_parameterisation
from phloem.likelihood.tree_likelihood import TreeLikelihood
from phloem.tree.random import taxon_names, uniform_unrooted

TABLES = json.loads((Path(__file__).parent / "information_criteria.json").read_text())["tables"]


def counted(model: str, datatype: str, n_taxa: int) -> int:
    """Free numbers of a model on a tree of so many taxa."""
    rng = np.random.default_rng(1)
    states, names = alphabet(datatype), taxon_names(n_taxa)
    symbols = list("ACGT") if datatype == "codon" else list(states.states)
    rows = {name: "ATG" + "".join(rng.choice(symbols, 60)) for name in names}
    alignment = alignment_from_sequences(rows, states, stop_codons="mask")
    likelihood = TreeLikelihood(alignment, uniform_unrooted(n_taxa, rng), model, engine="reference")
    likelihood.set(parameters={p.name: p.start for p in likelihood.model.free})
    return free_numbers(likelihood, fit_parameterisation(likelihood))


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t["id"])
def test_every_row_of_the_tables(table):
    for name, value, df, *expected in table["models"]:
        assert counted(name, table["datatype"], table["taxa"]) == df, name
        np.testing.assert_allclose(criteria(value, df, table["sites"]), expected, rtol=0, atol=0.0025)


def test_codon_frequencies_by_position_count_nine():
    assert counted("GY94+F3X4", "codon", 9) == counted("GY94+FQ", "codon", 9) + 9


def test_given_frequencies_are_not_counted():
    assert counted("GTR+F{0.1,0.2,0.3,0.4}", "dna", 5) == counted("GTR+F", "dna", 5) - 3
    assert counted("GTR+FO", "dna", 5) == counted("GTR+F", "dna", 5)


def test_too_few_sites_for_the_small_sample_correction():
    assert criteria(-10.0, 5, 6).aicc == np.inf and criteria(-10.0, 5, 7).aicc == 30 + 60
