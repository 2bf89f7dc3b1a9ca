"""How hot chains are: as told; or hot now and then to begin with, then as usual unless neighbours swapped
too seldom; after three quarters of the tuning nothing changes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from phloem.inference.mcmc import heating
from phloem.inference.mcmc.checkpoint import Checkpoint
from phloem.inference.mcmc.heating import (
    LEAST_SWAPS,
    MELTING,
    SET,
    USUAL,
    first_powers,
    in_cycle,
    ladder,
    learn_powers,
    moved,
)
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.structure import ChainModel, structure_of_model
from phloem.model.grammar import parse_model
from statistical.mcmc.prior_sampling import no_data

TUNING = 20_000


def short(**more) -> ChainSettings:
    return ChainSettings(n_runs=1, generations=40_000, sample_every=100, tuning_generations=TUNING, **more)


def made(settings: ChainSettings, *begin) -> Run:
    """Of five taxa and a few sites, under JC."""
    structure: ChainModel = structure_of_model(parse_model("JC", datatype="dna"))
    return new_run(0, no_data(5), structure, settings, *begin)


def settled(dimension: int, wrong: bool = False) -> tuple[np.ndarray, float]:
    """Inverse temperatures after 4,000 looks at chains of a normal distribution, and the share of swaps then.
    wrong: the look is at the chains in another order."""
    rng, powers, usual = np.random.default_rng(1), ladder(USUAL, 4), ladder(USUAL, 4)

    def drawn() -> np.ndarray:
        found = -rng.gamma(dimension / 2, 1.0, 4) / powers
        return found[::-1] if wrong else found

    for look in range(1, 4_000):
        powers = moved(powers, usual, drawn(), 4.0 / (look + 20.0))
    swaps = [np.exp(np.minimum(0, -np.diff(powers) * np.diff(drawn()))) for _ in range(4_000)]
    return powers, float(np.mean(swaps))


def test_many_numbers_bring_temperatures_together():
    """Of 2,000 numbers hardly any swap would be accepted at the usual temperatures."""
    powers, swaps = settled(2_000)
    assert abs(swaps - LEAST_SWAPS) < 0.03
    assert (powers > ladder(USUAL, 4) + 1e-3)[1:].all() and (np.diff(powers) < 0).all()


def test_few_numbers_leave_them_as_they_are():
    powers, swaps = settled(10)
    np.testing.assert_allclose(powers, ladder(USUAL, 4), atol=0.01)
    assert swaps > 0.7


def test_chains_taken_for_each_other_are_noticed():
    """Planted: hot chains for cold ones. Swaps then seem too frequent where they are too rare."""
    powers, _ = settled(2_000, wrong=True)
    np.testing.assert_allclose(powers, ladder(USUAL, 4), atol=0.01)


def test_chains_melt_and_set_and_are_frozen():
    """Five times in half of the tuning, hot for 800 generations of 2,000; splits are noted afterwards."""
    settings = short(seed=3)
    run, hot, looks = made(settings), [], []
    for _ in range(TUNING // 2 // 50):
        hot.append(run.state.powers[1] == ladder(MELTING, 4)[1])
        assert hot[-1] or (run.state.powers == ladder(USUAL, 4)).all()
        run = advanced(run, 50)
        looks.append(int(run.state.split_looks[0]))
    assert hot == ([True] * 16 + [False] * 24) * 5
    assert looks[:29] == [0] * 27 + [4, 4] and looks[-1] == 4 * 31
    assert in_cycle(settings, 1399) < SET <= in_cycle(settings, 1400) and in_cycle(settings, TUNING // 2) == 1
    run = advanced(run, TUNING // 4)
    frozen = run.state.powers.copy()
    assert (frozen >= ladder(USUAL, 4) - 1e-12).all() and frozen[0] == 1
    run = advanced(run, TUNING)
    np.testing.assert_array_equal(run.state.powers, frozen)
    np.testing.assert_array_equal(run.data.heat, np.column_stack([frozen, frozen, 0 * frozen]))


@pytest.mark.parametrize(
    "given", [{"heating": 0.3}, {"use_data": False}, {"stones": 2}, {"n_chains": 1}, {"heating": 0.1}]
)
def test_what_is_told_holds_and_a_prior_or_stones_learn_nothing(given):
    settings = short(**given)
    told = ladder(given.get("heating", USUAL), settings.n_chains)
    np.testing.assert_array_equal(first_powers(settings), told)
    run = advanced(made(settings), 2_000)
    np.testing.assert_array_equal(run.state.powers, told)


def test_what_was_learnt_is_in_the_checkpoint(tmp_path):
    """A run that was killed between two looks goes on with the same temperatures, bit for bit."""
    settings = short(seed=4)
    whole = advanced(made(settings), 11_400)
    part = advanced(made(settings), 10_310)
    Checkpoint(str(tmp_path / "a"), {}).save([part])
    ((state, samples),) = Checkpoint(str(tmp_path / "a"), {}).load()
    resumed = advanced(made(settings, state, samples), 11_400 - 10_310)
    for name in ("powers", "rank", "rng", "log_likelihood", "split_sums", "cumulative"):
        np.testing.assert_array_equal(getattr(resumed.state, name), getattr(whole.state, name), err_msg=name)
    np.testing.assert_array_equal(resumed.samples.numbers, whole.samples.numbers)


def test_nothing_is_learnt_after_that():
    """A look after three quarters of the tuning."""
    state = SimpleNamespace(powers=ladder(USUAL, 4), generation=np.array([TUNING * 3 // 4]))
    rows = np.column_stack([np.arange(4.0), [0.0, -1e3, -2e3, -3e3]])
    learn_powers(state, short(), rows)
    assert (state.powers[1:] > ladder(USUAL, 4)[1:]).all()
    frozen = state.powers.copy()
    state.generation[0] += heating.EVERY
    learn_powers(state, short(), rows)
    np.testing.assert_array_equal(state.powers, frozen)
