"""What clocks and tree priors a model may have, which numbers these bring, and what is refused."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from phloem.density import clocks
from phloem.density.parts import Linkage, PartModel
from phloem.density.terms.log_normal import LogNormal
from phloem.density.tree_priors.tree_prior import LEVEL
from phloem.errors import InputError
from phloem.inference.mcmc.structure import structure_of_model, structure_of_parts
from phloem.inference.time.move_table import Costs, chosen_moves
from phloem.inference.time.run import WINDOWS, _there, stretch_after
from phloem.inference.time.settings import Clade, TimeSettings, TreeModel, family_text, parse_family
from phloem.inference.time.structure import CLOCKS, time_model
from phloem.model.grammar import parse_model

TAXA = tuple("abcde")
NOT_SAMPLED = {"ancestors": False, "categories": False, "walks": False}
OWN = Clade("own", ("a", "b"), clock=True)
NUMBERS = {
    "strict": [],
    "ucln": ["clock_cv"],
    "ucgd": ["clock_cv"],
    "local": ["clock_ratio(own)"],
    "local-crown": ["clock_ratio(own)"],
    "random": [],
    "shrinkage": ["clock_scale"],
    "white-noise": ["clock_variance"],
    "autocorrelated": ["clock_variance"],
}
MOVES = {
    "strict": set(),
    "ucln": {"branch_deviation", "spread_centred", "hamilton_dates"},
    "ucgd": {"branch_deviation", "spread_centred", "hamilton_dates"},
    "local": set(),
    "local-crown": set(),
    "random": {"jump_flip", "jump_walk", "jump_swap"},
    "white-noise": {"branch_deviation", "spread_centred", "noise_variance", "hamilton_dates"},
    "autocorrelated": {"branch_deviation", "autocorrelated_variance"},
    "shrinkage": {"branch_deviation", "spread_centred", "jump_swap", "deviation_scaler"},
}


def model_of(clock="strict", **more):
    clades = more.pop("clades", (OWN,) if clock.startswith("local") else ())
    structure = structure_of_model(parse_model("JC", datatype="dna"), 10)
    tree = TreeModel(clock=clock, clades=clades, **more)
    bounds = np.repeat([[0.0], [0.0], [1.0], [2.0], [2.5]], 2, axis=1)
    return time_model(structure, tree, TAXA, bounds, float("nan"))


@pytest.mark.parametrize("clock", CLOCKS)
def test_clocks_bring_their_numbers_and_moves(clock):
    model = model_of(clock)
    assert list(model.space.elements)[: 2 + len(NUMBERS[clock])] == [
        "clock_rate",
        *NUMBERS[clock],
        "pop_size",
    ]
    there, costs = (
        _there(model) | {"model": False, "characters": False} | NOT_SAMPLED,
        Costs(10.0, 100.0, 1.0),
    )
    moves = {m.name for m in chosen_moves(model, there, None, costs)[0]}
    of_clocks = set().union(*MOVES.values())
    assert moves & of_clocks == MOVES[clock]
    fixed = replace(model, fixed=frozenset({"clock_cv", "clock_scale"}))
    held = {m.name for m in chosen_moves(fixed, there, None, costs)[0]}
    assert not any("multiplier" in name for name in held if name.startswith(("clock_cv", "clock_scale")))


def test_few_taxa_have_a_skyline_of_few_pieces():
    structure = structure_of_model(parse_model("JC", datatype="dna"), 10)
    bounds = np.repeat([[0.0], [0.0], [1.0], [2.0], [2.5]], 2, axis=1)
    model = time_model(structure, TreeModel(prior="skyline"), TAXA, bounds, float("nan"))
    assert model.parameters.n_groups == 4


@pytest.mark.parametrize(
    ("text", "datatype", "names"),
    [
        ("AAMIXED+FO", "protein", ["aamodel_jump"]),
        ("MIXED+FO", "dna", [f"relative_rates_{x}" for x in ("dirichlet", "slider", "split_merge")]),
    ],
)
def test_which_model_holds_is_moved_where_trajectories_move_its_numbers(text, datatype, names):
    """Which make moves of those seldom."""
    structure = structure_of_model(parse_model(text, datatype=datatype), 10)
    bounds = np.repeat([[0.0], [0.0], [1.0], [2.0], [2.5]], 2, axis=1)
    model = time_model(structure, TreeModel(), TAXA, bounds, float("nan"))
    weights = []
    for of_model in (False, True):
        there = _there(model) | {"model": of_model, "characters": False} | NOT_SAMPLED
        moves, own = chosen_moves(model, there, None, Costs(10.0, 100.0, 1.0))
        weights.append(dict(zip((m.name for m in moves), own)))
    assert [n for n in weights[0] if n.startswith(("aamodel", "relative_rates"))] == names
    assert all(weights[0][name] == weights[1][name] > 1.0 for name in names)
    assert weights[1]["frequencies_dirichlet"] < 0.1 * weights[0]["frequencies_dirichlet"]


def of_parts(clock="ucln", together=(), **more):
    """Three parts, each with a clock, or with that of another."""
    parts = [PartModel(name, parse_model("JC", datatype="dna"), 10) for name in "xyz"]
    structure = structure_of_parts(parts, Linkage("unlinked", {}, together))
    bounds = np.repeat([[0.0], [0.0], [1.0], [2.0], [2.5]], 2, axis=1)
    return time_model(structure, TreeModel(clock=clock, **more), TAXA, bounds, float("nan"))


def test_clocks_of_parts_have_numbers_and_moves_of_their_own():
    fixed = {"clock_rate{y}": 0.3, "clock_cv{x,z}": 0.4}
    model = of_parts(together=(("x", "z"),), priors=fixed)
    assert list(model.space.elements[:4]) == [
        "clock_rate{x,z}", "clock_cv{x,z}", "clock_rate{y}", "clock_cv{y}"
    ]  # fmt: skip
    assert model.rate_traits == ("x+z.rate", "y.rate") and model.reference == (True, False)
    assert model.fixed == set(fixed) and [list(own) for own in model.engine.sets] == [[0], [1], [0]]
    there, costs = (
        _there(model) | {"model": False, "characters": False} | NOT_SAMPLED,
        Costs(10.0, 100.0, 1.0),
    )
    moves = {m.name: m.block for m in chosen_moves(model, there, None, costs)[0]}
    assert [(n, b) for n, b in moves.items() if n.startswith(("branch_dev", "spread_c", "up_d"))] == [
        ("branch_deviation{x,z}", 0), ("branch_deviation{y}", 1), ("spread_centred{y}", 1), ("up_down", 0)
    ]  # fmt: skip
    assert "clock_rate{y}_multiplier" not in moves and "clock_rate{x,z}_multiplier" in moves
    assert not _there(of_parts("strict", priors={f"clock_rate{{{x}}}": 1.0 for x in "xyz"}))["rate"]
    assert of_parts(priors={"clock_rate": 1.0}).fixed == {f"clock_rate{{{x}}}" for x in "xyz"}
    with pytest.raises(InputError, match=r"no 'rate_clock' to give a prior(.|\n)*clock_rate\{x\}"):
        of_parts(priors={"rate_clock": 1.0})


def test_names_are_of_kinds():
    assert model_of("ucln", clock_sd="log").clock == clocks.BY_LOG
    assert model_of("ucln", clock_sd="log-median").clock == clocks.BY_LOG_MEDIAN
    assert model_of("autocorrelated", clock_sd="log").clock == clocks.AUTOCORRELATED_LOG
    assert {model_of(name).clock for name in CLOCKS} == {*range(9), clocks.LOCAL_CROWN} - {clocks.BY_LOG}


def test_a_level_takes_a_density():
    model = model_of(prior="skygrid", pieces=3, priors={LEVEL: LogNormal(0.0, 1.0)})
    assert model.parameters.settings[1] == 1.0
    assert [model.space.place(p.block) for p in model.priors if p.block == LEVEL] == [slice(1, 2)]
    assert model_of(prior="skygrid", pieces=3).parameters.settings[1] == 0.0


@pytest.mark.parametrize(
    "more, message",
    [
        ({"clock": "local", "clades": ()}, "need a clade"),
        ({"clock": "ucln", "clades": (OWN,)}, "has a clock of its own"),
        ({"clock": "relaxed"}, "clock"),
        ({"pieces": 4}, "no --pieces"),
        ({"prior": "skyride", "pieces": 4}, "no --pieces"),
        ({"prior": "skyline", "pieces": 9}, "9 pieces of time"),
        ({"prior": "bdsky", "pieces": 201}, "Choose 1 to 200"),
        ({"prior": "skyline", "pieces": 3, "priors": {LEVEL: 2.0}}, "takes a density"),
        ({"priors": {LEVEL: LogNormal(0.0, 1.0)}}, "there is no 'pop_size_1'"),
        ({"priors": {"clock_cv": 0.1}}, "there is no 'clock_cv'"),
        ({"prior": "skyline", "priors": {"pop_size": 2.0}}, "There are: clock_rate, pop_size_1"),
    ],
)
def test_what_does_not_fit_is_refused(more, message):
    with pytest.raises(InputError) as error:
        model_of(**more)
    assert re.search(message, f"{error.value.message} {error.value.hint}")


def test_what_the_generations_of_stones_are_for():
    settings = TimeSettings(stones=4, generations=10_000, sample_every=20, warm_up=0.25)
    ladder = settings.ladder
    assert (ladder.first, ladder.each, ladder.left_out) == (2560, 1860, 480)  # a quarter, and what is left
    assert settings.tuning == ladder.first
    generation, found = 0, []
    while generation < settings.generations:
        here = stretch_after(settings, 4, generation)
        found.append(
            (here.power, int(here.end) - generation, generation < here.adapts_until, len(here.windows))
        )
        generation = int(here.end)
    powers = (np.arange(3, -1, -1) / 4) ** 2.5
    expected = [(1.0, n, True, 5) for n in (256, 2304 - 256, 2560 - 2304)]
    for power in powers:
        expected += [(power, 480, True, 1), (power, 1380, False, 0)]
    assert found == expected
    assert stretch_after(settings, 4, 2560 + 100).edges == [2560 + 240]
    usual = TimeSettings(generations=10_000, warm_up=0.25)
    assert stretch_after(usual, 4, 2499).adapts_until == 2500 > stretch_after(usual, 4, 0).edges[-1]
    assert stretch_after(usual, 4, 2500).adapts_until == 2500 and stretch_after(usual, 4, 2500).power == 1.0


def test_chains_melt_and_set_where_there_is_time():
    def pieces(n_tips, **told):
        settings, generation, found = TimeSettings(generations=100_000, warm_up=0.2, **told), 0, []
        while generation < settings.tuning:
            here = stretch_after(settings, n_tips, generation)
            found.append((here.power, int(here.end), here.watched))
            generation = int(here.end)
        return found

    plain = [(1.0, 2_000, False), (1.0, 18_000, True), (1.0, 20_000, False)]
    assert pieces(21) == pieces(20, use_data=False) == pieces(20, ancestors="sampled") == plain
    melting = [(1.0, 2_000, False)]
    for begin in range(2_000, 12_000, 2_000):
        melting += [(0.25, begin + 600, False), (1.0, begin + 1_400, False), (1.0, begin + 2_000, True)]
    assert pieces(20) == melting + plain[1:]
    assert max(end for power, end, _ in pieces(20) if power < 1.0) < int(WINDOWS[-2] * 20_000)  # none of it


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"stones": -1}, "step"),
        ({"stones": 50, "generations": 1000}, "10 are the least"),
        ({"stones": 5, "until_converged": True}, "no until-converged"),
        ({"stone_shape": 0.3}, "stone_shape"),
    ],
)
def test_stones_that_cannot_be(told, message):
    with pytest.raises(InputError, match=message):
        _ = TimeSettings(**told).ladder


@pytest.mark.parametrize(
    "text",
    [
        "lognormal(1.4659,2)",
        "exponential(3)",
        "gamma(0.001,0.001)",
        "normal(10,2)",
        "dirichlet(1,2,3)",
        "beta(2,5)",
        "laplace(0.001,2)",
        "invgamma(2,3)",
    ],
)
def test_a_density_is_said_as_it_can_be_written(text):
    assert family_text(parse_family(text)) == text
    assert family_text(parse_family(text.replace("2", "2.0000001"))) == text
    assert family_text(parse_family("jeffreys")) == "loguniform(1e-06,1e+06)"


def test_a_log_normal_may_be_told_by_its_mean():
    found = parse_family("LogNormal( mean=0.001, 0.5 )")
    assert math.exp(found.location + found.scale**2 / 2) == pytest.approx(0.001)
    assert found.scale == 0.5
    with pytest.raises(InputError, match="needs positive numbers, not -1"):
        parse_family("lognormal(mean=-1,0.5)")
    for text in ("gamma(mean=1,2)", "lognormal(mean=1)", "lognormal(1,mean=2)"):
        with pytest.raises(InputError, match="is no density"):
            parse_family(text)


def test_a_flat_density_without_an_end_is_refused_with_what_to_do():
    with pytest.raises(InputError, match="two finite numbers") as told:
        parse_family("uniform(0,inf)")
    assert "uniform(0,1)" in told.value.hint
