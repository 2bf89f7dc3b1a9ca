"""Dated trees without dates: the rate is 1 where nothing says what time is, and priors know how old a tree of
such a rate is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from phloem.analysis.time import TimeTreeSettings, run_time, time_input
from phloem.data.diversity import mean_distance
from phloem.density.terms.gamma import Gamma
from phloem.density.terms.log_normal import LogNormal
from phloem.errors import NumericalError
from phloem.inference.time.sampler import check_runaway
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.io.alignment import write_fasta
from phloem.likelihood.simulation import simulate_alignment
from phloem.model.grammar import parse_model
from phloem.tree.random import scaled_to_height, yule

CHAINS = TimeSettings(generations=20_000, sample_every=100, check_every=10_000, n_runs=2, threads=1)


@pytest.fixture
def settings(tmp_path):
    tree = scaled_to_height(yule(8, np.random.default_rng(2)), 0.02)
    data = simulate_alignment(tree, parse_model("JC", datatype="dna"), 3000, seed=4)
    write_fasta(data, tmp_path / "a.fasta")
    (tmp_path / "dates.tsv").write_text("".join(f"{name}\t{2000 + i}\n" for i, name in enumerate(data.taxa)))
    return TimeTreeSettings(
        str(tmp_path / "a.fasta"), model="JC", prefix=str(tmp_path / "out"), chains=CHAINS, device="cpu",
        tree=TreeModel(prior="yule"),
    )  # fmt: skip


def test_the_rate_is_1_where_nothing_says_what_time_is(settings):
    data = time_input(settings)
    assert data.model.fixed == {"clock_rate"} and "clock_rate is 1, and ages are expected" in data.told[-1]
    found = run_time(settings).parameters
    height = dict(zip(found.names, found.mean))["root_height"]
    assert 0.015 < height < 0.025
    loose = time_input(replace(settings, prior=("clock_rate=ctmc",)))  # as it was: of the priors' age
    assert not loose.model.fixed and not loose.told


def test_what_says_something_is_obeyed(settings, tmp_path):
    for more in (
        {"prior": ("clock_rate=lognormal(-7,1)",)},
        {"calibrate": ("root=normal(5,1)",)},
        {"dates": str(tmp_path / "dates.tsv"), "tree": TreeModel(prior="constant")},
    ):
        data = time_input(replace(settings, **more))
        assert not data.model.fixed and not data.told


@pytest.mark.parametrize(
    "rate, text", [(1e-8, "1e-8"), (1e-8, "lognormal(-18.420681,0.1)"), (1.0, "jeffreys")]
)
def test_usual_priors_are_of_trees_as_old_as_the_rate_says(settings, rate, text):
    data = time_input(replace(settings, prior=(f"clock_rate={text}",), tree=TreeModel(prior="constant")))
    (alignment,) = data.alignments
    size = next(p.family for p in data.model.priors if p.block == "pop_size")
    assert np.exp(size.location) == pytest.approx(0.5 * mean_distance(alignment) / rate, rel=0.05)


def test_chains_that_the_dates_do_not_hold_are_stopped(settings, tmp_path):
    """Skyline and CTMC reference have no end: at a million times the dates' span nothing leads back."""
    dated = replace(
        settings, dates=str(tmp_path / "dates.tsv"), tree=TreeModel(prior="skyline", pieces=2),
        prior=("pop_size_1=jeffreys",),
    )  # fmt: skip

    def check(settings, root: float) -> None:
        model = time_input(settings).model
        state = SimpleNamespace(heights=np.array([[0.0, 1.0], [0.0, root]]), slot=np.array([1]))
        run = SimpleNamespace(number=1, cold=SimpleNamespace(model=model, state=state))
        check_runaway([run])

    check(dated, 6e6)  # the dates span seven years
    with pytest.raises(NumericalError, match=r"run 2 has lost the dates: its root is 8e\+06 old.*span 7"):
        check(dated, 8e6)
    for held in (
        {"prior": ("pop_size_1=jeffreys", "clock_rate=lognormal(-7,1)")},
        {"prior": ("pop_size_1=lognormal(2,1)",)},
        {"prior": ()},
        {"calibrate": ("root=uniform(1,100)",)},
        {"tree": TreeModel(prior="constant"), "prior": ()},
    ):
        check(replace(dated, **held), 8e8)


@pytest.mark.parametrize("prior", ["skyline", "skyride", "skygrid"])
def test_the_level_of_population_sizes_has_a_usual_prior(settings, tmp_path, prior):
    dated = replace(settings, dates=str(tmp_path / "dates.tsv"), tree=TreeModel(prior=prior))

    def level(*given: str):
        model = time_input(replace(dated, prior=given)).model
        return next((p.family for p in model.priors if p.block == "pop_size_1"), None)

    assert level() == LogNormal(np.log(7.0), 2.0) and level("pop_size_1=gamma(2,1)") == Gamma(2.0, 1.0)
    assert level("pop_size_1=jeffreys") is None  # as published
