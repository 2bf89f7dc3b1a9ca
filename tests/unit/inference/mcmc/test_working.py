"""Working distributions: what they are fitted by, that they are normalised, and what has none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from phloem.density.terms.beta import Beta
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.normal import Normal
from phloem.errors import InputError
from phloem.inference.mcmc import working_fit
from phloem.inference.mcmc.samples import no_samples, renumbered, trace_columns
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.start import random_tree
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.mcmc.working import clades, halves
from phloem.inference.mcmc.working_fit import fit_working, gamma_of, log_mass, of_topologies
from phloem.model.grammar import parse_model


def topologies(n_tips: int, n: int) -> dict[frozenset, list[tuple[int, int]]]:
    """Of random trees, those that differ: their clades, and the halves of each."""
    rng, found = np.random.default_rng(1), {}
    for _ in range(n):
        tree = random_tree(n_tips, rng)
        parent, _ = renumbered(tree.parent, tree.lengths, tree.order)
        below = clades(parent)
        found.setdefault(frozenset(below), halves(parent, below))
    return found


def total(drawn) -> float:
    """Of the probabilities of all 105 topologies of six tips."""
    splits, unseen = of_topologies(drawn)
    every = topologies(6, 3000).values()
    assert len(every) == 105
    sums = [sum(splits.get(c, {}).get(h, unseen.get(c, 0.0)) for c, h in own) for own in every]
    return sum(math.exp(x) for x in sums) / 105


def drawn_trees() -> list[list[tuple[int, int]]]:
    """Of twelve topologies, some often."""
    few = list(topologies(6, 3000).values())[:12]
    return [few[i] for i in np.random.default_rng(2).integers(0, 144, 200) // 12 % 12] + few[:1] * 30


def test_probabilities_of_all_topologies_add_up_to_1(monkeypatch):
    assert total(drawn_trees()) == pytest.approx(1.0, abs=1e-12)
    alike = lambda clade, half, log_ways: 1 / (2 ** (clade.bit_count() - 1) - 1)  # noqa: E731
    monkeypatch.setattr(working_fit, "uniform_share", alike)
    assert abs(total(drawn_trees()) - 1.0) > 0.01  # as if every split of a clade had as many topologies


def test_what_draws_had_is_more_probable_and_nothing_is_impossible():
    splits, unseen = of_topologies(drawn_trees())
    for clade, own in splits.items():
        assert clade.bit_count() > 2 and min(own.values()) > unseen[clade] < 0.0
        assert math.exp(unseen[clade]) < 0.7


def test_gamma_densities_have_the_greatest_likelihood():
    rng = np.random.default_rng(3)
    for shape in (0.3, 1.0, 5.0, 400.0):
        x = rng.gamma(shape, 0.02, 500)
        a, _, scale = stats.gamma.fit(x, floc=0)
        found = gamma_of(x)
        assert (found.shape, found.rate) == pytest.approx((a, 1 / scale), rel=1e-4)
    assert gamma_of(np.full(30, 0.1)).shape == working_fit.SHARPEST  # of a chain that never moved


@pytest.mark.parametrize(
    ("family", "low", "high"),
    [(Gamma(0.4, 3.0), 0.01, 0.5), (LogNormal(-1.0, 0.8), 0.1, 2.0), (Beta(0.7, 4.0), 0.02, 0.9)]
    + [(Normal(0.5, 0.3), 0.0, 1.0)],
)
def test_masses_between_bounds(family, low, high):
    mass, _ = quad(lambda x: math.exp(family.log_density(np.array([x]))), low, high)
    assert log_mass(family, low, high) == pytest.approx(math.log(mass), abs=1e-8)


def drawn_of(model: str, n: int = 40, **told):
    structure = structure_of_model(parse_model(model, datatype="dna"))
    settings = ChainSettings(**told)
    empty = no_samples(len(trace_columns(structure, settings.priors).names), 6)
    return structure, settings, [replace(empty, generation=np.arange(n))], [0]


@pytest.mark.parametrize(
    ("model", "told", "message"),
    [
        ("JC+R3", {}, "classes of sites that nothing tells apart"),
        ("MIXED", {}, "choose among models"),
        ("JC", {"constraints": ((1, 2),)}, "leaves some out"),
        ("JC", {"negative_constraints": ((1, 2),)}, "leaves some out"),
        ("JC", {"n": 12}, "12 draws are left"),
    ],
)
def test_what_has_none_is_said(model, told, message):
    with pytest.raises(InputError, match=message) as raised:
        fit_working(*drawn_of(model, **told))
    assert raised.value.hint


def test_it_is_of_stones_alone():
    with pytest.raises(InputError, match="stepping-stone"):
        ChainSettings(working=made())
    with pytest.raises(InputError, match="in place of the prior"):
        ChainSettings(working=made(), stones=4, stones_from_prior=True)


def made():
    return working_fit.WorkingDistribution((), 0.0, {}, (), None, None, 20)
