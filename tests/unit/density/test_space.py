"""Transforms are inverse to each other; their derivatives and Jacobians against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from phloem.density.space import Block, Space
from phloem.errors import InputError

BLOCKS = [
    Block("alpha", "positive", np.array([0.7]), 1e-3, 200.0),
    Block("lengths", "positive", np.array([0.0, 0.1, 1e-5, 3.0]), 0.0, 100.0, linear_below=1e-3),
    Block("p_invariable", "unit", np.array([0.2]), 0.0, 0.9999),
    Block("age", "interval", np.array([2.0, 6.9]), 1.5, 7.0),
    Block("slope", "real", np.array([-3.0, 0.0]), -np.inf, np.inf),
    Block("frequencies", "simplex", np.array([0.1, 0.2, 0.3, 0.4]), 1e-6, 1.0),
    Block("omega", "simplex", np.array([0.25, 0.75]), 1e-6, 1.0),
    Block("codons", "simplex", np.arange(1, 62) / 1891.0, 1e-6, 1.0),
]
SPACE = Space(tuple(BLOCKS))
STEP = 1e-6


def point(space: Space, seed: int, chains: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (H, m) around the start, and their natural values (H, n)."""
    y = space.to_coordinates(space.inside(space.start()))
    y = y + np.random.default_rng(seed).uniform(0.0, 0.5, (chains, len(y)))
    return y, space.from_coordinates(y)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.name)
def test_there_and_back(block):
    space = Space((block,))
    y, x = point(space, 1)
    np.testing.assert_allclose(space.to_coordinates(x), y, rtol=1e-9, atol=1e-12)
    assert y.shape[1] == space.n_coordinates == block.size - (block.support == "simplex")
    if block.support == "simplex":
        np.testing.assert_allclose(x.sum(1), 1.0, rtol=1e-14)


def natural_differences(space: Space, y: np.ndarray) -> np.ndarray:
    """(n, m) dx/dy at one point, by central differences."""
    step = STEP * np.eye(len(y))
    return np.array(
        [(space.from_coordinates(y + h) - space.from_coordinates(y - h)) / (2 * STEP) for h in step]
    ).T


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.name)
def test_derivatives_pulled_back(block):
    space = Space((block,))
    y, x = point(space, 2, chains=1)
    gradient = np.random.default_rng(3).normal(size=x.shape)
    numeric = gradient[0] @ natural_differences(space, y[0])
    found = space.pull_back(x, gradient)[0]
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-8)
    assert not np.allclose(2 * found, numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: b.name)
def test_log_jacobian(block):
    """The log-determinant of dx/dy; of a simplex, of its first k-1 entries."""
    space = Space((block,))
    y, x = point(space, 4, chains=1)
    j = natural_differences(space, y[0])[: space.n_coordinates]
    assert space.log_jacobian(x)[0] == pytest.approx(np.linalg.slogdet(j)[1], rel=1e-6, abs=1e-6)
    step = STEP * np.eye(space.n_coordinates)
    value = space.log_jacobian
    numeric = [
        (value(space.from_coordinates(y[0] + h)) - value(space.from_coordinates(y[0] - h))) / (2 * STEP)
        for h in step
    ]
    np.testing.assert_allclose(space.log_jacobian_gradient(x)[0], numeric, rtol=1e-6, atol=1e-6)


def test_a_jacobian_without_its_constant_is_seen():
    space = Space((BLOCKS[5],))
    y, x = point(space, 4, chains=1)
    j = natural_differences(space, y[0])[:3]
    assert np.log(x[0]).sum() != pytest.approx(np.linalg.slogdet(j)[1], rel=1e-6, abs=1e-6)


def test_blocks_lie_one_after_another_and_chains_are_rows():
    y, x = point(SPACE, 5)
    assert x.shape == (3, SPACE.size) and y.shape == (3, SPACE.n_coordinates) == (3, SPACE.size - 3)
    np.testing.assert_allclose(SPACE.to_coordinates(x), y, rtol=1e-9, atol=1e-12)
    values = SPACE.unpack(x)
    np.testing.assert_array_equal(values["age"], x[:, SPACE.place("age")])
    one = SPACE.unpack(x[0])
    np.testing.assert_array_equal(SPACE.pack(one), x[0])
    whole = SPACE.pull_back(x, np.ones_like(x))
    for block, at in zip(BLOCKS, np.split(whole, SPACE.coordinate_offsets[1:-1], axis=1)):
        alone = Space((block,))
        natural = x[:, SPACE.place(block.name)]
        np.testing.assert_allclose(at, alone.pull_back(natural, np.ones_like(natural)), rtol=1e-14)
    parts = sum(Space((b,)).log_jacobian(x[:, SPACE.place(b.name)]) for b in BLOCKS)
    np.testing.assert_allclose(SPACE.log_jacobian(x), parts, rtol=1e-13)


def test_values_near_the_edge_keep_every_digit_and_those_outside_are_moved_in():
    space = Space((BLOCKS[2], BLOCKS[5]))
    x = np.array([1e-30, 1e-40, 0.25, 0.25, 0.5])
    np.testing.assert_allclose(space.from_coordinates(space.to_coordinates(x)), x, rtol=1e-12)
    moved = space.inside(np.array([0.0, 0.0, 0.25, 0.25, 0.5]))
    assert moved[0] == 1e-8 and moved[1] == pytest.approx(1e-12)
    assert np.isfinite(space.to_coordinates(moved)).all()
    low, high = SPACE.coordinate_bounds().T
    y = SPACE.to_coordinates(SPACE.inside(SPACE.start()))
    assert (low <= y).all() and (y <= high).all() and SPACE.bounds().shape == (SPACE.size, 2)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: Space((BLOCKS[0], BLOCKS[0])), "two blocks are called 'alpha'"),
        (lambda: Block("x", "positive", np.ones(1), 0.0, 1.0), "must be above 0"),
        (lambda: Block("x", "real", np.ones(1), 1.0, 1.0), "leave no room"),
        (lambda: Block("x", "real", np.ones(2), 0.0, 1.0, ("one",)), "1 names for 2 numbers"),
        (lambda: SPACE.block("beta"), "no block 'beta'"),
        (lambda: SPACE.pack({"alpha": 1.0}), "block 'lengths' has no value"),
        (lambda: Space((BLOCKS[0],)).pack({"alpha": [1.0, 2.0]}), "has 1 numbers, not 2"),
    ],
)
def test_what_makes_no_space_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()
