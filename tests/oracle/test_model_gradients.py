"""backpropagate against central differences of a random linear functional of everything evaluate returns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.data.genetic_code import genetic_code
from phloem.model.frequencies import CodonTable
from phloem.model.grammar import parse_model
from phloem.model.model import Model
from phloem.model.record import ProcessGradient, SiteModel, SiteModelGradient

FREQUENCIES = "{0.35,0.30,0.10,0.25}"
NUCLEOTIDE = [
    *(f"{name}{suffix}" for name in ("JC", "K80", "HKY", "TN93", "GTR") for suffix in ("+FQ", "+FO")),
    *(f"{name}+FO" for name in ("F81", "K3Pu", "TPM2u", "TPM3u", "TIM1", "TIM2", "TIM3", "TVM")),
    *("SYM", "TNe", "K3P", "TPM2", "TPM3", "TIM1e", "TIM2e", "TIM3e", "TVMe", "012345", "UNREST"),
    *("UNREST+FROOT", "HKY+FROOT", "JC+G4", "JC+LN4", "JC+I", "JC+I+G4", "JC+I+R3", "JC+R4", "GTR+I+G5"),
]
AMINO_ACID = ["LG+FO", "JTT+FO+G4", "WAG+FO", "Poisson+FO", "GTR20", "GTR20+FQ", "VT+I+R2"]
CODON = [
    *(f"{name}+{f}" for name in ("GY94", "MG94", "MG94K") for f in ("FQ", "FO1X4", "FO3X4")),
    *("GY94+FO", "GY94+FQ+COV", "MG94K+FO3X4+G3", "GY94GTR+FO", "GY94GTR+FO3X4+G2"),
]
DOUBLET = ["SH94+FO", "SH94K+FQ", "SH94K+FO+G4", "SH94GTR+FO+I", "S16+FO", "MIX{SH94+FO,SH94K+FO}"]
HIDDEN = ["HKY+FO+COV", "GTR+MM2", "JC+MM3+G4", "K80+COV+I", "UNREST+MM2", "UNREST+COV"]
HIDDEN += ["HKY+FO+COV*G3", "JC+MM2*R2", "GTR+COV*LN3"]
MIXTURES = [
    *("MIX{JC,HKY}", "MIX{JC:0.5:0.3,HKY:2:0.7}+G3", "MIX{GTR+FO,TN93+FO}+I+R2", "MIX{K80,GTR}*G2"),
    *("MIX{HKY,UNREST}+FROOT+I", "MIX{HKY+FO,HKY+FO}*R2+I", "MIX{HKY+COV,JC+COV}+G2", "HKY+H3", "HKY*H2"),
    *("GTR+FO+H2+I", "GTR+FO*H2+I", "MIX{JC,K80}+H2+I", "JC+E"),
]
PROTEIN_MIXTURES = [
    *("LG4M", "LG4X", "LG4M+G4+I", "LG4X+I", "LG4M*R4", "C10", "C10+F{PI}", "LG+C10+FO+R2+I", "C20Opt+E"),
    *("WAG+C10Opt+I", "GTR20+C10+G2", "MIX{LG,WAG+FO,LG4X1}+G2", "LG*H2"),
]
CODON_SITES = [
    *("M1a+FQ", "M1a+FO3X4+G2", "M2a+FO1X4+I", "M3+FO3X4", "M3K2+FO", "M7+FO1X4", "M8K4+FO3X4+R2"),
    *("M3K2*G2+FQ", "MIX{GY94+FQ,MG94K+FO1X4}"),
]
STATES = ["MK+FO", "MIX{MK,GTRK+FO}+G2", "MK+FO+H2", "ORDERED+FO", "GTRK", "SYMK", "UNRESTK+G4", "MKV+G4"]


def codon_table(number: int) -> CodonTable:
    code = genetic_code(number)
    return CodonTable(code.sense_codons, "".join(code.translate(c) for c in code.sense_codons))


def functional(site_model: SiteModel, weights: SiteModelGradient) -> float:
    return float(
        sum(
            np.sum(w.rate_matrix * p.rate_matrix) + w.root_frequencies @ p.root_frequencies
            for w, p in zip(weights.processes, site_model.processes, strict=True)
        )
        + weights.rates @ site_model.rates
        + weights.weights @ site_model.weights
        + weights.invariant * site_model.invariant
        + weights.invariant_frequencies @ site_model.invariant_frequencies
    )


def random_functional(model: Model, rng: np.random.Generator) -> SiteModelGradient:
    s, c, n = model.n_states, model.n_categories, len(model.evaluate(model.start_values()).processes)
    processes = tuple(ProcessGradient(rng.normal(size=(s, s)), rng.normal(size=s)) for _ in range(n))
    return SiteModelGradient(
        processes, rng.normal(size=c), rng.normal(size=c), rng.normal(), rng.normal(size=s)
    )


def random_values(model: Model, rng: np.random.Generator) -> dict[str, object]:
    values = model.start_values()
    for p in model.parameters:
        if p.kind == "simplex":
            values[p.name] = rng.dirichlet(np.full(p.size, 5.0))
        elif p.kind == "unit":
            values[p.name] = rng.uniform(0.1, 0.5)
        elif p.is_free:
            draw = rng.uniform(0.3, 3.0, size=p.size) + (1.0 if p.lower == 1.0 else 0.0)
            values[p.name] = draw if p.elements else float(draw[0])
    return values


def finite_difference(model: Model, values, weights, name: str, index: int | None) -> float:
    """Central difference; along softmax coordinates for a simplex."""
    parameter, h = model.parameter(name), 1e-5

    def at(step: float) -> float:
        x = np.array(values[name], np.float64)
        if parameter.kind == "simplex":
            z = np.log(x)
            z[index] += step
            x = np.exp(z) / np.exp(z).sum()
        elif index is None:
            x = x + step
        else:
            x[index] += step
        return functional(model.evaluate({**values, name: x if index is not None else float(x)}), weights)

    return (at(h) - at(-h)) / (2 * h)


def largest_error(model: Model, seed: int = 1, flip: bool = False) -> float:
    """Largest difference, relative to the largest derivative; flip: turn round two inputs' signs."""
    rng = np.random.default_rng(seed)
    values = random_values(model, rng)
    weights = random_functional(model, rng)
    given = weights
    if flip:
        turned = tuple(replace(p, rate_matrix=-p.rate_matrix) for p in weights.processes)
        given = replace(weights, processes=turned, rates=-weights.rates)
    gradient = model.backpropagate(values, given)
    assert set(gradient) == {p.name for p in model.parameters}
    errors, scale = [0.0], 1e-8
    for p in model.parameters:
        for index in range(p.size)[:: max(1, p.size // 12)] if p.elements else [None]:
            expected = finite_difference(model, values, weights, p.name, index)
            got = gradient[p.name] if index is None else gradient[p.name][index]
            errors.append(abs(got - expected))
            scale = max(scale, abs(expected))
    return max(errors) / scale


@pytest.mark.parametrize("text", NUCLEOTIDE)
def test_nucleotide(text: str) -> None:
    assert largest_error(parse_model(text, datatype="dna")) < 1e-7


@pytest.mark.parametrize("n_states", [2, 5, 13])
@pytest.mark.parametrize("text", STATES)
def test_any_number_of_states(text: str, n_states: int) -> None:
    assert largest_error(parse_model(text, datatype="standard", n_states=n_states)) < 1e-7


@pytest.mark.parametrize("text", ["MK+FB5", "MKV+FB4+G3", "MK+FB2*R2"])
def test_frequencies_of_characters(text: str) -> None:
    assert largest_error(parse_model(text, datatype="binary")) < 1e-7
    assert largest_error(parse_model(text, datatype="binary"), flip=True) > 0.1


@pytest.mark.parametrize("text", AMINO_ACID)
def test_amino_acid(text: str) -> None:
    assert largest_error(parse_model(text, datatype="protein")) < 1e-7


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("text", CODON)
def test_codon(text: str, number: int) -> None:
    assert largest_error(parse_model(text, datatype="codon", codon_table=codon_table(number))) < 1e-7


@pytest.mark.parametrize("text", DOUBLET)
def test_doublet(text: str) -> None:
    assert largest_error(parse_model(text, datatype="doublet")) < 1e-7


@pytest.mark.parametrize("text", HIDDEN)
def test_hidden_classes(text: str) -> None:
    assert largest_error(parse_model(text, datatype="dna")) < 1e-7


@pytest.mark.parametrize("text", MIXTURES)
def test_mixtures(text: str) -> None:
    assert largest_error(parse_model(text, datatype="dna")) < 1e-7


@pytest.mark.parametrize("text", PROTEIN_MIXTURES)
def test_protein_mixtures(text: str) -> None:
    given = ",".join(["0.05"] * 20)
    assert largest_error(parse_model(text.replace("PI", given), datatype="protein")) < 1e-7


@pytest.mark.parametrize("text", CODON_SITES)
def test_codon_site_models(text: str) -> None:
    assert largest_error(parse_model(text, datatype="codon", codon_table=codon_table(2))) < 1e-7


@pytest.mark.parametrize(
    "text", ["MIX{JC,HKY}", "HKY*H2", "HKY+FO", "GTR+I+G4", "UNREST", "JC+R3", "HKY+COV", "JC+MM2"]
)
def test_a_flipped_sign_is_noticed(text: str) -> None:
    assert largest_error(parse_model(text, datatype="dna"), flip=True) > 0.1


@pytest.mark.parametrize("kind", ["G4", "G4a", "G16"])
@pytest.mark.parametrize("alpha", [0.02, 0.05, 0.3, 1.0, 2.7, 10.0, 100.0, 1000.0])
def test_gamma_shape(alpha: float, kind: str) -> None:
    model = parse_model(f"JC+{kind}{{{alpha}}}", datatype="dna")
    n = model.n_categories
    rng = np.random.default_rng(0)
    d = rng.normal(size=n)
    nothing = ProcessGradient(np.zeros((4, 4)), np.zeros(4))
    gradient = SiteModelGradient((nothing,), d, np.zeros(n), 0.0, np.zeros(4))
    h = alpha * 1e-4
    at = [d @ model.evaluate({"alpha": alpha + k * h}).rates for k in (-2, -1, 1, 2)]
    expected = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)
    assert model.backpropagate(None, gradient)["alpha"] == pytest.approx(expected, rel=2e-7, abs=1e-8)
