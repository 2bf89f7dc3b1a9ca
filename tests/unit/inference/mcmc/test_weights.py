"""How often moves are tried: what is noted of them, what follows, and that nothing changes afterwards."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from phloem.inference.mcmc.learning import of_numbers
from phloem.inference.mcmc.records import (
    JUMP_UNIT,
    LOOKS,
    MEAN,
    OF_TOPOLOGY,
    PROPOSALS,
    SQUARES,
    STATISTICS,
    WORK,
)
from phloem.inference.mcmc.run import Run, advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from phloem.inference.mcmc.weights import (
    LEAST_OF_TOPOLOGY,
    LEAST_SHARE,
    best_shares,
    cumulative_shares,
    learn_weights,
    mixing_rates,
    not_starved,
    nothing_seen,
    watch,
)
from phloem.pruning.cpu.column_classes import tip_keys
from statistical.mcmc.prior_sampling import gtr, no_data

N_TIPS, TUNING = 5, 8000


def chains(**settings) -> Run:
    usual = {"use_data": False, "n_runs": 1, "n_chains": 2, "sample_every": 100, "tuning_generations": TUNING}
    return new_run(0, no_data(N_TIPS), gtr(), ChainSettings(**(usual | settings)))


# What is noted ---------------------------------------------------------------------------------------------


def looked_at(run: Run) -> tuple[np.ndarray, set[int]]:
    """The statistics of the only chain, and the keys of its splits."""
    state, slot = run.state, run.state.slot[0]
    lengths, keys = state.lengths[0, slot], [*tip_keys(N_TIPS).tolist(), *([0] * (N_TIPS - 1))]
    for x in state.order[0, slot]:
        if x >= N_TIPS:
            keys[x] = (keys[state.left[0, slot, x]] + keys[state.right[0, slot, x]]) % 2**64
    numbers = of_numbers(run.data, state.values[0, slot])
    shares = lengths[0] / lengths.sum()
    return np.concatenate([numbers, [np.log(lengths.sum())], shares]), set(keys[N_TIPS:-1])


def noted_and_seen(run: Run, n: int) -> tuple[np.ndarray, np.ndarray]:
    """What the chain noted in n generations, one by one, and what whoever looks at it saw."""
    noted, seen = np.zeros_like(run.state.jumps), np.zeros_like(run.state.jumps)
    for _ in range(n):
        before, tried = run.state.jumps.copy(), run.state.tried[0].copy()
        statistics, splits = looked_at(run)
        watched = run.state.watched.copy()
        run = advanced(run, 1)
        move = int(np.argmax(run.state.tried[0] - tried))
        jump, changed = looked_at(run)[0] - statistics, looked_at(run)[1] ^ splits
        noted += run.state.jumps - before
        seen[move, PROPOSALS] += 1
        jump, inner = jump[: -(N_TIPS - 1)], jump[-(N_TIPS - 1) :]
        inner = inner * (run.data.moves.on[move] != OF_TOPOLOGY)
        jump = np.append(jump**2, inner @ inner) / JUMP_UNIT
        seen[move, STATISTICS : STATISTICS + len(jump)] += jump
        seen[move, STATISTICS + len(jump) :] += np.isin(watched, np.array(sorted(changed), np.uint64))
    return noted, seen


def agree(noted: np.ndarray, seen: np.ndarray) -> bool:
    """Whole units are cut off below."""
    found, wanted = np.delete(noted, WORK, axis=1), np.delete(seen, WORK, axis=1)
    return bool(np.all(np.abs(found - wanted) <= noted[:, [PROPOSALS]] + 1e-6 * wanted))


def test_what_is_noted_is_what_moves_do():
    run = advanced(chains(n_chains=1, sample_every=1), 400)
    noted, seen = noted_and_seen(run, 500)
    assert agree(noted, seen)
    names = [move.name for move in run.moves]
    n = noted.shape[1] - len(run.state.watched)
    assert noted[names.index("nni"), n:].sum() > 5 and noted[names.index("alpha_multiplier"), n:].sum() == 0
    assert (noted[:, PROPOSALS] > 0).all()
    inner = noted[:, n - 1]  # of lengths of inner branches
    assert inner[names.index("branch_multiplier")] > 0 == inner[names.index("nni")]
    for row, column in (
        (names.index("nni"), n),
        (0, n - 1),
        (0, STATISTICS + 9),
        (names.index("spr"), PROPOSALS),
    ):
        wrong = seen.copy()
        wrong[row, column] += 600.0  # control: a jump too many
        assert not agree(noted, wrong)


def test_work_grows_with_what_a_move_changes():
    run = advanced(chains(n_chains=1, use_data=True, tuning_generations=200_000), 40_000)
    names, jumps = [move.name for move in run.moves], run.state.jumps
    work = dict(zip(names, jumps[:, WORK] / jumps[:, PROPOSALS]))
    assert work["branch_multiplier"] < work["tree_multiplier"] and work["spr"] < work["parsimony_spr"]
    assert (
        work["branch_multiplier"] < work["alpha_multiplier"] == pytest.approx(work["joint_normal"], rel=0.2)
    )


def test_a_look_at_the_cold_chain():
    """Means and squares of statistics, and of splits whether they are there, from the first look on."""
    rng, d = np.random.default_rng(1), 2
    state = SimpleNamespace(**nothing_seen(3, N_TIPS, d)._asdict())
    n = d + N_TIPS + 1
    drawn = rng.normal(size=(50, n))
    keys = rng.choice(np.array([2**63 + 1, 7, 2**40], np.uint64), size=(50, 1))
    keys = np.hstack([keys, np.full((50, N_TIPS - 3), 99, np.uint64)])
    for row, own in zip(drawn, keys):
        halves = [own >> np.uint64(32), own & np.uint64(2**32 - 1)]
        watch(state, np.stack([np.zeros(n + 2 * (N_TIPS - 2)), np.concatenate([row, *halves])]))
    assert np.all(state.seen[LOOKS] == 50) and np.allclose(state.seen[MEAN, :n], drawn.mean(0))
    assert np.allclose(state.seen[SQUARES, :n], ((drawn - drawn.mean(0)) ** 2).sum(0))
    frequency = {int(k): f for k, f in zip(state.watched, state.seen[MEAN, n:]) if k}
    assert frequency == pytest.approx({int(k): (keys == k).any(1).mean() for k in np.unique(keys)})


# What follows from it --------------------------------------------------------------------------------------


def slopes(u: np.ndarray, rates: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """-d/du of Σ α / r², over its value: 2 for every share that is free at the optimum, less where it is at
    its least."""
    mixing = u @ rates
    return 2 * np.sum(weights * rates / mixing**3, axis=1) / np.sum(weights / mixing**2)


def test_shares_are_the_best_ones():
    rng = np.random.default_rng(2)
    rates, weights = rng.exponential(size=(6, 9)) ** 3, rng.uniform(0.1, 1, 9)
    rates[:, 4] = [0, 0, 0.2, 0, 0, 0]  # one statistic that only one move changes
    least = np.full(6, 0.05)
    u = best_shares(rates, weights, np.ones(6), least)
    free, slope = u > least + 1e-9, slopes(u, rates, weights)
    assert u.sum() == pytest.approx(1.0) and (u >= least - 1e-12).all() and 1 < free.sum() < 6
    assert np.ptp(slope[free]) < 1e-3 and slope[~free].max() < slope[free].min()
    control = slopes(np.full(6, 1 / 6), rates, weights)
    assert np.ptp(control) > 0.1


def test_a_move_that_brings_nothing_falls_to_its_least_share():
    """Two moves of numbers, one useless; and topology moves where no split comes or goes. Inner branches have
    a quarter of the tree, and so a third of the variance of the tips' shares."""
    d, looks = 2, 100
    state = SimpleNamespace(parent=np.zeros((1, 2, 2 * N_TIPS - 1)), **nothing_seen(3, N_TIPS, d)._asdict())
    state.seen[LOOKS], state.seen[SQUARES] = looks, looks - 1.0
    state.seen[MEAN, d + N_TIPS] = 0.25
    jumps, of_topology = state.jumps, np.array([False, False, True])
    jumps[:, PROPOSALS], jumps[:, WORK] = 1000, 1e6
    jumps[0, STATISTICS : STATISTICS + d + N_TIPS + 1] = 100 / JUMP_UNIT
    rates, weights = mixing_rates(state, jumps, of_topology)
    assert rates.shape == (3, d + 2) and weights.tolist() == [0.5, 0.5, 1.0, 1.0]
    assert rates[0, -1] == pytest.approx(rates[0, 0] * 3 / N_TIPS)
    least = np.array([LEAST_SHARE, LEAST_SHARE, LEAST_OF_TOPOLOGY]) / 3
    assert best_shares(rates, weights, np.ones(3), least)[1:] == pytest.approx(least[1:])
    state.seen[MEAN, d + N_TIPS + 1] = (
        0.5  # a split that is there half of the time, and was never seen to change
    )
    rates, weights = mixing_rates(state, jumps, of_topology)
    assert rates.shape == (3, d + 3) and rates[:, -1].tolist() == [0.0, 0.0, pytest.approx(2.0 / 1e6)]
    assert best_shares(rates, weights, np.ones(3), least)[2] > 0.5
    jumps[1, [PROPOSALS, WORK]] = 0  # a move that was not tried has what is left to it
    state.cumulative = np.zeros(3)
    learn_weights(state, np.ones(3), of_topology, jumps.copy())
    assert state.cumulative[1] - state.cumulative[0] == pytest.approx(LEAST_SHARE / 3)


def shares_of_topology(changes: int, kept: bool) -> np.ndarray:
    """Of a move of numbers, a blind one of the topology that often changes a split, and one that does so a
    given number of times, and may know splits; of work."""
    d, looks = 2, 100
    state = SimpleNamespace(parent=np.zeros((1, 2, 2 * N_TIPS - 1)), **nothing_seen(3, N_TIPS, d)._asdict())
    state.seen[LOOKS], state.seen[SQUARES], state.cumulative = looks, looks - 1.0, np.zeros(3)
    first = d + N_TIPS + 1  # split
    state.seen[MEAN, [first - 1, first]] = 0.25, 0.5
    state.jumps[:, PROPOSALS], state.jumps[:, WORK] = 1000, 1e6
    state.jumps[0, STATISTICS : STATISTICS + first] = 100 / JUMP_UNIT
    state.jumps[1:, STATISTICS + first] = 40, changes
    learn_weights(state, np.ones(3), np.arange(3) > 0, state.jumps.copy(), np.array([False, False, kept]))
    return np.diff(state.cumulative, prepend=0.0)


def test_moves_that_know_splits_keep_at_least_their_usual_work():
    """What they do for modes of several splits happens too seldom to be learnt."""
    assert shares_of_topology(1, kept=False)[2] == pytest.approx(LEAST_OF_TOPOLOGY / 3)  # the control
    assert shares_of_topology(1, kept=True)[2] == pytest.approx(1 / 3)


def test_what_is_not_starved_knows_splits():
    run = chains()
    kept = dict(zip([move.name for move in run.moves], not_starved(run.data).tolist()))
    assert kept["learnt_nni"] and kept["learnt_tbr"] and not kept["nni"] and not kept["branch_multiplier"]


def test_chains_that_stood_still_teach_nothing():
    parent = np.zeros((1, 2, 2 * N_TIPS - 1))
    state = SimpleNamespace(parent=parent, **nothing_seen(3, N_TIPS, 2)._asdict())
    state.cumulative, state.seen[LOOKS] = np.array([0.2, 0.4, 1.0]), 100
    state.jumps[:, PROPOSALS], state.jumps[:, WORK] = 1000, 1e6
    learn_weights(state, np.ones(3), np.array([False, False, True]), state.jumps.copy())
    assert state.cumulative.tolist() == [0.2, 0.4, 1.0] and not state.jumps.any()


def test_the_last_of_the_sums_is_one():
    assert cumulative_shares(np.full(7, 0.1))[-1] == 1.0


# When ------------------------------------------------------------------------------------------------------


def test_shares_are_learnt_twice_and_then_stay():
    run, seen = chains(), []
    usual = run.state.cumulative.copy()
    for at in range(0, 10_000, 1000):
        seen.append((at, run.state.cumulative.copy()))
        if at == TUNING // 4 * 3:  # what was learnt is the least that moves keep, and would be learnt again
            run.state.cumulative[:] = usual
            seen.append((at, usual))
        run = advanced(run, 1000)
    changed = [at for (at, now), (_, then) in zip(seen[1:], seen) if not np.array_equal(now, then)]
    assert changed == [TUNING // 2, TUNING // 4 * 3, TUNING] and np.array_equal(seen[0][1], usual)
    shares = np.diff(run.state.cumulative, prepend=0.0)
    assert (shares > 0).all() and run.state.cumulative[-1] == 1.0
    assert not run.state.jumps.any()  # nothing is noted after the tuning


@pytest.mark.parametrize("settings", [{"usual_weights": True}, {"tuning_generations": 2000}])
def test_they_stay_where_that_is_asked_for_or_little_was_seen(settings):
    run = chains(**settings)
    usual = run.state.cumulative.copy()
    assert np.array_equal(advanced(run, TUNING).state.cumulative, usual)


def test_weights_that_are_given_and_stones_stay_as_they_are():
    assert ChainSettings().learns_weights
    assert not ChainSettings(move_weights={"nni": 1.0}).learns_weights
    assert not ChainSettings(stones=10, generations=1_000_000).learns_weights


def test_a_resumed_run_learns_the_same():
    whole = advanced(chains(), TUNING + 500).state
    state = advanced(chains(), 5300).state
    again = new_run(0, no_data(N_TIPS), gtr(), chains().settings, state._replace())
    assert np.array_equal(advanced(again, TUNING + 500 - 5300).state.cumulative, whole.cumulative)
    state = advanced(chains(), 5300).state
    state.jumps[0, STATISTICS] *= 3.0  # control: what is noted matters
    state.jumps[0, WORK] *= 3.0
    again = new_run(0, no_data(N_TIPS), gtr(), chains().settings, state)
    assert not np.array_equal(advanced(again, TUNING + 500 - 5300).state.cumulative, whole.cumulative)
