"""Coupled chains over dated trees: swaps exchange what belongs to a temperature, whoever does the work."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phloem.errors import InputError
from phloem.inference.mcmc.convergence import heat_warnings, swap_shares
from phloem.inference.mcmc.recipes import observations
from phloem.inference.mcmc.structure import structure_of_model
from phloem.inference.time import coupled
from phloem.inference.time.coupled import OF_HEATS, CoupledState, coupled_advanced, new_coupled_run
from phloem.inference.time.records import TimeState
from phloem.inference.time.run import advanced, new_run
from phloem.inference.time.sampler import check_ancestors, sample, warnings_of
from phloem.inference.time.settings import TimeSettings, TreeModel
from phloem.inference.time.structure import time_model
from phloem.likelihood.model_for_alignment import model_for_alignment
from unit.inference.time.test_ancestors import TIPS, alignment


def made_from(clock: str = "strict", **settings):
    """What runs are made from, of six tips; without ancestors unless settings ask for them."""
    data = alignment(6, 40)
    site_model = model_for_alignment("HKY+FO+G4", data, "mean")
    bounds = np.stack([TIPS[:6]] * 2, axis=1)
    structure = structure_of_model(site_model, 40)
    model = time_model(structure, TreeModel(clock=clock), data.taxa, bounds, float("nan"))
    usual = {"n_runs": 1, "n_chains": 3, "sample_every": 50, "tuning_generations": 300, "swap_every": 3}
    return observations(data), model, TimeSettings(**usual | settings)


IN_SLOTS = ("parent", "left", "right", "order", "heights", "deviations", "lengths", "values", "groups")


def accepted(state) -> list[np.ndarray]:
    """All of a state but what proposals left in the slot that is not in use."""
    slot, found = state.slot[:, 0], [getattr(state, name) for name in state._fields if name not in IN_SLOTS]
    found = [array for array in found if array is not state.slot]
    return found + [getattr(state, name)[h, s] for name in IN_SLOTS for h, s in enumerate(slot)]


def same(one, other) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(accepted(one), accepted(other), strict=True))


@pytest.mark.parametrize("ancestors", ["summed", "sampled"])
def test_numbers_depend_neither_on_threads_nor_on_interruptions(ancestors):
    own = made_from("ucln", ancestors=ancestors)
    whole = coupled_advanced(new_coupled_run(0, *own), 600)
    assert whole.coupling.swaps_accepted.sum() > 10
    for threads in (2, 3):
        again = coupled_advanced(new_coupled_run(0, *own, threads=threads), 600)
        assert same(again.state, whole.state)
        assert np.array_equal(again.samples.numbers, whole.samples.numbers)
    half = coupled_advanced(new_coupled_run(0, *own), 250)  # in the warm-up
    on = coupled_advanced(new_coupled_run(0, *own, stored=(half.state, half.samples)), 350)
    assert same(on.state, whole.state) and np.array_equal(on.samples.numbers, whole.samples.numbers)
    for chain in whole.chains:
        check_ancestors(chain)
    other = replace(own[2], swap_seed=5)
    assert not same(coupled_advanced(new_coupled_run(0, *own[:2], other), 600).state, whole.state)


def test_single_chains_are_those_of_before():
    """The first of several that never swap is the only one of a run without others."""
    observed, model, settings = made_from(swap_every=10**9)
    run = coupled_advanced(new_coupled_run(0, observed, model, settings), 400)
    one = advanced(
        new_run(0, observed, model, TimeSettings(n_runs=1, sample_every=50, tuning_generations=300)), 400
    )
    assert np.array_equal(run.samples.numbers, one.samples.numbers)
    assert (
        run.coupling.swaps_tried.sum() == 0 and len({chain.state.heights[0, -1] for chain in run.chains}) == 3
    )


def test_swaps_exchange_what_belongs_to_heats():
    run = coupled_advanced(new_coupled_run(0, *made_from("ucln")), 300)
    before = {rank: chain.state for rank, chain in enumerate(run.by_rank)}
    chains, order = [chain.state for chain in run.chains], run.coupling.rank.copy()
    while (run.coupling.rank == order).all():
        run = coupled_advanced(run, 3)
    for rank, chain in enumerate(run.by_rank):
        for name in OF_HEATS:
            assert getattr(chain.state, name) is getattr(before[rank], name), name
    for state, chain in zip(chains, run.chains):
        for name in set(TimeState._fields) - set(OF_HEATS):
            assert getattr(chain.state, name) is getattr(state, name), name
    assert not np.array_equal(before[0].steps, before[2].steps)  # every temperature learns its own
    whole = run.state
    assert isinstance(whole, CoupledState) and whole.tuning.shape == (3, len(run.moves))
    assert (whole.tuning[0] == run.cold.state.tuning).all()


def test_powers_are_those_of_the_ranks():
    run = coupled_advanced(new_coupled_run(0, *made_from(heating=0.5)), 200)
    for chain, rank in zip(run.chains, run.coupling.rank):
        heat = 1 / (1 + 0.5 * rank)
        assert chain.scratch.power.tolist() == [heat, heat, 0.0]  # likelihood, prior, no working distribution


def test_an_error_in_one_thread_ends_all(monkeypatch):
    run, right = new_coupled_run(0, *made_from(), threads=3), coupled.work

    def fails(chain, *rest):
        if chain is run.chains[1]:
            raise FloatingPointError("planted")
        right(chain, *rest)

    monkeypatch.setattr(coupled, "work", fails)
    with pytest.raises(FloatingPointError, match="planted"):
        coupled_advanced(run, 100)


def test_checkpoints_hold_all_chains(tmp_path):
    observed, model, settings = made_from(n_runs=2, generations=800, check_every=100)
    whole = sample(observed, model, settings, str(tmp_path / "whole"), {"a": 1})
    sample(observed, model, replace(settings, generations=300), str(tmp_path / "half"), {"a": 1})
    on = sample(observed, model, settings, str(tmp_path / "half"), {"a": 1})
    assert on.resumed_at == 300 and on.generations == 500 * 6
    for name in ("run1.log", "run2.trees", "ckp.run1.samples"):
        assert (tmp_path / f"half.{name}").read_bytes() == (tmp_path / f"whole.{name}").read_bytes()
    assert all(same(a.state, b.state) for a, b in zip(on.runs, whole.runs))


def test_warnings_and_shares():
    tried = np.array([[0, 3000, 100], [0, 0, 10], [0, 0, 0]])
    accepted = np.array([[0, 0, 0], [0, 0, 5], [0, 0, 0]])
    moves = np.full((3, 4), 1000)
    told = heat_warnings("run 1", moves, moves * np.array([[1], [0], [1]]), tried, accepted)
    assert told == [
        "run 1: the chain of heat rank 1 accepted nothing",
        "run 1: the cold chain never swapped; lower the heating",
    ]
    assert swap_shares(tried, accepted) == (0.0, 0.5)
    assert np.isnan(swap_shares(0 * tried, accepted)).all()
    run = new_coupled_run(0, *made_from())
    run.coupling.swaps_tried[0, 1] = 3000
    assert warnings_of([run]) == ["run 1: the cold chain never swapped; lower the heating"]


def test_what_makes_no_sense_is_refused():
    for wrong in (
        {"n_chains": 0},
        {"n_chains": 2, "heating": -1.0},
        {"n_chains": 2, "heating": 1.7e308},
        {"n_chains": 2, "swap_every": 0},
    ):
        with pytest.raises(InputError):
            TimeSettings(**wrong)
    for alone in ({"heating": 0.2}, {"swap_every": 7}, {"swap_seed": 3}):
        with pytest.raises(InputError, match=r"of several chains(.|\n)*--chains 4"):
            TimeSettings(**alone)
