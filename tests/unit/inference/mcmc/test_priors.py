"""Priors by the text that asks for them: which block they are of, and which entry every number is of."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alphabet import alphabet
from phloem.density.parts import Linkage, PartModel
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.ratios import Ratios
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError
from phloem.inference.mcmc.priors import length_bounds, number_priors, start_values
from phloem.inference.mcmc.settings import (
    ChainSettings,
    Priors,
    length_prior_text,
    parse_length_prior,
)
from phloem.inference.mcmc.structure import structure_of_parts
from phloem.likelihood.model_for_alignment import model_for_alphabet


def structure(*texts: str, linkage=None, kind: str = "dna"):
    models = [model_for_alphabet(text, alphabet(kind)) for text in texts]
    parts = [PartModel(f"p{i}", m, 10 * (i + 1)) for i, m in enumerate(models)]
    return structure_of_parts(parts, linkage)


def found(made, *texts: str):
    return {prior.block: prior.family for prior in number_priors(made, Priors(others=texts))}


def test_a_prior_is_of_every_part_or_of_one():
    made = structure("HKY+FO+G4", "GTR+FO+I+G4", linkage=Linkage("proportional"))
    families = found(made, "alpha=uniform(0.1,50)", "alpha{p1}=exponential(2)", "p_invariable=beta(1,9)")
    assert families["alpha{p0}"] == Uniform(0.1, 50) and families["alpha{p1}"] == Exponential(2)
    assert families["p_invariable"].b == 9 and families["frequencies{p0}"] == Dirichlet(1.0)
    later = found(made, "alpha{p1}=exponential(2)", "alpha=uniform(0.1,50)")
    assert later["alpha{p1}"] == Uniform(0.1, 50)
    linked = structure("HKY+G4", "GTR+G4", linkage=Linkage("linked", {"alpha": (("p0", "p1"),)}))
    assert found(linked, "alpha{p1}=exponential(3)")["alpha"] == Exponential(3)


def test_numbers_of_shares_are_in_the_order_of_a_model_string():
    made = structure("GTR+FO", "HKY+FO")
    families = found(
        made, "rates=dirichlet(1,2,3,4,5,6)", "kappa=beta(7,8)", "frequencies=dirichlet(1,2,3,4)"
    )
    by_entry = dict(
        zip(made.space.block("relative_rates").elements, families["relative_rates"].concentration)
    )
    assert by_entry == {f"rate_{p}": i + 1 for i, p in enumerate(("AC", "AG", "AT", "CG", "CT", "GT"))}
    kappa = dict(zip(made.space.block("kappa").elements, families["kappa"].concentration))
    assert kappa.pop("kappa") == 7 and list(kappa.values()) == [8]
    assert families["frequencies{p0}"].concentration == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("alpha", "is no prior"),
        ("alpha=normal(1,2)", "is no prior"),
        ("alpha=uniform(1)", "is no prior"),
        ("alpha{p0=uniform(0,1)", "is no prior"),
        ("omega=beta(1,1)", "no part has a free parameter"),
        ("alpha{p7}=exponential(1)", "no part has a free parameter"),
        ("alpha=dirichlet(1,1)", "takes another density"),
        ("rates=beta(1,2)", "takes another density"),
        ("rates=dirichlet(1,2)", "2 numbers are given"),
        ("alpha=uniform(3,1)", "the smaller first"),
    ],
)
def test_what_fits_no_block_is_refused(text, message):
    with pytest.raises(InputError, match=message):
        found(structure("GTR+FO+G4"), text)


@pytest.mark.parametrize(
    "text",
    ["gammadir(1,0.1,1,1)", "invgamdir(3,0.2,1,1)", "exponential(10)", "twoexp(100,10)", "uniform(0,0.5)"],
)
def test_priors_on_lengths_are_written_as_they_are_read(text):
    assert length_prior_text(parse_length_prior(text)) == text


def test_chains_start_inside_a_uniform_prior():
    made = structure("JC+I+G4")
    values = dict(zip(("alpha", "p"), start_values(made, Priors(others=("alpha=uniform(20,40)",)))))
    assert values["alpha"] == pytest.approx(20 * 2**0.1) and 0 < values["p"] < 1
    assert np.array_equal(start_values(made, Priors()), made.space.start())  # the control
    chains = ChainSettings(priors=Priors(branch_lengths=Uniform(0.001, 0.01)))
    assert length_bounds(chains) == (0.001, 0.01) and length_bounds(ChainSettings()) == (1e-8, 100.0)


def test_omegas_of_classes_of_sites_are_no_shares():
    """The omega of M2a's first class lies below 1, that of the last one above, each with a density."""
    made = structure("M2a+FQ", kind="codon")
    families = found(made)
    assert families["omega_1"] == Uniform(1e-6, 1 - 1e-6) and families["omega_3"] == Exponential(1.0)
    blocks = {block.name: block for block in made.space.blocks}
    assert blocks["omega_1"].upper < 1.0 == blocks["omega_3"].lower
    assert found(structure("GY94+FQ", kind="codon"))["omega"] == Dirichlet(1.0)  # control
    ratios = found(structure("M3+FQ", kind="codon"), "omegas=ratios(2)")["omegas"]
    assert ratios == Ratios(2.0)
    with pytest.raises(InputError, match="takes another density"):
        found(made, "mixture_weights=ratios(1)")
