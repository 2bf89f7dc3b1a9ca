"""Mixtures of processes: what their numbers are, where the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from phloem.data.genetic_code import genetic_code
from phloem.errors import ModelError
from phloem.model.amino_acid import empirical_matrices, profile_mixtures
from phloem.model.beta_medians import beta_medians, beta_medians_derivatives
from phloem.model.frequencies import CodonTable
from phloem.model.grammar import parse_model
from phloem.model.record import SiteModel

CODE = genetic_code(1)
TABLE = CodonTable(CODE.sense_codons, "".join(CODE.translate(c) for c in CODE.sense_codons))


def numbers(text: str, datatype: str = "dna") -> SiteModel:
    model = parse_model(text, datatype=datatype, codon_table=TABLE if datatype == "codon" else None)
    return model.evaluate(model.start_values())


def mean_rate(m: SiteModel) -> float:
    """Expected substitutions per unit of branch length, over all sites."""
    by_process = [-(p.frequencies @ np.diag(p.rate_matrix)) for p in m.processes]
    return float(m.weights @ (m.rates * np.array(by_process)[m.process]))


@pytest.mark.parametrize(
    ("datatype", "text"),
    [
        ("dna", "MIX{JC:0.5:0.3,K80{3}:2:0.7}+I{0.2}+G4"),
        ("dna", "MIX{HKY+FO,GTR}*R2{0.2,1,0.8,5}+I"),
        ("dna", "HKY+FO+H3+I"),
        ("protein", "LG4X+R4{0.1,0.2,0.2,0.5,0.3,1.0,0.4,2.0}"),
        ("protein", "LG+C20+G4"),
        ("codon", "M3+FQ+I"),
        ("binary", "MK+FB5{0.2}+G2"),
        ("codon", "M8+FQ+G2"),
    ],
)
def test_one_substitution_per_unit_of_branch_length(datatype: str, text: str) -> None:
    m = numbers(text, datatype)
    assert mean_rate(m) == pytest.approx(1.0, rel=1e-12)
    assert m.weights.sum() + m.invariant == pytest.approx(1.0, rel=1e-12)
    slower = SiteModel(m.processes, m.process, 0.99 * m.rates, *vars_after_rates(m))
    assert abs(mean_rate(slower) - 1.0) > 1e-3


def vars_after_rates(m: SiteModel):
    return m.weights, m.length_class, m.invariant, m.invariant_frequencies


def test_every_process_has_every_category_and_star_ties_them() -> None:
    plus, star = numbers("MIX{JC,K80{3}}+G2"), numbers("MIX{JC,K80{3}}*G2")
    assert plus.process.tolist() == [0, 0, 1, 1] and star.process.tolist() == [0, 1]
    np.testing.assert_allclose(plus.rates, np.tile(star.rates, 2))
    np.testing.assert_allclose(plus.weights, 0.25)


def test_lengths_per_class() -> None:
    assert numbers("HKY{3}+H3").length_class.tolist() == [0, 1, 2]
    assert numbers("MIX{JC,K80{3}}+H2").length_class.tolist() == [0, 1, 0, 1]
    m = numbers("K80{3}*H2")
    assert m.length_class.tolist() == m.process.tolist() == [0, 1] and len(m.processes) == 2
    assert numbers("HKY{3}+G4").n_length_classes == 1


def test_invariable_sites_have_the_mean_frequencies() -> None:
    m = numbers("MIX{F81+F{0.4,0.3,0.2,0.1}:1:0.25,F81+F{0.1,0.2,0.3,0.4}:1:0.75}+I{0.1}")
    np.testing.assert_allclose(m.invariant_frequencies, [0.175, 0.225, 0.275, 0.325], rtol=1e-14)


def test_equal_components_are_the_single_model() -> None:
    one, three = numbers("K80{3}"), numbers("MIX{K80{3},K80{3},K80{3}}")
    for p in three.processes:
        assert np.array_equal(p.rate_matrix, one.processes[0].rate_matrix)
    assert three.weights.sum() == pytest.approx(1.0) and len(three.weights) == 3


def test_published_profiles() -> None:
    for name, profiles in profile_mixtures().items():
        n = int(name[1:])
        assert profiles.frequencies.shape == (n, 20) and profiles.weights.shape == (n,)
        np.testing.assert_allclose(profiles.frequencies.sum(1), 1.0, rtol=1e-14)
        assert (profiles.frequencies > 1e-4).all() and profiles.weights.sum() == pytest.approx(1.0, rel=1e-14)
    # Le, Gascuel and Lartillot 2008: the first class of C10 is small residues
    assert profile_mixtures()["C10"].frequencies[0, 0] == pytest.approx(0.4082573125, rel=1e-8)


def test_profiles_replace_the_frequencies_of_any_exchangeabilities() -> None:
    m, c10 = numbers("LG+C10+E", "protein"), profile_mixtures()["C10"]
    exchange = empirical_matrices()["LG"].exchangeability
    for process, profile in zip(m.processes, c10.frequencies, strict=True):
        np.testing.assert_allclose(process.frequencies, profile, rtol=1e-14)
        ratio = process.rate_matrix[0, 1:] / (exchange[0, 1:] * profile[1:])
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
    np.testing.assert_allclose(m.weights, c10.weights)


def test_another_class_frees_the_weights() -> None:
    model = parse_model("LG+C10+FO", datatype="protein")
    assert [p.name for p in model.free] == ["mixture_weights", "frequencies", "alpha"]
    assert model.n_categories == 11 * 4
    assert parse_model("LG+C10", datatype="protein").free[0].name == "alpha"
    start = model.start_values()["mixture_weights"]
    np.testing.assert_allclose(start[:10] / start[:10].sum(), profile_mixtures()["C10"].weights)
    assert start[10] == pytest.approx(1 / 11)


def test_classes_of_larger_omega_evolve_faster() -> None:
    m = numbers("M3{0.05,0.5,3,0.5,0.3,0.2,2}+FQ", "codon")
    rates = [-(p.frequencies @ np.diag(p.rate_matrix)) for p in m.processes]
    assert rates[0] < rates[1] < rates[2]
    one = numbers("GY94{0.5,2}+FQ", "codon").processes[0].rate_matrix
    np.testing.assert_allclose(m.processes[1].rate_matrix / rates[1], one, rtol=1e-12, atol=1e-15)


def test_m1a_with_one_class_is_gy94() -> None:
    m = numbers("M1a{0.3,1,0,2}+FQ", "codon")
    np.testing.assert_allclose(
        m.processes[0].rate_matrix, numbers("GY94{0.3,2}+FQ", "codon").processes[0].rate_matrix, rtol=1e-13
    )


@pytest.mark.parametrize("p", [0.05, 0.5, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("q", [0.05, 0.7, 1.0, 5.0, 90.0])
def test_medians_of_beta_and_their_derivatives(p: float, q: float) -> None:
    n, medians = 5, beta_medians(p, q, 5)
    near = medians < 1 - 1e-6  # beyond, the distribution moves within the last bits of a median
    np.testing.assert_allclose(
        beta.cdf(medians, p, q)[near], ((2 * np.arange(n) + 1) / (2 * n))[near], rtol=1e-8
    )
    for found, step in zip(beta_medians_derivatives(p, q, n), ((1, 0), (0, 1))):
        h = 1e-4 * (p if step[0] else q)
        at = [beta_medians(p + k * h * step[0], q + k * h * step[1], n) for k in (-2, -1, 1, 2)]
        expected = (at[0] - 8 * at[1] + 8 * at[2] - at[3]) / (12 * h)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
        assert p == q or np.abs(found + expected).max() > 1e-6  # a flipped sign is seen


def test_beta_medians_by_integration() -> None:
    for k, x in enumerate(beta_medians(2.0, 3.0, 4)):
        area, _ = quad(lambda t: 12 * t * (1 - t) ** 2, 0, x)
        assert area == pytest.approx((2 * k + 1) / 8, rel=1e-10)


@pytest.mark.parametrize(("a", "n"), [(1e-4, 5), (0.05, 4), (0.7, 5), (150.0, 2)])
def test_frequencies_of_characters_are_medians_and_mirror_each_other(a: float, n: int) -> None:
    m = numbers(f"MK+FB{n}{{{a}}}", "binary")
    found = np.array([p.frequencies for p in m.processes])
    assert (found > 0).all() and np.array_equal(found, found[::-1, ::-1])
    expected = beta(a, a).ppf((2 * np.arange(n) + 1) / (2 * n))
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-8, atol=2e-12)
    np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-15)
    for process in m.processes:  # all at once, as of each alone
        q = process.eigen.right * process.eigen.values @ process.eigen.left
        np.testing.assert_allclose(q, process.rate_matrix, rtol=1e-6, atol=1e-4)


def test_numbers_of_classes_are_bounded() -> None:
    with pytest.raises(ModelError, match="classes"):
        parse_model("M3K300+FQ", datatype="codon", codon_table=TABLE)
    with pytest.raises(ModelError, match="unknown codon model"):
        parse_model("M1aK3+FQ", datatype="codon", codon_table=TABLE)
