"""Leapfrog steps on a device: the same as one at a time in NumPy with the reference's gradients."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.conftest import LATER, steps
from gpu.random_problems import random_case
from gpu.test_forest import Chain, forest_of
from gpu.test_forest_gradient import compare, reference


def one_at_a_time(problem, chain, p, step, inverse_mass, n):
    """(chain at the end, momenta, reflections)."""
    chain, reflected = chain.copy(), 0
    shape = chain.lengths.shape
    g = reference(problem, chain).reshape(shape)
    for _ in range(n):
        p = p + step / 2 * g
        q = chain.lengths + step * inverse_mass * p
        p = np.where(q < 0, -p, p)
        reflected += (q < 0).sum()
        chain.lengths = np.abs(q)
        g = reference(problem, chain).reshape(shape)
        p = p + step / 2 * g
    return chain, p, reflected


@pytest.mark.parametrize(
    "size, mixture, lazy",
    [((6, 30, 4, 2), (1, 1), True), pytest.param((5, 20, 4, 3), (2, 2), False, marks=LATER)],
)
def test_steps_are_those_of_numpy(size, mixture, lazy, poisoned):
    rng, case = np.random.default_rng(3), random_case(*size, invariant=0.1)
    problem, n_nodes = case.problem, 2 * size[0] - 1
    chains = [Chain(size[0], size[2], size[3], rng, mixture) for _ in range(3)]
    forest = forest_of(problem, chains, lazy)
    shape = (3, mixture[1], n_nodes)
    momenta, inverse_mass = rng.normal(size=shape) * 3, rng.uniform(0.5, 2.0, shape)
    momenta[..., -1] = 0.0
    step, mask, reflected = np.array([0.02, 0.01, 0.03]), np.array([True, False, True]), 0
    before = forest.values()
    last = steps(4, 2)
    for n in (1, last):
        leap = forest.gradients.leapfrog.run(momenta, step, inverse_mass, n, mask)
        for h in np.flatnonzero(mask):
            own = (momenta[h], inverse_mass[h])
            p, mass = (x.reshape(chains[h].lengths.shape) for x in own)
            end, p, more = one_at_a_time(problem, chains[h], p, step[h], mass, n)
            reflected += more
            assert abs(leap.values[h] / end.reference(problem) - 1) < 1e-10
            assert np.allclose(leap.momenta[h].reshape(p.shape), p, rtol=1e-8, atol=1e-8 * np.abs(p).max())
            wrong, *_ = one_at_a_time(problem, chains[h], momenta[h].reshape(p.shape), step[h], mass, n + 1)
            assert abs(leap.values[h] / wrong.reference(problem) - 1) > 1e-6  # control: a step too many
            if n == last:
                chains[h] = end
        assert leap.values[1] == before[1] and not leap.momenta[1].any()
        forest.settle(mask & (n == last))
    assert reflected > 0
    assert np.allclose(forest.values(), [c.reference(problem) for c in chains], rtol=1e-10)
    compare(forest, problem, chains, np.ones(3, bool), 1e-8)


def test_what_is_pending_is_not_moved():
    rng, case = np.random.default_rng(1), random_case(5, 20, 4, 1)
    chain = Chain(5, 4, 1, rng)
    forest = forest_of(case.problem, [chain])
    forest.set_branch(0, 2, 0.3)
    forest.evaluate()
    zeros = np.zeros((1, 1, 9))
    with pytest.raises(RuntimeError, match="pending"):
        forest.gradients.leapfrog.run(zeros, np.ones(1), zeros, 2, np.ones(1, bool))
