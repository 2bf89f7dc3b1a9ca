"""What chains learn while moves adapt, and that they learn nothing afterwards."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import polygamma

from phloem.inference.mcmc.learning import ALIKE, EVERY, coordinates, learn, looked_at
from phloem.inference.mcmc.records import OF_INTERVAL, OF_MANY, OF_POSITIVE, OF_REAL, OF_SIMPLEX, Joint
from phloem.inference.mcmc.run import advanced, new_run
from phloem.inference.mcmc.settings import ChainSettings
from statistical.mcmc.prior_sampling import gtr, no_data

JOINT = Joint(
    np.array([0, 3, 5, 6]), np.array([3, 2, 1, 1]), np.array([OF_SIMPLEX, OF_POSITIVE, OF_INTERVAL, OF_REAL]),
    np.array([[1e-6, 1.0], [1e-3, 200.0], [0.0, 2.0], [-50.0, 50.0]]), np.eye(9), np.zeros(4),
    np.zeros(9), 1.0, np.array([0, 1, 2, 2, 2]),
)  # fmt: skip
N_LOOKS = 290
LENGTHS = np.array([[0.1, 0.2, 0.7, 0.0, 0.0]])


def test_coordinates_are_unbounded_and_in_the_order_of_the_blocks():
    values = np.array([0.2, 0.3, 0.5, 2.0, 3.0, 0.5, -4.0])
    found = coordinates(SimpleNamespace(joint=JOINT), values, LENGTHS)
    assert np.allclose(found, [*np.log([0.4, 0.6, 2.0, 3.0, 1 / 3]), -4.0, *np.log([0.1, 0.2, 0.7])])


def looks(heat: float, n: int):
    """After n looks at one chain, and the coordinates it had."""
    rng, d = np.random.default_rng(1), 9
    data = SimpleNamespace(joint=JOINT, heat=np.array([[heat, heat, 0.0]]))
    state = SimpleNamespace(
        slot=np.zeros(1, int), rank=np.zeros(1, int), values=np.zeros((1, 2, 7)), mean=np.zeros((1, d)),
        lengths=np.zeros((1, 2, 1, 5)), looks=np.zeros(1, int), covariance=np.zeros((d, d)), factor=np.eye(d),
        wander=np.zeros(4),
    )  # fmt: skip
    seen = []
    for _ in range(n):
        shares, common = rng.dirichlet(np.full(3, 9.0)), rng.normal()
        state.values[0, 0] = [*shares, *np.exp(common + 0.1 * rng.normal(size=2)), rng.uniform(0, 2), common]
        state.lengths[0, 0] = rng.exponential(size=(1, 5))
        seen.append(coordinates(data, state.values[0, 0], state.lengths[0, 0]))
        learn(data, state, looked_at(data, state))
    return state, np.array(seen)


def weighted(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of looks, the k-th of which counts k times."""
    k = np.arange(1, len(seen) + 1)
    return np.average(seen, axis=0, weights=k), np.cov(seen.T, aweights=k, ddof=0)


def test_mean_covariance_and_factor_are_those_of_what_was_seen():
    state, seen = looks(1.0, N_LOOKS)
    mean, wanted = weighted(seen)
    assert np.allclose(state.mean[0], mean) and np.allclose(state.covariance, wanted)
    share = 9 / (9 + N_LOOKS / ALIKE)
    mixed = (1 - share) * wanted + np.diag(share * np.diag(wanted))
    assert np.allclose(state.factor @ state.factor.T, mixed, atol=1e-8)
    assert abs(state.covariance[2, 3]) > 0.5  # control: something varies together
    assert not np.allclose(state.mean[0], seen.mean(0), atol=1e-3)  # control: looks do not count alike


def test_heated_chains_count_less():
    state, seen = looks(0.5, N_LOOKS)
    assert np.allclose(state.covariance, 0.5 * weighted(seen)[1])


@pytest.mark.parametrize("weights", [None, {"alpha_multiplier": 1}])
def test_nothing_is_learnt_after_the_tuning_nor_without_the_move(weights):
    settings = ChainSettings(
        use_data=False, n_runs=1, n_chains=2, generations=4000, sample_every=100, tuning_generations=1010,
        move_weights=weights,
    )  # fmt: skip
    run = advanced(new_run(0, no_data(5), gtr(), settings), 1200)
    assert run.state.looks[0] == (500 // EVERY if weights is None else 0)  # of the first half
    before = run.state.factor.copy()
    run = advanced(run, 2000)
    assert np.array_equal(before, run.state.factor)
    assert (weights is None) == (not np.array_equal(before, 0.1 * np.eye(len(before))))


def test_shares_of_many_vary_one_by_one():
    """Of shares that gamma variables make, what is learnt is the variance of each and next to nothing between
    them; without τ it is much."""
    rng, shape = np.random.default_rng(2), np.array([40.0, 2.0, 3.0, 20.0, 1.5, 9.0])
    joint = Joint(
        np.zeros(1, np.int64), np.array([6]), np.array([OF_MANY]), np.array([[1e-9, 1.0]]), np.eye(7),
        np.ones(1), np.zeros(7), 1.0, np.zeros(5, np.int64),
    )  # fmt: skip
    data = SimpleNamespace(joint=joint, heat=np.array([[1.0, 1.0, 0.0]]))
    state = SimpleNamespace(
        slot=np.zeros(1, int), rank=np.zeros(1, int), values=np.zeros((1, 2, 6)), mean=np.zeros((1, 7)),
        lengths=np.ones((1, 2, 1, 5)), looks=np.zeros(1, int), covariance=np.zeros((7, 7)), factor=np.eye(7),
        wander=np.ones(1),
    )  # fmt: skip
    for _ in range(4000):
        state.values[0, 0] = rng.dirichlet(shape)
        learn(data, state, looked_at(data, state))
    found, apart = (state.factor @ state.factor.T)[:6, :6], ~np.eye(6, dtype=bool)
    assert np.allclose(np.diag(found), polygamma(1, shape), rtol=0.15)
    scale = np.sqrt(np.outer(np.diag(found), np.diag(found)))
    assert np.abs(found / scale)[apart].max() < 0.1
    without = np.corrcoef(np.log(rng.dirichlet(shape, 4000)).T)
    assert np.abs(without)[apart].max() > 0.15
    assert state.wander[0] == pytest.approx(shape.sum() ** -0.5, rel=0.1)
