"""Proposals that nobody can judge: counted alike on any number of threads and ranks, kept by a resume, and
more than an accident's stop the run. -inf is not one, and ordinary runs have none."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem.errors import NumericalError
from phloem.inference.mcmc import start, undefined
from phloem.inference.mcmc.compiled.undefined import is_defined
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.records import BY_MODEL, KIND
from phloem.inference.mcmc.sampler import Sampled, Where, sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import ChainModel, structure_of_model
from phloem.inference.mcmc.undefined import HANDFUL, MOST, check_undefined, n_undefined, undefined_warnings
from phloem.io.alignment import read_alignment
from phloem.likelihood.model_for_alignment import model_for_alignment
from unit.inference.mcmc.ranks_in_threads import on_ranks

ALIGNMENT = read_alignment(Path(__file__).resolve().parents[4] / "examples/primates.nex")
STRUCTURE = structure_of_model(model_for_alignment("HKY+G4", ALIGNMENT))
SETTINGS = ChainSettings(
    n_runs=1, n_chains=2, generations=2_000, sample_every=20, check_every=500, tuning_generations=1_000
)
EDGE = 0.7  # of the shape of +G, which starts at 1, and is 0.4 by the data


class Planted(ChainModel):
    """Rates of categories that are no numbers where the shape of +G is below an edge."""

    factor = math.nan

    def site_model(self, part, values):
        right, alpha = super().site_model(part, values), values[self.space.place("alpha")][0]
        return replace(right, rates=right.rates * self.factor) if alpha < EDGE else right


class PlantedOutside(Planted):
    """Rates of 0 there, so that different characters are impossible: log-likelihood -inf."""

    factor = 0.0


@pytest.fixture
def by_model(monkeypatch):
    """All models are made by site_model."""
    right = start.recipes_of

    def recipes_of(structure):
        recipes = right(structure)
        recipes.rows[:, KIND] = BY_MODEL
        return recipes

    monkeypatch.setattr(start, "recipes_of", recipes_of)


@pytest.fixture
def any_number(monkeypatch):
    """However many there are, the run goes on."""
    monkeypatch.setattr(undefined, "MOST", 1 << 40)


def drawn(kind: type[ChainModel], prefix=None, where: Where | None = None, **settings) -> Sampled:
    chains, given = replace(SETTINGS, **settings), observations(ALIGNMENT)
    structure = kind(STRUCTURE.parameterisation)
    return sample(given, structure, chains, prefix and str(prefix), {}, where=where)


def counts(result: Sampled) -> list[list[int]]:
    return [run.state.undefined.tolist() for run in result.runs]


@pytest.mark.parametrize("which", range(3))
def test_what_can_be_judged(which):
    """Each of the three: no number and +inf cannot, -inf can."""
    for x, right in ((math.nan, False), (math.inf, False), (-math.inf, True), (-1e300, True)):
        numbers = [0.5, -3.0, -100.0]
        numbers[which] = x
        assert is_defined(*numbers) == right


def test_a_likelihood_that_is_no_number_is_counted_and_stops_the_run(by_model, tmp_path):
    with pytest.raises(
        NumericalError, match=r"run 1: .* of the move \S+ at heat rank \d;.* log-likelihood nan"
    ):
        drawn(Planted, tmp_path / "x")
    report = json.loads((tmp_path / "x.report.json").read_text())
    assert report["generation"] == 500 and report["run"] == 1
    for last in report["last_of_chains"]:
        assert last["log_likelihood"] == "nan" and last["numbers"]["alpha"][0] < EDGE
    told = report["undefined_proposals"]
    assert sum(row["undefined"] for row in told) > MOST
    assert all(row["undefined"] <= row["tried"] for row in told)


def test_what_is_outside_the_support_is_not_counted(by_model):
    result = drawn(PlantedOutside)
    alpha = 2 + result.runs[0].columns.names.index("alpha")
    assert result.runs[0].samples.numbers[:, alpha].min() >= EDGE  # such were proposed, and rejected
    assert n_undefined(result.runs) == 0 and undefined_warnings(result.runs) == []


def test_ordinary_runs_have_none():
    result = drawn(ChainModel)
    assert result.runs[0].state.tried.sum() == 4_000 and n_undefined(result.runs) == 0


def test_counts_do_not_depend_on_threads_ranks_and_interruptions(by_model, any_number, tmp_path):
    whole = drawn(Planted, threads=1)
    assert n_undefined(whole.runs) > MOST
    assert len(undefined_warnings(whole.runs)) == 1
    assert counts(drawn(Planted, threads=2)) == counts(whole)
    ranked = on_ranks(2, lambda ranks: drawn(Planted, where=Where("cpu", ranks)))
    assert counts(ranked) == counts(whole)
    drawn(Planted, tmp_path / "x", generations=1_000)
    resumed = drawn(Planted, tmp_path / "x")
    assert resumed.resumed_at == 1_000 and counts(resumed) == counts(whole)
    for name in ("undefined_last", "rng"):
        a, b = (getattr(result.runs[0].state, name) for result in (whole, resumed))
        assert np.array_equal(a, b, equal_nan=True)


def test_how_many_are_an_accident():
    """More than MOST, and more than one in 100,000, stop the run; fewer than a handful are not told."""
    run = drawn(ChainModel, generations=20, tuning_generations=0).runs[0]
    run.state.undefined_last[0, 1:4] = 0.0, -3.0, math.nan
    for n, tried, stops in ((MOST, 100, False), (MOST + 1, 1_200_000, False), (MOST + 1, 1_000_000, True)):
        run.state.undefined[:], run.state.tried[:] = 0, 0
        run.state.undefined[0, 1], run.state.tried[1, 0] = n, tried
        if stops:
            with pytest.raises(NumericalError, match=f"{n} of {tried:,} proposals.*rank 0; .* chain 1"):
                check_undefined([run])
        else:
            check_undefined([run])
        assert len(undefined_warnings([run])) == 1
    run.state.undefined[0, 1] = HANDFUL
    assert undefined_warnings([run]) == [] and n_undefined([run]) == HANDFUL
