"""The log prior that a dated chain carries along is that of NumPy's terms; planted errors stop the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.data.traits import TipTraits
from phloem.density.parts import Linkage, PartModel
from phloem.density.terms.dirichlet import Dirichlet
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.log_uniform import LogUniform
from phloem.density.terms.uniform import Uniform
from phloem.errors import InputError, NumericalError
from phloem.inference.mcmc.priors import possible_numbers
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.structure import structure_of_model, structure_of_parts
from phloem.inference.time import start
from phloem.inference.time.plain_prior import check_prior, plain_log_prior
from phloem.inference.time.run import advanced, new_run
from phloem.inference.time.sampler import sample
from phloem.inference.time.settings import Clade, TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.inference.time.traits import TraitModel
from phloem.likelihood.model_for_alignment import model_for_alignment
from unit.inference.time.test_ancestors import TIPS, alignment

TAXA = tuple(f"t{k}" for k in range(6))
AGES = (
    Clade("root", TAXA, age=Gamma(8.0, 1.0), offset=0.5),
    Clade("three", TAXA[:3], together=True, age=Gamma(2.0, 0.5)),
)
ORIGIN = Clade("origin", TAXA, age=Gamma(8.0, 1.0), offset=2.0, above="origin_gap")
OF_SPECIES = {"numbers": "diversification", "condition": "survival", "sampled": 0.5}
STATES = np.eye(3, dtype=bool)[[0, 0, 1, 2, 2, 2]]
TRAIT = TraitModel(TipTraits("place", TAXA, tuple("XYZ"), STATES), False, True, False)
MODELS = {
    "constant, ages": (TreeModel(clades=AGES), None),
    "skyline, ucln": (TreeModel(clock="ucln", prior="skyline", pieces=3), None),
    "birth-death, ucgd": (TreeModel(clock="ucgd", prior="bdss"), None),
    "bdsky, ucln": (TreeModel(clock="ucln", prior="bdsky", pieces=3), None),
    "fbd since an origin": (TreeModel(prior="fbd", options=OF_SPECIES, clades=(ORIGIN,)), None),
    "skyride, random": (TreeModel(clock="random", prior="skyride"), None),
    "exponential, shrinkage": (TreeModel(clock="shrinkage", prior="exponential"), None),
    "skyride, white noise": (TreeModel(clock="white-noise", prior="skyride"), None),
    "constant, autocorrelated": (TreeModel(clock="autocorrelated"), None),
    "constant, trait": (TreeModel(), TRAIT),
}


def made_from(kind: str):
    data = alignment(6, 40)
    tree, trait = MODELS[kind]
    structure = structure_of_model(model_for_alignment("HKY+FO", data, "mean"), 40)
    bounds = np.stack([TIPS[:6]] * 2, axis=1)
    model = time_model(structure, tree, data.taxa, bounds, float("nan"), trait)
    settings = TimeSettings(n_runs=1, generations=400, sample_every=100, until_converged=False)
    return observations(data), model, settings


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_carried_along_is_the_prior(kind):
    run = new_run(0, *made_from(kind))
    for _ in range(3):
        check_prior(run)
        run = advanced(run, 400)
    assert run.state.log_prior[0] == pytest.approx(plain_log_prior(run), rel=1e-10)
    s, e = int(run.state.slot[0]), 0.1
    run.state.heights[s, -1] += e
    with pytest.raises(NumericalError, match="the log prior is not that of the reference"):
        check_prior(run)


def without_ages(right):
    return right._replace(ages=right.ages._replace(numbers=right.ages.numbers * 1.01))


def of_numbers(right):
    return right._replace(priors=right.priors._replace(numbers=right.priors.numbers * 1.01))


def gap_left_out(right):
    known = right.calibrations
    return right._replace(calibrations=known._replace(above=np.full(len(known.above), -1)))


def deviations_left_out(right):
    return right._replace(clock=right.clock._replace(smooth=0))


def slower_trait(right):
    return right._replace(trait=right.trait._replace(mean=right.trait.mean * 1.01))


@pytest.mark.parametrize(
    ("kind", "plant"),
    [
        ("constant, ages", without_ages),
        ("constant, ages", of_numbers),
        ("fbd since an origin", gap_left_out),
        ("skyline, ucln", deviations_left_out),
        ("constant, trait", slower_trait),
    ],
)
def test_a_wrong_prior_stops_the_start(kind, plant, monkeypatch):
    """Of chains that ignore the data, too."""
    right = start.time_data
    monkeypatch.setattr("phloem.inference.time.run.time_data", lambda *given: plant(right(*given)))
    observed, model, settings = made_from(kind)
    for use_data in (True, False):
        with pytest.raises(NumericalError, match="the log prior is not that of the reference"):
            sample(observed, model, replace(settings, use_data=use_data))


NARROW = {
    "clock_rate": (Uniform(3.0, 5.0), 3.0 * (5.0 / 3.0) ** 0.1),
    "kappa": (LogUniform(200.0, 800.0), 200.0 * 4.0**0.1),
    "pop_size": (Uniform(0.0, 1e9), None),
}


def test_chains_start_where_priors_let_them():
    """A tenth of the way in where limits exclude the usual start, which else stays."""
    seen, model, settings = made_from("constant, ages")
    usual = new_run(0, seen, model, settings).state.values[0]
    tree = TreeModel(clades=AGES, priors={name: family for name, (family, _) in NARROW.items()})
    other = time_model(model.engine, tree, model.taxa, model.tip_bounds, float("nan"))
    run = new_run(0, seen, other, settings)
    for name, (_, near) in NARROW.items():
        here = other.space.place(name)
        expected = usual[model.space.place(name)] if near is None else [near]
        assert run.state.values[0, here] == pytest.approx(expected)
    check_prior(run)


@pytest.mark.parametrize("oldest", [0.2, 4.0, 1000.0])
def test_chains_start_below_an_origin_that_has_a_density(oldest):
    seen, model, settings = made_from("fbd since an origin")
    youngest = float(model.tip_bounds.max()) + oldest
    origin = replace(ORIGIN, age=Uniform(youngest, youngest + 0.1 * oldest), offset=0.0)
    tree = TreeModel(prior="fbd", options=OF_SPECIES, clades=(origin,))
    other = time_model(model.engine, tree, model.taxa, model.tip_bounds, float("nan"))
    for seed in range(5):
        run = new_run(0, seen, other, replace(settings, seed=seed))
        began = run.samples.numbers[0, 2 + run.columns.names.index("age(origin)")]
        assert youngest < began < youngest + 0.1 * oldest
        check_prior(run)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"prior": "constant", "options": {}}, "has no origin whose age"),
        ({"priors": {"origin_gap": Gamma(2.0, 1.0)}}, "both say when the process began"),
        ({"prior": "fbd-root", "options": {}}, "is a density given the root's age"),
    ],
)
def test_an_origin_needs_a_process_that_has_one(more, message):
    _, model, _ = made_from("fbd since an origin")
    tree = replace(TreeModel(prior="fbd", options=OF_SPECIES, clades=(ORIGIN,)), **more)
    with pytest.raises(InputError, match=message):
        time_model(model.engine, tree, model.taxa, model.tip_bounds, float("nan"))


def test_what_is_said_of_a_number_holds_of_each_part():
    data = alignment(6, 40)
    one = model_for_alignment("HKY+FO", data, "mean")
    parts = structure_of_parts([PartModel(name, one, 40, 1) for name in "ab"], Linkage("proportional"))
    given = {"frequencies": Dirichlet(4.0), "kappa{b}": Gamma(2.0, 1.0)}
    model = time_model(
        parts, TreeModel(priors=given), data.taxa, np.stack([TIPS[:6]] * 2, axis=1), float("nan")
    )
    found = {p.block: p.family for p in model.priors}
    assert found["frequencies{a}"] == found["frequencies{b}"] == Dirichlet(4.0)
    assert found["kappa{b}"] == Gamma(2.0, 1.0) != found["kappa{a}"]


def test_a_start_that_cannot_be_is_explained():
    seen, model, settings = made_from("constant, ages")
    tree = TreeModel(prior="bdsky", pieces=1, priors={"sampling_proportion": 0.0})
    none_sampled = time_model(model.engine, tree, model.taxa, model.tip_bounds, float("nan"))
    with pytest.raises(NumericalError, match="the log prior of the tree is -inf at sampling_proportion 0, "):
        new_run(0, seen, none_sampled, settings)


def test_what_is_said_of_a_number_holds_of_its_stretches_of_time():
    _, model, _ = made_from("constant, ages")
    options = {"shift": {"reproductive_number": (2.0,), "sampling_proportion": (1.5, 3.0)}}
    given = {"sampling_proportion": Uniform(0.2, 0.3), "sampling_proportion_3": 0.0}
    tree = TreeModel(prior="bdsky", options=options, priors=given)
    found = time_model(model.engine, tree, model.taxa, model.tip_bounds, float("nan"))
    known = {p.block: p.family for p in found.priors}
    assert known["sampling_proportion_1"] == known["sampling_proportion_2"] == Uniform(0.2, 0.3)
    assert found.fixed == {"sampling_proportion_3"} and "reproductive_number_2" in known
    with pytest.raises(InputError, match="there is no 'sampling_proportion_4'"):
        more = replace(tree, priors={"sampling_proportion_4": 0.1})
        time_model(model.engine, more, model.taxa, model.tip_bounds, float("nan"))
    with pytest.raises(InputError, match="--pieces and --shift"):
        time_model(model.engine, replace(tree, pieces=3), model.taxa, model.tip_bounds, float("nan"))


def test_numbers_outside_of_limits_come_in_where_they_are_next():
    x = np.array([0.5, 2.0, 9.0])
    assert possible_numbers(Uniform(1.0, 4.0), x) == pytest.approx([4.0**0.1, 2.0, 4.0**0.9])
    assert possible_numbers(Uniform(-1.0, 1.0), x) == pytest.approx([0.5, 0.8, 0.8])
    assert possible_numbers(Gamma(2.0, 1.0), x) is x
