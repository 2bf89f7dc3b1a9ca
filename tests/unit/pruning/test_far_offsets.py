"""Messages that lie past 2³¹ entries: offsets have 64 bits. Memory is addressed, hardly any of it used."""

from __future__ import annotations

import mmap
import resource
import sys

import numpy as np
import pytest

from phloem.pruning.calibration import equal_rates, sample_problem
from phloem.pruning.cpu.evaluator import CpuEvaluator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory that is addressed only is Linux's")
_NORESERVE = 0x4000
FAR = 1 << 31


def addressed(blocks: int, entries: int, kind: str) -> np.ndarray:
    """(blocks, entries) zeros that take memory where they are written to."""
    size = blocks * entries * np.dtype(kind).itemsize
    there = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    return np.frombuffer(there, kind).reshape(blocks, entries)


def far_away(problem) -> CpuEvaluator:
    """An evaluator whose inner nodes have their messages past 2³¹ entries."""
    evaluator = CpuEvaluator(problem, 1)
    store, n_tips = evaluator._messages, len(problem.tip_codes)
    width, blocks = store.shape.width, store.shape.blocks
    rows, own = -(-FAR // width), store.regions.rows
    store.regions.start[n_tips:] += rows
    store.regions.rows += rows
    room = rows + 3 * own  # and of what a proposal changes
    store.values = addressed(blocks, room * width, "f8")
    store.q = addressed(blocks, room * width, "f8")
    store.exponents = addressed(blocks, room * store.shape.exponents, "i4")
    return evaluator


@pytest.mark.parametrize("n_states", [4, 20])
def test_offsets_have_64_bits(n_states):
    problem, model = sample_problem(n_states, "float64", 50, 4), equal_rates(n_states, 4)
    n_nodes = 2 * len(problem.tip_codes) - 1
    lengths = np.random.default_rng(1).exponential(0.1, n_nodes)
    near, far = CpuEvaluator(problem, 1).gradient(lengths, model, True), far_away(problem)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = far.gradient(lengths, model, True)
    assert found.log_likelihood == near.log_likelihood
    assert np.array_equal(found.branch_lengths, near.branch_lengths)
    changed = lengths * np.where(np.arange(n_nodes) == 3, 2.0, 1.0)
    assert far.propose(changed, np.array([3])) != near.log_likelihood
    far.reject()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB, of 34 GiB and more
    store, x = far._messages, n_nodes - 2
    assert store.regions.start[x] * store.shape.width > FAR
    assert store.values[0, store.regions.start[x] * store.shape.width :].any()
    store.regions.start[x] = store.regions.start[x - 1]  # planted: two nodes' offsets are one, as if cut off
    assert far.gradient(lengths, model, True).log_likelihood != near.log_likelihood
