"""Generalised stepping stones of dated trees against exact marginal likelihoods, with planted errors, and
the slopes that trajectories follow there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.data.alignment import alignment_from_sequences
from phloem.data.alphabet import alphabet
from phloem.density.terms.exponential import Exponential
from phloem.density.terms.log_normal import LogNormal
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError, NumericalError
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.stones import marginal_likelihood
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.mcmc.working_fit import log_rooted
from phloem.inference.time import start as start_module
from phloem.inference.time.compiled.run import REFRESH, advance
from phloem.inference.time.records import DATES, JOINT
from phloem.inference.time.run import new_run
from phloem.inference.time.sampler import first_kept, sample
from phloem.inference.time.settings import Clade, TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.inference.time.working_fit import fit_dated_working
from phloem.likelihood.model_for_alignment import model_for_alignment
from statistical.time import test_slopes as slopes
from statistical.time.test_marginal_likelihood import (
    COUNTS,
    MIDDLE,
    SIZE,
    SPREAD,
    SPREAD_RATE,
    TIPS,
    by_quadrature,
    of_branch_rates,
)
from statistical.time.time_runs import nothing_observed

SETTINGS = TimeSettings(seed=3, generations=24_000, sample_every=20)
STONES = {"stones": 5, "stone_shape": 1.0, "generations": 30_000}
RATES = {"strict": {}, "ucln": {"clock_cv": Exponential(SPREAD_RATE)}}


def case(clock, alignment, tips, priors, **more):
    site_model = model_for_alignment("JC", alignment, "median")
    structure = structure_of_model(site_model, alignment.n_sites)
    tree = TreeModel(clock, priors=priors, **more)
    bounds = np.stack([tips, tips], axis=1)
    return observations(alignment), time_model(structure, tree, alignment.taxa, bounds, float("nan"))


def of_three(clock="strict"):
    rows = {f"t{k}": "".join(column[k] * n for column, n in COUNTS.items()) for k in range(3)}
    priors = {"pop_size": SIZE, "clock_rate": LogNormal(float(MIDDLE), SPREAD)} | RATES[clock]
    return case(clock, alignment_from_sequences(rows, alphabet("dna")), TIPS, priors)


def working_of(data, model, settings=SETTINGS):
    runs = sample(data, model, settings).runs
    return fit_dated_working(model, [run.samples for run in runs], [first_kept(run) for run in runs])


def estimate(data, model, working, **changes):
    settings = replace(SETTINGS, **STONES | changes, working=working)
    runs = sample(data, model, settings).runs
    return marginal_likelihood([run.samples for run in runs], settings.ladder)


@pytest.fixture(scope="module")
def three():
    data, model = of_three()
    return data, model, working_of(data, model)


def test_three_dated_taxa_against_quadrature(three):
    for more in ({}, {"n_chains": 2, "heating": 0.3}):
        found = estimate(*three, **more)
        assert 0.0 < found.error < 0.08
        assert abs(found.log - by_quadrature()) < 4 * found.error


@pytest.mark.slow
def test_branch_rates_that_differ():
    data, model = of_three("ucln")
    found = estimate(data, model, working_of(data, model), generations=120_000)
    assert 0.0 < found.error < 0.08
    assert abs(found.log - of_branch_rates()) < 4 * found.error < abs(by_quadrature() - of_branch_rates())


@pytest.mark.parametrize("clock", ["strict", "ucln"])
def test_what_nobody_knows_has_marginal_likelihood_1(clock):
    """Of six taxa, three of them with dates, and so of 945 topologies."""
    priors = {"clock_rate": LogNormal(-3.0, 0.5), "pop_size": LogNormal(1.0, 0.5)}
    tips = np.array([0.0, 0.0, 1.0, 0.5, 2.0, 0.0])
    data, model = case(clock, nothing_observed(6), tips, priors)
    working = working_of(data, model)
    assert len(working.splits) > 30
    found = estimate(data, model, working)
    assert 0.0 < found.error < 0.15
    assert abs(found.log) < 4 * found.error


def test_topologies_that_are_not_counted_are_noticed(three):
    data, model, working = three
    over = replace(working, constant=working.constant + log_rooted(3))
    found = estimate(data, model, over)
    assert abs(found.log - by_quadrature()) > 8 * found.error


def test_what_chains_carry_along_is_compared(three, monkeypatch):
    right = start_module.dated_table
    wrong = lambda *told: right(*told)._replace(root=right(*told).root * [1.0, 1.01, 1.0])  # noqa: E731
    monkeypatch.setattr(start_module, "dated_table", wrong)
    with pytest.raises(NumericalError, match="log working density is not that of the reference"):
        estimate(*three)


AGED = (
    Clade("old", tuple("abcd"), together=True, age=LogNormal(0.5, 1.0), offset=2.2),
    Clade("root", slopes.TAXA, age=Uniform(3.0, 40.0)),
)
OF_SLOPES = [(clock, ()) for clock in ("strict", "ucln", "ucln-by-dates", "white-noise", "autocorrelated")]


@pytest.mark.slow
@pytest.mark.parametrize(("clock", "clades"), [*OF_SLOPES, ("ucln", AGED)])
def test_slopes_of_trajectories(clock, clades, monkeypatch):
    """As test_slopes has it, at a power between: of likelihood, prior and working distribution, within limits
    of ages too."""
    name, move = clock.removesuffix("-by-dates"), "hamilton_dates" if clock.endswith("dates") else "hamilton"
    monkeypatch.setattr(slopes, "CLADES", clades)
    monkeypatch.setattr(slopes, "refresh", refresh)
    free = slopes.run_of(name, "constant", move)
    data, model = observations(slopes.alignment_of("dna")), free.model
    working = working_of(data, model, replace(SETTINGS, n_runs=1))
    monkeypatch.setattr(slopes, "TimeSettings", lambda **told: TimeSettings(**told | near(working)))
    run = slopes.run_of(name, "constant", move)
    assert run.scratch.power[2] == 0.4 and run.state.log_working[0] != 0.0
    assert slopes.slope_error(run, DATES if move == "hamilton_dates" else JOINT) < 1e-5


def near(working):
    return {"working": working, "stones": 3, "generations": 2_000, "sample_every": 1}


def refresh(run) -> float:
    """slopes.refresh, with a working distribution."""
    run.scratch.power[:] = 0.6, 0.6, 0.4
    run.scratch.done[:] = 0, -1, 0, 0
    advance(run.data, run.state, run.scratch, 1, REFRESH)
    state = run.state
    logs = state.log_likelihood[0], state.log_prior[0], state.log_working[0]
    return float(run.scratch.power @ np.array(logs))


REFUSED = [
    ({"clock": "shrinkage"}, "hardly change their rates"),
    ({"clades": (Clade("two", ("t0", "t1"), apart=True),)}, "nobody has counted the topologies"),
    ({"clades": (Clade("two", ("t0", "t1"), age=Uniform(0.1, 1.0)),)}, "older tips may be below"),
]


@pytest.mark.parametrize(("told", "message"), REFUSED)
def test_what_has_none_is_said(told, message):
    tips = np.zeros(3)
    told = dict(told)
    data, model = case(told.pop("clock", "strict"), nothing_observed(3), tips, {}, **told)
    with pytest.raises(InputError, match=message) as raised:
        fit_dated_working(model, [], [])
    assert "plain stones" in raised.value.hint
    assert new_run(0, data, model, TimeSettings()).data.working.shares.shape == (0, 3)
