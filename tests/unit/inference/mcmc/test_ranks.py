"""Runs and chains on several processes: the same samples, bit for bit, on any number of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phloem import read_alignment
from phloem.hardware.ranks import Ranks
from phloem.inference.mcmc import spread, weights
from phloem.inference.mcmc.guard import plain_likelihood
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.records import ChainState
from phloem.inference.mcmc.sampler import Where, sample
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.spread import Share, own_state, shares, shares_text, useful_ranks, whole_state
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.time import sampler as time_sampler
from phloem.inference.time.sampler import sample as sample_dated
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.io.date_table import read_dates
from phloem.likelihood.model_for_alignment import model_for_alignment
from unit.inference.mcmc.ranks_in_threads import on_ranks

ROOT = Path(__file__).resolve().parents[4]
PRIMATES = read_alignment(ROOT / "examples/primates.nex")
STRUCTURE = structure_of_model(model_for_alignment("GTR+I+G4", PRIMATES))
# moves are tuned every 100 tries: enough generations that tuning of a heat changes and wanders
SETTINGS = ChainSettings(
    generations=2_400, sample_every=40, check_every=600, tuning_generations=1_600, threads=2
)


def sampled(size: int, settings: ChainSettings = SETTINGS, prefix: str | None = None):
    """The runs, on so many ranks."""

    def work(ranks):
        plain = plain_likelihood([PRIMATES], STRUCTURE)
        return sample(
            observations(PRIMATES), STRUCTURE, settings, prefix, None, None, None, plain, Where("cpu", ranks)
        )

    return on_ranks(size, work)


def numbers(result) -> list[np.ndarray]:
    """Everything drawn, and every field of the states."""
    found = [
        getattr(run.samples, name) for run in result.runs for name in ("generation", "numbers", "parent")
    ]
    return found + [array for run in result.runs for array in run.state]


def same(a, b) -> bool:
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(numbers(a), numbers(b), strict=True))


@pytest.fixture(scope="module")
def alone():
    return sampled(1)


@pytest.mark.parametrize("size", [2, 3, 5, 8, 9])
def test_samples_and_states_do_not_depend_on_the_number_of_ranks(alone, size):
    found = sampled(size)
    assert len(found.runs[0].samples.generation) == 61 and found.diagnosis == alone.diagnosis
    assert same(alone, found)


def test_swaps_between_ranks_happen(alone):
    assert all(run.state.swaps_accepted.sum() > 50 for run in alone.runs)
    assert any((run.state.tuning[0] != run.state.tuning[1]).any() for run in alone.runs)


def test_what_stays_behind_with_a_chain_is_seen(alone, monkeypatch):
    """The error planted: how moves are tuned at a heat does not travel with it."""
    right = Ranks.exchanged

    def exchanged(self, message, partner):
        return np.concatenate([right(self, message, partner)[:3], message[3:]])

    monkeypatch.setattr(Ranks, "exchanged", exchanged)
    assert not same(alone, sampled(4))


def test_learning_from_own_chains_alone_is_seen(alone, monkeypatch):
    """The error planted: how numbers vary together is learnt from the chains of one process."""
    monkeypatch.setattr(spread.Swaps, "shared", lambda self, rows: rows)
    assert not same(alone, sampled(4))


def test_shares_of_moves_are_learnt_alike(monkeypatch):
    """The error planted: what moves brought is that of the chains of one process."""
    monkeypatch.setattr(weights, "LEAST_LOOKS", 2)
    one, three = sampled(1), sampled(3)
    usual = weights.cumulative_shares(np.array([move.weight for move in one.runs[0].moves]))
    assert all(not np.allclose(run.state.cumulative, usual) for run in one.runs)
    assert same(one, three)
    right = spread.Swaps.shared

    def shared(self, rows):
        return rows if rows.shape[1] == one.runs[0].state.jumps.size else right(self, rows)

    monkeypatch.setattr(spread.Swaps, "shared", shared)
    assert not same(one, sampled(3))


def test_another_decision_is_seen(alone, monkeypatch):
    """The error planted: swaps between ranks are decided by other numbers than those within one."""
    right = spread.Swaps.swap
    monkeypatch.setattr(spread.Swaps, "swap", lambda self, *a: right(self, *a[:3], a[3] - 1.0))
    assert not same(alone, sampled(4))


def test_a_checkpoint_goes_on_on_another_number_of_ranks(alone, tmp_path):
    prefix = str(tmp_path / "x")
    sampled(3, replace(SETTINGS, generations=1_200), prefix)
    longer = sampled(5, SETTINGS, prefix)
    assert longer.resumed_at == 1_200  # slots of the states may differ: a start takes the other one
    assert all(np.array_equal(a.state.rng, b.state.rng) for a, b in zip(alone.runs, longer.runs))
    sampled(1, SETTINGS, str(tmp_path / "y"))
    for name in ("run1.p", "run2.p", "run1.t", "run2.t"):
        assert (tmp_path / f"x.{name}").read_bytes() == (tmp_path / f"y.{name}").read_bytes()


def test_every_field_of_a_state_is_told_what_it_is():
    named = (*spread.OF_CHAINS, *spread.OF_HEATS, *spread.SUMS, *spread.OF_ALL)
    assert sorted(named) == sorted(ChainState._fields)


def test_parts_of_a_state_make_it_whole(alone):
    whole = alone.runs[0].state
    again = whole_state([own_state(whole, chains) for chains in (range(0, 1), range(1, 3), range(3, 4))])
    assert all(np.array_equal(a, b) for a, b in zip(whole, again))


def test_who_has_what():
    assert shares(2, 4, 1, 9) == (Share((0, 1), range(4)),)
    assert shares(3, 4, 2, 9) == (Share((0,), range(4)), Share((1, 2), range(4)))
    halves = range(2), range(2, 4)
    assert shares(2, 4, 4, 9) == tuple(Share((run,), half) for run in (0, 1) for half in halves)
    for n_runs, n_chains, size in ((1, 4, 3), (2, 4, 5), (2, 3, 8), (3, 1, 7), (2, 64, 16)):
        given = shares(n_runs, n_chains, size, 9)
        assert len(given) == size
        for run in range(n_runs):
            own = [share.chains for share in given if run in share.runs]
            assert [c for chains in own for c in chains] == list(range(n_chains))
            assert max(map(len, own)) - min(map(len, own)) <= 1
    assert shares_text(shares(2, 1, 3, 9), "by MPI", "why").endswith("each has whole runs, 1 idle: why")
    idle = shares(2, 4, 6, 2)
    assert sum(not share.chains for share in idle) == 2 and "2 idle" in shares_text(idle, "by MPI")


def test_chains_are_divided_where_that_saves_more_than_swaps_cost():
    assert useful_ranks(4, 4, lambda n: 1e-6 * n, 1e-4) == 1
    assert useful_ranks(4, 4, lambda n: 1e-2 * n, 1e-4) == 4
    assert (
        useful_ranks(4, 3, lambda n: 1e-2 * n, 1e-4) == 2
    )  # a third rank would not shorten the largest share
    assert useful_ranks(64, 2, lambda n: 1e-3 + 1e-9 * n, 1e-4) == 1


# Dated trees: whole runs.

DENGUE = read_alignment(ROOT / "tests/golden/time_trees/data/dengue4.fasta")


@pytest.fixture(scope="module")
def dated():
    dates = read_dates(ROOT / "tests/golden/time_trees/data/dengue4.dates.tsv", DENGUE.taxa)
    structure = structure_of_model(model_for_alignment("JC", DENGUE), DENGUE.n_sites)
    model = time_model(structure, TreeModel(), DENGUE.taxa, np.stack(dates.ages, 1), dates.latest)

    def work(size: int, prefix: str | None = None, generations: int = 600):
        settings = TimeSettings(n_runs=3, generations=generations, sample_every=20, check_every=200)
        return on_ranks(
            size,
            lambda ranks: sample_dated(
                observations(DENGUE), model, settings, prefix, where=Where("cpu", ranks)
            ),
        )

    return work


def test_dated_trees_do_not_depend_on_the_number_of_ranks(dated, monkeypatch):
    alone = dated(1)
    assert [run.number for run in alone.runs] == [0, 1, 2] and alone.runs[2].samples.n == 31
    for size in (2, 3, 5):
        found = dated(size)
        assert same(alone, found) and found.diagnosis == alone.diagnosis
        assert found.generations == alone.generations
    right = time_sampler.new_run
    monkeypatch.setattr(time_sampler, "new_run", lambda r, *a: replace(right(r % 2, *a), number=r))
    assert not same(alone, dated(3))


def test_dated_trees_go_on_on_another_number_of_ranks(dated, tmp_path):
    dated(2, str(tmp_path / "x"), 400)
    longer = dated(3, str(tmp_path / "x"))
    dated(1, str(tmp_path / "y"), 400)
    once = dated(1, str(tmp_path / "y"))
    assert longer.resumed_at == 400 and same(longer, once)
    for name in ("run1.log", "run3.log", "run2.trees", "ckp.run3.samples"):
        assert (tmp_path / f"x.{name}").read_bytes() == (tmp_path / f"y.{name}").read_bytes(), name
