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


def test_a_prior_of_all_parts_stands_in_the_place_of_the_usual_one():
    model = model_for_alphabet("M3{kappa=1}+FQ", alphabet("codon"))
    told = prior_text(structure_of_model(model), Priors(others=("omegas=ratios(1)",)))
    assert told.endswith("uniform topologies, flat Dirichlet weights of classes, omegas=ratios(1)")
    assert "exponential(1) omegas" in prior_text(structure_of_model(model), Priors())
    told = prior_text(
        structure_of_model(parse_model("GTR+FQ+G4", datatype="dna")),
        Priors(others=("rates=dirichlet(2)", "alpha{a}=uniform(0.1,9)")),
    )
    assert told == f"{ALWAYS}, exponential(1) alpha, rates=dirichlet(2), alpha{{a}}=uniform(0.1,9)"


def test_shares_that_no_frequency_and_no_rate_is():
    told = prior_text(structure_of_model(model_for_alphabet("M2a+FQ", alphabet("codon"))), Priors())
    assert "exponential(1) omega_3, uniform omega_1, flat Dirichlet rates, flat Dirichlet weights" in told


def test_lengths_of_codons_are_per_nucleotide():
    model = model_for_alphabet("GY94+FQ", alphabet("codon"))
    assert prior_text(structure_of_model(model), Priors()).startswith(
        "branch lengths per nucleotide site gammadir(1,0.1,1,1), uni"
    )
