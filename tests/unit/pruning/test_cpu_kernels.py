"""Single CPU kernels against their reference twins."""

from __future__ import annotations

import numpy as np
import pytest

from oracle.small_problems import eigensystem, random_model, random_topology, with_process
from phloem.model import transition as reference_transition
from phloem.pruning.cpu.column_classes import column_classes
from phloem.pruning.cpu.eigenbasis import (
    enter_block_four,
    enter_block_padded,
    needs_partials,
    project_node,
    sum_projected,
)
from phloem.pruning.cpu.matrix_product import ROWS, product
from phloem.pruning.cpu.model_numbers import _packed, model_numbers
from phloem.pruning.cpu.records import Operand
from phloem.pruning.cpu.storage import eigen_scratch, shape_of_sizes
from phloem.pruning.reference import recursion as reference


@pytest.mark.parametrize("t, p, s", [(2, 1, 2), (3, 63, 4), (64, 1000, 4), (257, 63, 20), (5, 1000, 61)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_column_classes_are_the_reference_ones(t, p, s, dtype):
    rng = np.random.default_rng([t, p, s])
    left, right = random_topology(rng, t)
    codes = rng.integers(0, s + 1, (t, p)).astype(dtype)
    got = column_classes(left, right, codes)
    expected = reference.column_classes(left, right, codes)
    for name in ("left", "right", "offset", "left_class", "right_class", "pattern_column"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-13), (np.float32, 1e-5)])
@pytest.mark.parametrize("rows, columns, inner", [(1, 16, 1), (6, 64, 61), (13, 48, 5), (48, 112, 122)])
@pytest.mark.parametrize("transposed", [False, True])
def test_product(dtype, tolerance, rows, columns, inner, transposed):
    rng = np.random.default_rng([rows, columns, inner])
    whole = -(-rows // ROWS) * ROWS
    a, b = rng.random((whole, inner)).astype(dtype), rng.random((inner, columns)).astype(dtype)
    old = rng.random((whole, columns)).astype(dtype)
    flat = (a.T if transposed else a).reshape(-1).copy()
    steps = (1, whole) if transposed else (inner, 1)
    for more in (False, True):
        c = old.copy().reshape(-1)
        right, out = Operand(b.reshape(-1), 0, columns, 1), Operand(c, 0, columns, 1)
        product(Operand(flat, 0, *steps), right, out, rows, columns, inner, more)
        expected = a.astype(float) @ b.astype(float) + more * old
        np.testing.assert_allclose(c.reshape(whole, -1)[:rows], expected[:rows], rtol=tolerance)


@pytest.mark.parametrize("s", [2, 4, 20, 61])
@pytest.mark.parametrize("equal_rates", [False, True])
def test_rate_matrix_adjoint(s, equal_rates):
    """Equal rates give eigenvalues that are all the same but one: every divided difference is a tie."""
    rng = np.random.default_rng(s)
    model = random_model(rng, s, (0.1, 1.7))
    if equal_rates:
        q = (np.ones((s, s)) - s * np.eye(s)) / (s - 1)
        f = np.full(s, 1 / s)
        model = with_process(model, rate_matrix=q, root_frequencies=f, frequencies=f, eigen=eigensystem(q, f))
    lengths = np.array([0.0, 1e-8, 0.01, 4.0, 0.3, 19.0, 0.0])
    adjoint = rng.normal(size=(6, 2, s, s))
    (expected,) = reference_transition.rate_matrix_adjoints(adjoint, lengths[:-1], model)
    shape = shape_of_sizes(s, 2, "float64", lanes=4)
    numbers, p = model_numbers(model, shape), reference_transition.transition_matrices(lengths, model)
    tasks, left, from_messages = [], [], []  # the last: (node, block)
    for block in range(shape.blocks):
        for x in range(6):
            outer = np.swapaxes(adjoint[x], 1, 2)
            if x > 3 and not needs_partials(x, block, lengths[None], numbers, shape):
                outer = p[x] @ outer
                from_messages.append((x, block))
            tasks += [(x, 0, 1, block), (x, 1, 2, block)]  # two tasks: what they leave is summed
            left += [0.3 * _packed(outer, shape)[block], 0.7 * _packed(outer, shape)[block]]
    nodes = [x for x, _ in from_messages]
    assert 4 in nodes and nodes.count(5) < shape.blocks
    got, room = np.zeros((1, 16 if s == 4 else shape.matrix)), eigen_scratch(shape)
    order, adjoints = np.array(tasks, np.int64), np.concatenate(left)
    for task in range(1, len(tasks), 2):  # whichever of a node's tasks comes last
        x, _, _, block = tasks[task]
        (enter_block_four if s == 4 else enter_block_padded)(block, numbers, shape, room)
        short = (x, block) in from_messages
        first = project_node(order, task, adjoints, lengths[None], numbers, shape, room, short)
        assert first == task - 1
    sum_projected(order, adjoints, 6, numbers, shape, room, got)
    got = got.reshape(-1, shape.padded)[:s, :s]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
