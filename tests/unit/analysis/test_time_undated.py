"""Dated trees without dates: the rate is 1 where nothing says what time is, and priors know how old a tree of
such a rate is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.analysis.time import TimeTreeSettings, run_time, time_input
from phloem.data.diversity import mean_distance
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


@pytest.mark.parametrize("rate, text", [(1e-8, "1e-8"), (1e-8, "lognormal(-18.420681,0.1)"), (0.5, "0.5")])
def test_usual_priors_are_of_trees_as_old_as_the_rate_says(settings, rate, text):
    data = time_input(replace(settings, prior=(f"clock_rate={text}",), tree=TreeModel(prior="constant")))
    (alignment,) = data.alignments
    size = next(p.family for p in data.model.priors if p.block == "pop_size")
    assert np.exp(size.location) == pytest.approx(0.5 * mean_distance(alignment) / rate, rel=0.05)
