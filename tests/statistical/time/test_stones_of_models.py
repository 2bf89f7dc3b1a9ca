"""Generalised stepping stones of other tree priors, clocks and calibrations than the simplest, against exact
values: what likelihood and prior add up to, what the prior alone does, and so the marginal likelihood; with
planted errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import dblquad

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density import autocorrelated_clock, clocks
from phloem.density.local_clocks import Branches
from phloem.density.parts import Linkage, PartModel
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.normal import Normal
from phloem.density.terms.uniform import Uniform
from phloem.density.tree_priors.tree_prior import Genealogy
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.structure import structure_of_parts
from phloem.inference.mcmc.working_fit import log_rooted
from phloem.inference.time import working_fit
from phloem.inference.time.settings import Clade, TreeModel
from phloem.inference.time.structure import time_model
from phloem.inference.time.working_fit import Topologies, log_mass
from phloem.likelihood.model_for_alignment import model_for_alignment
from phloem.tree.dated import dated_tree
from statistical.time.test_exact import histories
from statistical.time.test_generalised_stones import SETTINGS, case, estimate, working_of
from statistical.time.test_marginal_likelihood import COUNTS, TIPS, columns
from statistical.time.time_runs import nothing_observed

RATE = 0.1  # of the clock, where it is held
LEVEL = {"pop_size_1": LogNormal(1.0, 0.5)}
SMOOTH = LEVEL | {"precision": LogNormal(0.0, 0.5)}
SIX = np.array([0.0, 0.0, 1.0, 0.5, 2.0, 0.0])
NO_DATA = replace(SETTINGS, use_data=False)
OF_BIRTHS = {"birth_rate": 0.8, "death_rate": 0.3, "sampling_rate": 0.3, "origin_gap": 0.5}
OF_EPIDEMICS = {
    "reproductive_number": 1.5, "becoming_uninfectious_rate": 0.6, "sampling_proportion": 0.4,
    "origin_gap": 0.5,
}  # fmt: skip
HELD = {
    "exponential": (TIPS, {"pop_size": 2.0, "growth_rate": -0.4}, {}),
    "yule": (np.zeros(3), {"birth_rate": 0.5}, {}),
    "bd": (np.zeros(3), {"net_diversification": 0.4, "relative_death": 0.5}, {"options": {"sampled": 0.7}}),
    "bdss": (TIPS, OF_BIRTHS, {}),
    "bdsky": (TIPS, OF_EPIDEMICS, {"pieces": 1}),
    "fbd": (TIPS, OF_BIRTHS | {"birth_rate": 0.9}, {"options": {"fossils": "tips"}}),
}
"""Tree priors with all their numbers held: tips, numbers, and what else is said."""


def of_columns(tips, priors, name, **more):
    rows = {f"t{k}": "".join(column[k] * n for column, n in COUNTS.items()) for k in range(3)}
    alignment = alignment_from_sequences(rows, alphabet("dna"))
    return case("strict", alignment, tips, {"clock_rate": RATE} | priors, prior=name, **more)


def by_quadrature(model, tips, besides=lambda tree: 0.0) -> tuple[float, float]:
    """Logs of what prior times likelihood of COUNTS, and the prior alone, add up to. besides: what is added
    to a tree's log prior."""
    blocks = model.parameters.blocks
    x = np.concatenate([np.zeros(0), *(model.space.block(b.name).start for b in blocks)])
    both = []
    for tree, weight in histories(tips):
        g = Genealogy(tree.heights, tree.order, 3, np.zeros(0, np.int64), tree.parent)
        prior = model.tree_prior.log_density(g, x, model.parameters.settings) + besides(tree)
        length = tree.heights[tree.parent[:3]] - tree.heights[:3]
        length[tree.parent[:3] == 4] += tree.heights[4] - tree.heights[3]
        both.append((np.log(weight) + prior, columns(np.exp(-4.0 / 3.0 * RATE * length[None]))[0]))
    prior, likelihood = np.array(both).T
    return float(np.logaddexp.reduce(prior + likelihood)), float(np.logaddexp.reduce(prior))


def of_prior(data, model):
    """The estimate of the prior's constant, from its own draws."""
    return estimate(data, model, working_of(data, model, NO_DATA), use_data=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", HELD)
def test_tree_priors_against_quadrature(name):
    """Where the constant is known, it is in the working distribution; else it is estimated."""
    tips, numbers, more = HELD[name]
    data, model = of_columns(tips, numbers, name, **more)
    whole, constant = by_quadrature(model, tips)
    if (known := log_mass(model)) is not None:
        assert known == pytest.approx(constant, abs=2e-3)
    found, alone = estimate(data, model, working_of(data, model)), of_prior(data, model)
    assert 0.0 < found.error < 0.05 and 0.0 < alone.error < 0.1
    assert abs(found.log - (whole - (known or 0.0))) < 4 * found.error + 2e-3
    assert abs(alone.log - (constant - (known or 0.0))) < 4 * alone.error + 2e-3
    if abs(constant) > 0.5 and known is None:  # the control: without it the estimate is another
        assert abs(found.log - (whole - constant)) > 8 * found.error


WITHOUT_DATA = [
    ("skyline", "strict", TIPS, LEVEL, {"pieces": 2}),
    ("skygrid", "strict", SIX, SMOOTH, {"pieces": 4}),
    ("skygrid-linear", "strict", SIX, SMOOTH, {"pieces": 4}),
    ("yule", "strict", np.zeros(6), {}, {}),
    ("bd", "strict", np.zeros(6), {}, {}),
    ("constant", "ucgd", SIX, {"pop_size": LogNormal(1.0, 0.5)}, {}),
    ("constant", "autocorrelated", SIX, {"pop_size": LogNormal(1.0, 0.5)}, {}),
    ("constant", "white-noise", SIX, {"pop_size": LogNormal(1.0, 0.5), "clock_variance": 0.01}, {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "clock", "tips", "priors", "more"), WITHOUT_DATA)
def test_priors_that_add_up_have_constant_1(name, clock, tips, priors, more):
    """Most of six taxa, and so of 945 topologies: their own draws lead to 1, what data that say nothing
    have."""
    given = {"clock_rate": LogNormal(-3.0, 0.5)} | priors
    data, model = case(clock, nothing_observed(len(tips)), tips, given, prior=name, **more)
    assert log_mass(model) is not None
    found = of_prior(data, model)
    assert 0.0 < found.error < 0.3
    assert abs(found.log) < 4 * found.error


@pytest.mark.slow
def test_a_skyride_lacks_its_weights():
    """Of three taxa there is one, 2 t_root / (t_root - 0): what is left out is its root."""
    priors = {"clock_rate": 1.0, "precision": 1.0} | LEVEL
    data, model = case("strict", nothing_observed(3), TIPS, priors, prior="skyride")
    found = of_prior(data, model)
    assert 0.0 < found.error < 0.1 and abs(found.log + 0.5 * np.log(2.0)) < 4 * found.error


def test_growth_that_lets_lines_meet_has_constant_1():
    """Where it is above 0; only sampling tells, since it need not be."""
    priors = {"clock_rate": 1.0, "pop_size": LogNormal(1.0, 0.5), "growth_rate": Normal(2.0, 0.2)}
    data, model = case("strict", nothing_observed(6), SIX, priors, prior="exponential")
    assert log_mass(model) is None
    found = of_prior(data, model)
    assert 0.0 < found.error < 0.2 and abs(found.log) < 4 * found.error


def test_a_mass_that_is_left_out_is_noticed(monkeypatch):
    """Of 6 taxa under yule: 5! / 2⁵."""
    data, model = case("strict", nothing_observed(6), np.zeros(6), {"clock_rate": 1.0}, prior="yule")
    monkeypatch.setattr(working_fit, "log_mass", lambda model: None)
    found = of_prior(data, model)
    assert abs(found.log) > 5 * found.error
    assert abs(found.log - np.log(120 / 32)) < 4 * found.error


AGED = (
    Clade("root", ("t0", "t1", "t2"), age=Uniform(1.0, 3.0)),
    Clade("two", ("t0", "t1"), together=True, age=LogNormal(-0.5, 0.5), offset=0.3),
)
SIZE = 2.0


def aged(low: float, high: float) -> float:
    """Density of both ages where AGED says what is known of them, without the control."""
    if not low < high:
        return 0.0
    known = AGED[1].log_density(low) + AGED[0].log_density(high)
    return float(np.exp(known - 3 * low / SIZE - (high - low) / SIZE) / SIZE**2)


def test_limits_of_ages_are_those_of_the_working_distribution():
    """Three taxa of one time: the constant of AGED by quadrature, over the ages of both nodes. Planted: a
    density of the younger one that begins at the tips, so that some of its mass is where no tree is."""
    exact = float(np.log(dblquad(aged, 1.0, 3.0, 0.3, lambda high: high)[0]))
    priors = {"pop_size": SIZE, "clock_rate": 1.0}
    data, model = case("strict", nothing_observed(3), np.zeros(3), priors, clades=AGED)
    assert log_mass(model) is None
    found = of_prior(data, model)
    assert 0.0 < found.error < 0.05 and abs(found.log - exact) < 4 * found.error


def test_clades_that_must_be_are_counted():
    """Six taxa, a pair and four that hold it: by the coalescent's own odds. Planted: all 945 topologies
    counted, of which nine are possible."""
    pair = Clade("two", ("t0", "t1"), together=True)
    four = Clade("four", ("t0", "t1", "t2", "t3"), together=True)
    priors = {"pop_size": 1.0, "clock_rate": 1.0}
    data, model = case("strict", nothing_observed(6), np.zeros(6), priors, clades=(pair, four))
    working, exact = working_of(data, model, NO_DATA), np.log(together_by_simulation())
    found = estimate(data, model, working, use_data=False)
    assert abs(found.log - exact) < 4 * found.error + 0.02
    over = replace(working, constant=working.constant - log_rooted(6) + np.log(9))
    wrong = estimate(data, model, over, use_data=False)
    assert abs(wrong.log - exact) > 8 * wrong.error


def together_by_simulation(n: int = 40_000) -> float:
    """The probability that of six lines that join at random t0, t1 are a clade, and with t2, t3 another."""
    rng, found = np.random.default_rng(1), 0
    for _ in range(n):
        lines, seen = [1 << k for k in range(6)], set()
        while len(lines) > 1:
            i, j = sorted(rng.choice(len(lines), 2, replace=False))
            joined = lines.pop(j) | lines.pop(i)
            lines.append(joined)
            seen.add(joined)
        found += {0b11, 0b1111} <= seen
    return found / n


def test_constrained_topologies_are_counted_as_enumerated():
    held = (0b000011, 0b001111)
    own = Topologies(6, held)
    assert np.exp(own.log_number(0b111111)) == pytest.approx(3 * 3)  # of four: 3 units of 3, then 3 of 3
    assert np.exp(own.log_number(0b001111)) == pytest.approx(3)
    assert np.exp(Topologies(6, ()).log_number(0b111111)) == pytest.approx(945)


@pytest.mark.slow
def test_local_clocks_have_a_constant():
    """That of a clade that must be: a third, of three taxa of one time."""
    own = (Clade("two", ("t0", "t1"), clock=True),)
    priors = {"pop_size": SIZE, "clock_rate": LogNormal(-3.0, 0.5)}
    data, model = case("local", nothing_observed(3), np.zeros(3), priors, clades=own)
    found = of_prior(data, model)
    assert 0.0 < found.error < 0.1 and abs(found.log - np.log(1 / 3)) < 4 * found.error


@pytest.mark.slow
def test_parts_with_clocks_of_their_own():
    """Two, whose branches vary on their own."""
    alignment = nothing_observed(6)
    site_model = model_for_alignment("JC", alignment, "median")
    parts = [PartModel(name, site_model, alignment.n_sites) for name in "ab"]
    structure = structure_of_parts(parts, Linkage("unlinked"))
    priors = {"clock_rate": LogNormal(-3.0, 0.5), "pop_size": LogNormal(1.0, 0.5)}
    bounds = np.stack([SIX, SIX], axis=1)
    model = time_model(structure, TreeModel("ucln", priors=priors), alignment.taxa, bounds, float("nan"))
    assert model.n_clocks == 2 and log_mass(model) == 0.0
    found = of_prior([observations(alignment)] * 2, model)
    assert 0.0 < found.error < 0.2 and abs(found.log) < 4 * found.error


def test_vague_walks_have_no_known_constant():
    """A precision that prefers none lets sizes leave all bounds."""
    for prior, known in ((LogNormal(0.0, 1.0), True), (None, False)):
        priors = LEVEL | ({} if prior is None else {"precision": prior})
        _, model = case("strict", nothing_observed(6), SIX, priors, prior="skygrid", pieces=4)
        assert (log_mass(model) is not None) == known


@pytest.mark.parametrize("kind", [clocks.AUTOCORRELATED, clocks.AUTOCORRELATED_LOG])
def test_deviations_of_lengths_are_those_that_made_them(kind):
    rng = np.random.default_rng(1)
    tree = dated_tree(np.array([3, 3, 4, 4, -1]), np.array([0.0, 0.7, 1.9, 1.5, 3.0]))
    deviations, lengths = np.append(rng.normal(size=4), 0.0), np.zeros(5)
    numbers, none = np.array([0.2, 0.8]), np.zeros(5, np.int64)
    b = Branches(
        kind, 3, tree.parent, tree.left, tree.right, tree.order, tree.heights, deviations, numbers,
        np.zeros((0, 3), np.uint8), none, none, np.zeros(10),
    )  # fmt: skip
    autocorrelated_clock.set_lengths_autocorrelated(b, lengths)
    found = autocorrelated_clock.deviations_of(kind, numbers, tree.parent, tree.heights, lengths)
    assert np.allclose(found, deviations, atol=1e-10)
