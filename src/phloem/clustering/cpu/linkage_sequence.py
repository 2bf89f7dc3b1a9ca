"""Linkage one merge at a time, where few clusters are each other's nearest (Müllner 2011, generic algorithm).

Cluster i answers for the pairs with the clusters before it, a contiguous row. bound[i] never exceeds their
smallest distance, since a merge brings nobody nearer than both its members were; where the nearest one has
merged and moved away the row is stale, and is read again only once its bound is the smallest of all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.clustering.cpu.forms import row_start, triangle_row
from phloem.clustering.cpu.linkage_rounds import UPGMA, WPGMA, combined, lowest, mean_bits, nearest_before
from phloem.hardware.numba_compile import compiled

ROWS = 256


class Clusters(NamedTuple):
    """triangle, bits: entries and their integer view. mask: (n,) zero, or infinity's bits where a cluster has
    merged into another; sizes: (n,) leaves. bound, nearest, stale: of the clusters before each, see above.
    means: (n,) scratch."""

    triangle: np.ndarray
    bits: np.ndarray
    mask: np.ndarray
    sizes: np.ndarray
    bound: np.ndarray
    nearest: np.ndarray
    stale: np.ndarray
    means: np.ndarray


@compiled()
def _read_row(clusters, rule, k):
    """Cluster k's bound becomes exact."""
    c = clusters
    c.bound[k], c.nearest[k] = nearest_before(
        triangle_row(c.triangle, k), triangle_row(c.bits, k), c.mask, k, rule, c.sizes, c.sizes[k], c.means
    )
    c.stale[k] = False


@compiled()
def _closest(clusters, rule, n):
    """(lower, upper) of the closest pair, of equals the first by lower, then upper."""
    bound, nearest, stale = clusters.bound, clusters.nearest, clusters.stale
    while True:
        best = lowest(bound, n, rule.infinity)
        a, b, j = n, n, 0
        while j < n:
            stop, hits = min(j + 64, n), 0
            for k in range(j, stop):
                hits += bound[k] == best
            if hits > 0:
                for k in range(j, stop):
                    if bound[k] == best and stale[k]:
                        _read_row(clusters, rule, k)
                    if bound[k] == best and nearest[k] < a:
                        a, b = nearest[k], k
            j = stop
        if b < n:
            return a, b


@compiled()
def _merge(triangle, n, a, b, weights, constants, x, y):
    """Distances of the union of a and b in a's place; those from clusters after a are left in x too.

    A column is one number a cache line: those of a few rows are read, combined and written while the lines
    are in the cache.
    """
    (weight_a, weight_b), row, other = weights, triangle_row(triangle, a), triangle_row(triangle, b)
    for k in range(a):
        row[k] = combined(row[k], other[k], weight_a, weight_b, constants)
    for first in range(a + 1, n, ROWS):
        last, after_b = min(first + ROWS, n), max(first, b + 1)
        at = row_start(first) + np.uint64(a)
        for k in range(first, last):
            x[k] = triangle[at]
            at += np.uint64(k)
        for k in range(first, min(last, b)):
            y[k] = other[k]
        at = row_start(after_b) + np.uint64(b)
        for k in range(after_b, last):
            y[k] = triangle[at]
            at += np.uint64(k)
        for k in range(first, last):
            x[k] = combined(x[k], y[k], weight_a, weight_b, constants)
        at = row_start(first) + np.uint64(a)
        for k in range(first, last):
            triangle[at] = x[k]
            at += np.uint64(k)


@compiled()
def _take_column(column, n, a, b, clusters):
    """Clusters after a compare their bound with the union's distance column[k] (bits); b is gone."""
    mask, bound, nearest, stale = clusters.mask, clusters.bound, clusters.nearest, clusters.stale
    j = a + 1
    while j < n:
        stop, hits = min(j + 64, n), 0
        for k in range(j, stop):
            value, near = max(column[k], mask[k]), nearest[k]
            hits += (value < bound[k]) | ((value == bound[k]) & (a < near)) | (near == a) | (near == b)
        if hits > 0:
            for k in range(j, stop):
                value = max(column[k], mask[k])
                if value < bound[k]:
                    bound[k], nearest[k], stale[k] = value, a, False
                elif nearest[k] == a or nearest[k] == b or (value == bound[k] and a < nearest[k]):
                    if value == bound[k] and not stale[k]:
                        nearest[k] = a
                    else:
                        stale[k] = True
        j = stop


@compiled()
def merge_in_sequence(clusters, rule, n, fewest, x, merged, merged_bits):
    """Merge the closest pair until `fewest` clusters live; returns how many merges were made.

    clusters: all alive, nothing stale, bounds exact. x: (n,) scratch of the entries' type. merged: (≥ n-1, 2)
    positions, merged_bits their distances. b's mask becomes infinity's bits when b merges into a.
    """
    c, x_bits, y = clusters, x.view(clusters.bits.dtype), np.empty(n, x.dtype)
    weights = np.empty(2, x.dtype)
    for made in range(n - fewest):
        a, b = _closest(clusters, rule, n)
        merged[made, 0], merged[made, 1], merged_bits[made] = a, b, c.bound[b]
        total = c.sizes[a] + c.sizes[b]
        if rule.method == UPGMA and not rule.sums:
            weights[0], weights[1] = c.sizes[a] / total, c.sizes[b] / total
        else:
            weights[:] = 0.5 if rule.method == WPGMA else 1.0
        _merge(c.triangle, n, a, b, (weights[0], weights[1]), rule.constants, x, y)
        c.sizes[a] = total
        c.mask[b], c.bound[b], c.nearest[b], c.stale[b] = rule.infinity, rule.infinity, -1, False
        if rule.sums:
            mean_bits(x, n, c.sizes, total, c.means)
            _take_column(c.means, n, a, b, clusters)
        else:
            _take_column(x_bits, n, a, b, clusters)
        _read_row(clusters, rule, a)
    return n - fewest
