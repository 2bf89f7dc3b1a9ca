"""What every substitution model must satisfy, whatever its parameters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from phloem.data.genetic_code import genetic_code, genetic_code_numbers
from phloem.errors import ModelError
from phloem.model.amino_acid import empirical_matrices
from phloem.model.frequencies import CodonTable
from phloem.model.grammar import parse_model
from phloem.model.model import Model
from phloem.model.record import ProcessNumbers
from phloem.model.substitution import Process, eigensystem, without_unreachable_states


def table(number: int) -> CodonTable:
    code = genetic_code(number)
    return CodonTable(code.sense_codons, "".join(code.translate(c) for c in code.sense_codons))


def random_values(model: Model, seed: int = 3) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    return {
        p.name: rng.dirichlet(np.full(p.size, 3.0))
        if p.kind == "simplex"
        else rng.uniform(0.2, 0.6, p.size if p.elements else None)
        for p in model.parameters
        if p.is_free
    }


def models() -> list[Model]:
    dna = ["JC", "F81", "HKY", "TN93", "TIM2", "GTR", "SYM", "UNREST", "GTR+COV", "HKY+MM3", "UNREST+COV"]
    result = [parse_model(text, datatype="dna") for text in dna]
    result += [parse_model(name, datatype="protein") for name in (*empirical_matrices(), "LG+FO", "GTR20")]
    codon = ["GY94+FQ", "GY94+FO", "GY94GTR+FO", "MG94+FO1X4", "MG94K+FO3X4"]
    result += [parse_model(text, datatype="codon", codon_table=table(1)) for text in codon]
    doublet = ["SH94", "SH94K", "SH94GTR", "S16"]
    result += [parse_model(text, datatype="doublet") for text in doublet]
    standard = ["MK", "MK+FO", "ORDERED", "GTRK", "SYMK", "UNRESTK"]
    return result + [parse_model(text, datatype="standard", n_states=7) for text in standard]


ALL = models()


@pytest.mark.parametrize("model", ALL, ids=[m.name + str(m.n_states) for m in ALL])
def test_rate_matrix(model: Model) -> None:
    m = model.evaluate(random_values(model)).single
    q, pi = m.rate_matrix, m.frequencies
    assert np.abs(q.sum(1)).max() < 1e-12
    assert (q - np.diag(np.diag(q)) >= 0).all()
    assert np.abs(pi @ q).max() < 1e-12 and pi.sum() == pytest.approx(1, abs=1e-12)
    observed = model.observed_state
    substitutions = q * (observed[:, None] != observed)
    assert pi @ substitutions.sum(1) == pytest.approx(1, abs=1e-12)
    flow = pi[:, None] * q
    if "UNREST" not in model.name:
        assert np.abs(flow - flow.T).max() < 1e-14
    else:
        assert np.abs(flow - flow.T).max() > 1e-3


@pytest.mark.parametrize("model", ALL, ids=[m.name + str(m.n_states) for m in ALL])
def test_eigensystem_gives_the_matrix_exponential(model: Model) -> None:
    m = model.evaluate(random_values(model)).single
    e = m.eigen
    assert e is not None
    for t in (0.0, 0.01, 1.3, 40.0):
        p = (e.right * np.exp(e.values * t)) @ e.left
        assert np.abs(p - expm(m.rate_matrix * t)).max() < 1e-11
    assert np.isrealobj(e.values) or "UNREST" in model.name


@pytest.mark.parametrize("name", ["SH94", "SH94K", "SH94GTR"])
def test_doublets_by_their_definition(name: str) -> None:
    model = parse_model(name + "+FO", datatype="doublet")
    values, pairs = random_values(model), [a + b for a in "ACGT" for b in "ACGT"]
    pi, kappa = np.asarray(values["frequencies"]), values.get("kappa", 1.0)
    rate = {a + b: values.get(f"rate_{a + b}", kappa if a + b in ("AG", "CT") else 1.0)
            for a, b in ("AC", "AG", "AT", "CG", "CT", "GT")}  # fmt: skip
    q = np.zeros((16, 16))
    for i, x in enumerate(pairs):
        for j, y in enumerate(pairs):
            changes = [a + b for a, b in zip(x, y) if a != b]
            if len(changes) == 1:
                q[i, j] = rate["".join(sorted(changes[0]))] * pi[j]
    found = model.evaluate({**model.start_values(), **values}).single.rate_matrix
    off = found - np.diag(np.diag(found))
    assert np.allclose(off, q / (pi @ q.sum(1)), atol=1e-14)
    assert not np.allclose(off, q.T / (pi @ q.sum(1)), atol=1e-3)  # the control: frequencies of what is left


def test_unrest_can_have_complex_eigenvalues() -> None:
    cycle = "UNREST{" + ",".join(str(x) for x in (5, 0.1, 0.1, 0.1, 5, 0.1, 0.1, 0.1, 5, 5, 0.1)) + "}"
    e = parse_model(cycle, datatype="dna").evaluate().single.eigen
    assert e is not None and np.iscomplexobj(e.values) and np.abs(e.values.imag).max() > 0.1


@pytest.mark.parametrize("frequencies", ["0.5,0.5,0,0", "0.2,0.3,0.5,0", "0,0.1,0.3,0.6"])
@pytest.mark.parametrize("name", ["F81", "HKY{3}", "GTR{1.2,4.0,0.7,0.9,5.0}", "GTR{1,1,1,1,0}"])
def test_zero_frequencies(name: str, frequencies: str) -> None:
    m = parse_model(f"{name}+F{{{frequencies}}}", datatype="dna").evaluate().single
    assert m.eigen is not None
    p = (m.eigen.right * np.exp(m.eigen.values * 0.7)) @ m.eigen.left
    assert np.abs(p - expm(m.rate_matrix * 0.7)).max() < 1e-10


@pytest.mark.parametrize(
    "text", ["MG94K{0.3,2}+F1X4{0.3,0.3,0.4,0}", "GY94{0.3,2}+F1X4{0.3,0.3,0.4,0}+COV{1,2}"]
)
def test_zero_nucleotide_frequencies_in_codons(text: str) -> None:
    m = parse_model(text, datatype="codon", codon_table=table(1)).evaluate().single
    if m.eigen is not None:
        p = (m.eigen.right * np.exp(m.eigen.values * 0.7)) @ m.eigen.left
        assert np.abs(p - expm(m.rate_matrix * 0.7)).max() < 1e-7


def test_a_defective_matrix_has_no_eigensystem() -> None:
    q = np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, 0.0]])
    assert eigensystem(Process(q, np.array([0.0, 0.0, 1.0]), False)) is None


@pytest.mark.parametrize("number", genetic_code_numbers())
def test_every_genetic_code(number: int) -> None:
    codons = table(number)
    model = parse_model("GY94{0.2,3}+FQ", datatype="codon", codon_table=codons)
    assert model.n_states == len(codons.codons) >= 60
    assert model.evaluate().single.rate_matrix.shape == (model.n_states,) * 2


def test_codon_rates_by_hand() -> None:
    """TTA → TTG is a synonymous transition, TTA → ATA a nonsynonymous transversion, TTA → CTG two changes."""
    codons = table(1)
    q = parse_model("GY94{0.2,3}+FQ", datatype="codon", codon_table=codons).evaluate().single.rate_matrix
    at = {c: i for i, c in enumerate(codons.codons)}
    assert q[at["TTA"], at["TTG"]] / q[at["TTA"], at["ATA"]] == pytest.approx(3 / 0.2)
    assert q[at["TTA"], at["CTG"]] == 0
    assert q[at["TTA"], at["TCA"]] / q[at["TTA"], at["ATA"]] == pytest.approx(3)


def test_k80_transition_probabilities() -> None:
    """Kimura 1980: transitions and transversions at distance d in closed form."""
    kappa, d = 3.0, 0.4
    e = parse_model(f"K80{{{kappa}}}", datatype="dna").evaluate().single.eigen
    assert e is not None
    p = (e.right * np.exp(e.values * d)) @ e.left
    slow, fast = np.exp(-4 * d / (kappa + 2)), np.exp(-2 * d * (kappa + 1) / (kappa + 2))
    assert p[0, 2] == pytest.approx(0.25 + 0.25 * slow - 0.5 * fast, rel=1e-12)
    assert p[0, 1] == pytest.approx(0.25 - 0.25 * slow, rel=1e-12)


def test_no_change_at_all_is_an_error() -> None:
    with pytest.raises(ModelError, match="never changes"):
        parse_model("HKY{3}+F{1,0,0,0}", datatype="dna").evaluate()
    with pytest.raises(ModelError, match="stationary"):
        parse_model("UNRESTK{1,0,0,0,0,0,0,0,0,0,0}", datatype="standard", n_states=4).evaluate()


def test_256_states() -> None:
    model = parse_model("GTRK", datatype="custom", n_states=256)
    m = model.evaluate(model.start_values()).single
    assert m.eigen is not None and m.rate_matrix.shape == (256, 256)


def test_states_that_are_nowhere_need_no_eigenvalues():
    """A state of frequency 0 that is left as fast as another decays: defective, and of no matter where the
    root is stationary. Where it is not, the process stays as it is."""
    q = np.array([[-1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.5, 1.5, -2.0]])
    pi = np.array([0.5, 0.5, 0.0])
    process = ProcessNumbers(q, pi, pi, None)
    eigen = without_unreachable_states(process).eigen
    for t in (0.1, 2.0):
        p = eigen.right @ np.diag(np.exp(eigen.values * t)) @ eigen.left
        assert np.allclose(p[:2], expm(q * t)[:2], rtol=1e-13, atol=1e-13)
        assert abs(p[2] - expm(q * t)[2]).max() > 0.1  # control: that row is another
    elsewhere = ProcessNumbers(q, pi, np.array([0.4, 0.4, 0.2]), None)
    assert without_unreachable_states(elsewhere) is elsewhere
