"""The introduction of an analysis names the priors of what is sampled, and no others."""

from __future__ import annotations

import pytest

from phloem.analysis.mcmc_data import prior_text
from phloem.data.alphabet import alphabet
from phloem.inference.mcmc.settings import ExponentialPrior, Priors
from phloem.inference.mcmc.structure import structure_of_model
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.model.grammar import parse_model

ALWAYS = "branch lengths gammadir(1,0.1,1,1), uniform topologies"
RATES, FREQUENCIES = "flat Dirichlet rates", "flat Dirichlet frequencies"
SUMS = "flat Dirichlet sums of equal rates"
ALPHA, INVARIABLE = "exponential(1) alpha", "uniform proportion of invariable sites"


@pytest.mark.parametrize(
    ("model", "named"),
    [
        ("JC", []),
        ("GTR+FO+I+G4", [RATES, FREQUENCIES, ALPHA, INVARIABLE]),
        ("HKY+FQ+G4", [RATES, ALPHA]),
        ("HKY{2}+FO+I", [FREQUENCIES, INVARIABLE]),
        ("MIXED+FQ+G4", ["each of 203 models of the rates as probable", SUMS, ALPHA]),
        ("K80{2}+I{0.1}+G4{0.5}", []),
    ],
)
def test_only_free_parameters_have_a_prior(model, named):
    assert prior_text(structure_of_model(parse_model(model, datatype="dna")), Priors()) == ", ".join(
        [ALWAYS, *named]
    )


def test_other_priors_than_the_usual_ones():
    priors = Priors(ExponentialPrior(20), exchangeability=2, alpha_rate=0.5)
    expected = (
        "branch lengths exponential(20), uniform topologies, Dirichlet(2) rates, exponential(0.5) alpha"
    )
    assert prior_text(structure_of_model(parse_model("HKY+FQ+G4", datatype="dna")), priors) == expected


def test_lengths_of_codons_are_per_nucleotide():
    model = model_for_alphabet("GY94+FQ", alphabet("codon"))
    assert prior_text(structure_of_model(model), Priors()).startswith(
        "branch lengths per nucleotide site gammadir(1,0.1,1,1), uni"
    )
