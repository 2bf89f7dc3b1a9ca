"""Messages in both directions on a GPU beside the CPU's. A case has both engines (gpu, cpu), and a tree:
back, lengths, order, all three as tree, and its inner branches."""

from __future__ import annotations

import numpy as np
import pytest


def close(found, wanted, tolerance=1e-9):
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def quartets_agree(case):
    both = case.gpu, case.cpu
    for one in both:
        one.fill(*case.tree)
    found, wanted = (one.resolutions(case.back, case.lengths, case.inner[:1]) for one in both)
    close(found.values, wanted.values)
    close(found.lengths, wanted.lengths, 1e-6)
    close(found.sites, wanted.sites, 1e-6)


def lengths_end_alike(case):
    ends = []
    for engine in (case.gpu, case.cpu):
        lengths, value = case.lengths.copy(), -np.inf
        new = engine.fill(case.back, lengths, case.order)
        while new - value > 1e-6:
            value, new = new, engine.sweep(case.back, lengths, case.order)
            assert new >= value - 1e-9 * abs(value)
        np.testing.assert_array_equal(lengths, lengths[case.back])
        ends.append(new)
    assert ends[0] == pytest.approx(ends[1], abs=1e-3)
