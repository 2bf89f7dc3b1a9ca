"""Distances in any form become the same triangle."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.spatial.distance import squareform

from phloem.clustering.arrays import equal_areas, packed, taxa_of
from phloem.data.distance_matrix import DistanceTriangle, entries_in_square, new_entries


def square(n, dtype=np.float64):
    upper = np.triu(np.random.default_rng(n).random((n, n)).astype(dtype), 1)
    return upper + upper.T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 3, 31, 32, 33, 200])
def test_square_condensed_and_triangle(n, dtype):
    d = square(n, dtype)
    entries = d[np.tril_indices(n, -1)]
    taxa = tuple(map(str, range(n)))
    with ThreadPoolExecutor(2) as workers:
        for form in (d, d.T, squareform(d, checks=False), DistanceTriangle(taxa, entries.copy())):
            assert taxa_of(form) == n
            found = packed(form, False, workers)
            np.testing.assert_array_equal(found, entries)
            form_memory = form.entries if isinstance(form, DistanceTriangle) else form
            assert not np.shares_memory(found, form_memory)
        inside = packed(d, True, workers)
    np.testing.assert_array_equal(inside, entries)
    assert np.shares_memory(inside, d)
    if n > 3:
        assert not np.array_equal(squareform(square(n, dtype), checks=False), entries)


@pytest.mark.parametrize("n", [1, 2, 5, 700])
@pytest.mark.parametrize("allocate", [entries_in_square, new_entries])
def test_a_triangle_becomes_the_square(n, allocate):
    d = square(n)
    entries = allocate(n, "float64")
    entries[:] = d[np.tril_indices(n, -1)]
    matrix = DistanceTriangle(tuple(map(str, range(n))), entries, "file", {"x": 1}).matrix()
    np.testing.assert_array_equal(matrix.values, d)
    assert (matrix.source, matrix.settings) == ("file", {"x": 1})
    assert np.shares_memory(matrix.values, entries) == (allocate is entries_in_square and n > 1)


def test_distances_between_groups():
    d = square(20)
    triangle = DistanceTriangle(tuple(map(str, range(20))), d[np.tril_indices(20, -1)])
    a, b = np.array([3, 19, 0]), np.array([7, 1])
    np.testing.assert_array_equal(triangle.between(a, b), d[np.ix_(a, b)])


def test_ranges_of_rows_have_equal_areas():
    edges = equal_areas(100, 1000, 4)
    areas = np.diff(np.square(edges))
    assert edges[0] == 100 and edges[-1] == 1000 and areas.max() < 1.02 * areas.min()
