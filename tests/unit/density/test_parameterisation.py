"""Which block is read by which part: names, values there and back, derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.data.alphabet import alphabet
from phloem.density.parameterisation import PARTITION_RATES, PartGradient, parameterise
from phloem.density.parts import Linkage, PartModel
from phloem.density.space import Block
from phloem.errors import InputError
from phloem.likelihood.model_for_alignment import model_for_alphabet
from phloem.model.record import softmax_gradient

LENGTHS = Block("lengths", "positive", np.array([0.1, 0.2, 0.3]), 1e-8, 100.0)
TEXTS = {
    "gene1": ("dna", "GTR+FO+I+G4"),
    "gene2": ("dna", "TN93+FO+R3+FROOT"),
    "codons": ("codon", "GY94+FO3X4"),
    "shape": ("standard", "MK+G4"),
    "tide": ("dna", "HKY{2.0}+FO+COV+G4"),
    "wave": ("dna", "UNREST+MM2"),
    "mix": ("dna", "MIX{TN93+FO,HKY+FO}"),
}


def part(name: str, text: str | None = None, site_length: float = 1.0) -> PartModel:
    kind, default = TEXTS[name]
    model = model_for_alphabet(
        text or default, alphabet(kind, **({"symbols": "012"} if kind == "standard" else {}))
    )
    return PartModel(name, model, 10 * len(name), site_length)


def everything(relative_rates="ratios", lengths="proportional", **how):
    parts = [part(name, site_length=3.0 if name == "codons" else 1.0) for name in TEXTS]
    shared = {"alpha": (("gene1", "shape"),), "frequencies": (("gene1", "gene2", "tide"),)}
    link = Linkage(lengths, shared, **how)
    return parameterise(parts, LENGTHS, link, relative_rates)


def random_values(p, seed: int = 1) -> dict[str, np.ndarray]:
    rng, values = np.random.default_rng(seed), {}
    for b in p.space.blocks:
        x = b.start * np.exp(0.3 * rng.normal(size=b.size))
        values[b.name] = x / x.sum() if b.support == "simplex" else x
    return values


def test_blocks_are_called_by_parameter_and_part():
    p = everything()
    names = [b.name for b in p.space.blocks]
    assert names[:2] == ["lengths", "partition_rates"]
    assert {"alpha{gene1,shape}", "alpha{tide}", "frequencies", "omega"} <= set(names)
    assert {"rate_AC", "kappa_R", "p_invariable", "kappa{codons}", "kappa{tide}"} <= set(names)
    assert "kappa{tide}" not in p.free and "kappa{codons}" in p.free
    assert {name: x.tolist() for name, x in p.fixed_values().items()} == {"kappa{tide}": [2.0]}
    assert p.space.block("rates").support == "simplex"
    assert p.space.block("alpha{tide}").elements == ("alpha{tide}",)
    assert p.space.block("frequencies").elements[0] == "frequency_A"  # every part that has such shares them
    alone = parameterise([part("gene1")], LENGTHS, Linkage("unlinked"))
    assert [b.name for b in alone.space.blocks][:2] == ["lengths", "rate_AC"]


def test_rates_as_shares_have_the_reference_first():
    p = everything("shares")
    rates = p.space.block("relative_rates{gene1}")  # of gene2 there are two
    assert rates.elements == tuple(f"rate_{x}{{gene1}}" for x in ("GT", "AC", "AG", "AT", "CG", "CT"))
    assert p.space.block("omega").elements == ("synonymous", "omega")
    assert p.space.block("relative_rates.1").elements[0].startswith("rate_GT")  # HKY's κ is another's
    assert p.space.block("relative_rates.1").size == 3
    values = random_values(p)
    read = p.model_values(values, 0)
    assert read["rate_CT"] == pytest.approx(
        values["relative_rates{gene1}"][5] / values["relative_rates{gene1}"][0]
    )
    free = {b.name: b.n_coordinates for b in p.free_space.blocks}
    assert free["omega"] == 1 and free["relative_rates{gene1}"] == 5 and free["rates"] == 2


@pytest.mark.parametrize("relative_rates", ["ratios", "shares"])
def test_every_part_starts_where_its_model_does(relative_rates):
    """Free rates but for their factor."""
    p = everything(relative_rates)
    values = p.space.unpack(p.space.start())
    for i, one in enumerate(p.parts):
        expected, found = one.model.start_values(), p.model_values(values, i)
        assert set(found) == set(expected)
        for name, value in expected.items():
            factor = np.sum(found[name]) / np.sum(value) if one.model.parameter(name).relative else 1.0
            np.testing.assert_allclose(found[name], value * factor, rtol=1e-12)
        np.testing.assert_allclose(p.effective_lengths(values, i), LENGTHS.start * one.site_length)


def objective(p, values, weights):
    """A function of what every part reads, with derivatives that are known."""
    total, gradients = 0.0, []
    for i, (part_, (by_length, by_name)) in enumerate(zip(p.parts, weights)):
        lengths = p.effective_lengths(values, i)
        total += by_length @ lengths**2
        slopes = {}
        for name, x in p.model_values(values, i).items():
            total += np.sum(by_name[name] * np.asarray(x) ** 2)
            slope = 2 * by_name[name] * x
            slopes[name] = (
                softmax_gradient(x, slope) if part_.model.parameter(name).kind == "simplex" else slope
            )
        gradients.append(PartGradient(2 * by_length * lengths, slopes))
    return total, gradients


@pytest.mark.parametrize("relative_rates", ["ratios", "shares"])
@pytest.mark.parametrize(
    ("lengths", "how"),
    [
        ("linked", {}),
        ("proportional", {}),
        ("proportional", {"together": (("gene1", "shape"),), "unit_rates": ("tide", "wave")}),
        ("unlinked", {}),
        ("unlinked", {"together": (("codons", "mix"), ("gene1", "shape"))}),
    ],
)
def test_derivatives_through_links_rates_and_shares(relative_rates, lengths, how):
    p = everything(relative_rates, lengths, **how)
    rng = np.random.default_rng(3)
    weights = [
        (rng.normal(size=3), {q.name: rng.normal(size=q.size) for q in m.model.parameters}) for m in p.parts
    ]
    x = p.space.pack(random_values(p))
    y = p.space.to_coordinates(x)

    def value(y):
        return float(objective(p, p.space.unpack(p.space.from_coordinates(y)), weights)[0])

    values = p.space.unpack(x)
    gradient = p.space.pack(p.pull_back(values, objective(p, values, weights)[1]))
    found = p.space.pull_back(x, gradient)
    numeric = [(value(y + h) - value(y - h)) / 2e-6 for h in 1e-6 * np.eye(len(y))]
    np.testing.assert_allclose(found, numeric, rtol=1e-5, atol=1e-6 * np.abs(found).max())
    assert np.abs(found).min() > 0


def test_rates_of_parts_have_mean_one_over_sites():
    p = everything()
    values = random_values(p)
    rates = [p.rate(values, i) for i in range(len(p.parts))]
    sites = np.array([q.n_sites * q.site_length for q in p.parts])
    assert sites @ rates / sites.sum() == pytest.approx(1.0, rel=1e-12)
    assert PARTITION_RATES in p.free and "lengths" in p.free


def test_a_part_may_count_as_other_columns_than_its_lengths_are_long():
    """Amino acids that were translated: their lengths are per amino acid, the file has their nucleotides."""
    one, other = PartModel("a", part("gene1").model, 30), PartModel("b", part("gene2").model, 10, 1.0, 3.0)
    p = parameterise([one, other], LENGTHS, Linkage("proportional"))
    np.testing.assert_allclose(p.rate_shares, [0.5, 0.5])
    np.testing.assert_allclose(p.site_shares, [0.5, 0.5])
    values = p.space.unpack(p.space.start())
    np.testing.assert_allclose(p.effective_lengths(values, 1), LENGTHS.start)


def test_parts_together_have_one_rate_and_parts_of_rate_one_none():
    p = everything(together=(("gene1", "shape"), ("tide", "wave")), unit_rates=("tide", "wave"))
    values = random_values(p)
    rate = {q.name: p.rate(values, i) for i, q in enumerate(p.parts)}
    assert rate["gene1"] == rate["shape"] != rate["gene2"] and rate["tide"] == rate["wave"] == 1.0
    sites = np.array([q.n_sites * q.site_length for q in p.parts])
    assert sites @ list(rate.values()) / sites.sum() == pytest.approx(1.0, rel=1e-12)
    assert p.space.block(PARTITION_RATES).elements[:2] == ("rate{gene1,shape}", "rate{gene2}")
    apart = everything()
    assert apart.space.block(PARTITION_RATES).size == p.space.block(PARTITION_RATES).size + 3  # the control
    one = everything(together=(tuple(TEXTS),))
    assert PARTITION_RATES not in one.space and one.rate(values, 2) == 1.0


def test_parts_together_have_one_set_of_lengths():
    p = everything(lengths="unlinked", together=(("gene1", "shape"),))
    assert p.lengths[0] == p.lengths[3] == "lengths{gene1,shape}" != p.lengths[1]
    for wrong in ({"together": (("gene1", "gene3"),)}, {"unit_rates": ("gene3",)}):
        with pytest.raises(InputError, match="no part 'gene3'"):
            everything(**wrong)
    with pytest.raises(InputError, match="linked twice"):
        everything(together=(("gene1", "shape"), ("shape", "tide")))


@pytest.mark.parametrize(
    "link, message",
    [
        ({"beta": (("gene1", "gene2"),)}, "no model has a parameter 'beta'"),
        ({"alpha": (("gene1", "gene3"),)}, "no part 'gene3'"),
        ({"alpha": (("gene1", "gene2"),)}, "part 'gene2' has no parameter 'alpha'"),
        ({"alpha": (("gene1", "shape"), ("shape", "tide"))}, "linked twice"),
        ({"kappa": (("codons", "tide"),)}, "not the same thing"),
    ],
)
def test_links_of_what_is_not_alike_are_refused(link, message):
    parts = [part(name) for name in TEXTS]
    with pytest.raises(InputError, match=message):
        parameterise(parts, LENGTHS, Linkage("linked", link))


def test_shares_of_one_whole_are_linked_together():
    parts = [part("gene2"), PartModel("other", part("gene2").model, 5)]
    both = (("gene2", "other"),)
    with pytest.raises(InputError, match="only some of them are linked"):
        parameterise(parts, LENGTHS, Linkage("linked", {"kappa_R": both}), "shares")
    linked = Linkage("linked", {"kappa_R": both, "kappa_Y": both})
    assert "relative_rates" in parameterise(parts, LENGTHS, linked, "shares").space
