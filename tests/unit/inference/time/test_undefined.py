"""Dated chains count proposals that nobody can judge, as chains of inference/mcmc do; what is outside the
support, and what a trajectory or ancestors cannot do, is none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from phloem.errors import NumericalError
from phloem.inference.mcmc import undefined
from phloem.inference.mcmc.records import BY_MODEL, KIND
from phloem.inference.mcmc.structure import ChainModel
from phloem.inference.mcmc.undefined import MOST, check_undefined, n_undefined, undefined_warnings
from phloem.inference.time import start
from phloem.inference.time.sampler import sample, warnings_of
from phloem.inference.time.settings import SWAP_EVERY
from unit.inference.time.test_coupled import made_from

EDGE = 0.9  # of the shape of +G, which starts at 1
ONE_CHAIN = {"n_chains": 1, "swap_every": SWAP_EVERY}
OFTEN = {"alpha_multiplier": 2.0, "narrow_exchange": 1.0, "node_height": 1.0}  # no trajectories


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
    """All models are made by site_model, and however many proposals are undefined, the run goes on."""
    right = start.recipes_of

    def recipes_of(structure):
        recipes = right(structure)
        recipes.rows[:, KIND] = BY_MODEL
        return recipes

    monkeypatch.setattr(start, "recipes_of", recipes_of)
    monkeypatch.setattr(undefined, "MOST", 1 << 40)


def drawn(kind: type[ChainModel], prefix=None, clock: str = "strict", **settings):
    weights = {} if kind is ChainModel else {"move_weights": OFTEN}
    usual = {"generations": 1_500, "check_every": 500, "threads": 1} | weights
    given, model, chains = made_from(clock, **usual | settings)
    model = replace(model, engine=kind(model.engine.parameterisation))
    return sample(given, model, chains, prefix and str(prefix), {})


@pytest.mark.parametrize("chains", [ONE_CHAIN, {}])
def test_a_likelihood_that_is_no_number_is_counted(chains, by_model, tmp_path, monkeypatch):
    """Resumed as in one go; and stopped, where it may be."""
    whole = drawn(Planted, **chains)
    assert n_undefined(whole.runs) > MOST and len(undefined_warnings(whole.runs)) == 1
    assert undefined_warnings(whole.runs)[0] in warnings_of(whole.runs)
    drawn(Planted, tmp_path / "x", **chains, generations=500)
    resumed = drawn(Planted, tmp_path / "x", **chains)
    assert resumed.resumed_at == 500
    for name in ("undefined", "undefined_last", "rng"):
        a, b = (getattr(result.runs[0].state, name) for result in (whole, resumed))
        assert np.array_equal(a, b, equal_nan=True)
    if not chains:
        threads = drawn(Planted, threads=3)
        assert np.array_equal(threads.runs[0].state.undefined, whole.runs[0].state.undefined)
    monkeypatch.undo()
    with pytest.raises(NumericalError, match=r"of the move \S+ at heat rank \d;.* log-likelihood nan"):
        check_undefined(whole.runs)


def test_what_is_outside_the_support_is_not_counted(by_model):
    result = drawn(PlantedOutside, **ONE_CHAIN)
    alpha = 2 + result.runs[0].columns.names.index("alpha")
    assert result.runs[0].samples.numbers[:, alpha].min() >= EDGE
    assert n_undefined(result.runs) == 0


@pytest.mark.parametrize("ancestors", ["summed", "sampled"])
@pytest.mark.parametrize("clock", ["strict", "ucln"])
def test_ordinary_runs_have_none(clock, ancestors):
    result = drawn(ChainModel, clock=clock, ancestors=ancestors, generations=6_000, check_every=3_000)
    assert n_undefined(result.runs) == 0
