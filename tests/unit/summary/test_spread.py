from __future__ import annotations

import numpy as np
import pytest

from phloem.summary.spread import evenly_spread


@pytest.mark.parametrize(
    ("first", "end", "most", "rows"),
    [
        (0, 5, 9, [0, 1, 2, 3, 4]),
        (2, 12, 4, [2, 5, 8, 11]),
        (3, 9, 2, [3, 8]),
        (3, 9, 1, [3]),
        (3, 4, 2, [3]),
        (0, 0, 5, []),
    ],
)
def test_rows_are_evenly_spread(first, end, most, rows):
    found = evenly_spread(first, end, most)
    assert found.tolist() == rows and found.dtype == np.int64


def test_as_many_as_are_asked_for():
    """So that rows of several runs can be stacked."""
    for end in range(1, 80):
        assert [len(evenly_spread(0, end, n)) for n in range(end + 1)] == list(range(end + 1))
