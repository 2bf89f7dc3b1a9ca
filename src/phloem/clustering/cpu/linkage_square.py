"""Linkage one merge at a time in half a square, in one call: the fastest way for some thousand taxa.

The greedy order of the reference, to the last bit. Row i answers for the pairs (i, j) with j > i: bound[i]
never exceeds their smallest distance, since a merge brings nobody nearer than both its members were; where
the nearest one has merged and moved away it is unknown (-1), and the row is read again only once its bound is
the smallest of all (Müllner 2011, generic algorithm; without a heap, as the smallest of n integers is a few
vector instructions).

The rows of the two that merge take up their columns in their unused halves, before the diagonal: everything a
merge does but reading and writing these columns is then a pass over contiguous numbers.

Distances are non-negative and compared as integers, since their bits order as the numbers do. What lies
beyond the clusters, up to whole blocks, is masked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.clustering.cpu.forms import CONDENSED, entry_of
from phloem.clustering.cpu.linkage_rounds import (
    COMPLETE,
    ROWS_BLOCK,
    UPGMA,
    WPGMA,
    Rule,
    are_whole,
    block_of,
    combined,
    count,
    extremes,
    first_lowest,
)
from phloem.hardware.numba_compile import compiled


class Square(NamedTuple):
    """distances, bits: n rows of `width` numbers, one after the other, and their integer view.

    What counts is after the diagonal; before it are numbers of any kind. infinity: its bits.
    """

    distances: np.ndarray
    bits: np.ndarray
    n: int
    width: int
    infinity: int


class Clusters(NamedTuple):
    """names: (n,) smallest leaves; sizes: (n,) leaves; mask: 0, or infinity's bits where a cluster has merged
    into another; bound, nearest: of a row's pairs, see above."""

    names: np.ndarray
    sizes: np.ndarray
    mask: np.ndarray
    bound: np.ndarray
    nearest: np.ndarray


def row_width(n: int) -> int:
    """Numbers a row of the square takes: whole blocks and a cache line, so that columns use all the cache."""
    return ROWS_BLOCK * -(-n // ROWS_BLOCK) + 8


@compiled
def _fill(given, form, square):
    """The rows from distances in any form; a negative zero becomes zero."""
    distances, n, width = square.distances, np.uint64(square.n), np.uint64(square.width)
    one, tile = np.uint64(1), np.uint64(8)
    for i in range(n):
        for k in range(block_of(i), i + one):  # here and in the padding, which is read in whole blocks:
            distances[i * width + k] = 0  # numbers, and none that are slow to add
        for k in range(n, width):
            distances[i * width + k] = 0
        if form == CONDENSED:
            start = entry_of(form, n, i + one, i) - i - one if i + one < n else np.uint64(0)
            for k in range(i + one, n):
                distances[i * width + k] = given[start + k] + 0
    if form != CONDENSED:
        for top in range(np.uint64(0), n, tile):
            for left in range(np.uint64(0), top + one, tile):
                for i in range(top, min(top + tile, n)):
                    for j in range(left, min(left + tile, i)):
                        distances[j * width + i] = given[entry_of(form, n, i, j)] + 0


@compiled
def _extremes(square):
    """Bits of the smallest, the smallest positive and the largest distance."""
    found = square.infinity, square.infinity, square.infinity * 0
    for i in range(square.n):
        at = i * square.width
        found = extremes(square.bits, at + i + 1, at + square.n, found)
    return found


@compiled
def _is_unit(square, unit):
    for i in range(square.n):
        at = i * square.width
        if not are_whole(square.distances, unit, at + i + 1, at + square.n):
            return False
    return True


@compiled
def _count_units(square, positive, largest):
    """Distances in their unit if they have one (reference.linkage.counting_unit); returns it, or 0."""
    n = square.n
    for unit in (1.0, positive):
        if largest / unit * (n * n / 4) < 2.0**52 and _is_unit(square, unit):
            for i in range(n):
                at = i * square.width
                count(square.distances, unit, at + i + 1, at + n)
            return unit
    return 0.0


@compiled
def _take_up_column(distances, width, i):
    """What is before the diagonal of row i."""
    at, i = np.uint64(i * width), np.uint64(i)
    for k in range(i):
        distances[at + k] = distances[k * np.uint64(width) + i]


@compiled
def _write_column(distances, width, i):
    at, i = np.uint64(i * width), np.uint64(i)
    for k in range(i):
        distances[k * np.uint64(width) + i] = distances[at + k]


@compiled
def _mean_bits(distances, start, sizes, size, first, last, means):
    """means[first:last] ← bits of a row's sums divided by how many pairs they are over."""
    for k in range(first, last):
        means[k] = np.float64(distances[start + k] / (size * sizes[k])).view(np.int64)


@compiled
def _nearest_after(values, start, mask, i, m, infinity):
    """(distance as bits, place) of the first closest of the clusters i+1 … m-1, from values[start …]."""
    best, begin, end = infinity, block_of(i + 1), block_of(m + ROWS_BLOCK - 1)
    for k in range(begin, end):
        value = max(values[start + k], mask[k])
        best = min(best, value if np.int64(k) > i else infinity)
    place = m
    for k in range(begin, end):
        here = (max(values[start + k], mask[k]) == best) & (np.int64(k) > i)
        place = min(place, np.int64(k) if here else m)
    return best, place


@compiled
def _unite(distances, at_a, at_b, m, weights, constants):
    """Row a ← distances of the union of a and b."""
    for k in range(block_of(m + ROWS_BLOCK - 1)):
        x, y = distances[at_a + k], distances[at_b + k]
        distances[at_a + k] = combined(x, y, weights[0], weights[1], constants)


@compiled
def _compare(values, start, mask, bound, nearest, a, b):
    """Rows before a compare their bounds with the union's distances (bits); those before b have lost b."""
    for k in range(np.uint64(a)):
        value, near = max(values[start + k], mask[k]), nearest[k]
        nearer, equal = value < bound[k], value == bound[k]
        touched = (near == a) | (near == b) | (equal & (a < near))
        bound[k] = min(value, bound[k])
        nearest[k] = a if nearer | (touched & equal) else (-1 if touched else near)
    for k in range(np.uint64(a + 1), np.uint64(b)):
        nearest[k] = -1 if nearest[k] == b else nearest[k]


@compiled
def _close_ranks(square, clusters, m):
    """Clusters that are left move to the first places; returns how many they are."""
    distances, width, infinity = square.distances, np.uint64(square.width), square.infinity
    names, sizes, mask, bound, nearest = clusters
    keep, place = np.flatnonzero(mask[:m] == 0), np.full(m + 1, -1)
    place[keep] = np.arange(len(keep))
    for p in range(len(keep)):
        i = keep[p]
        old, new = np.uint64(i) * width, np.uint64(p) * width
        for q in range(np.uint64(p + 1), np.uint64(len(keep))):
            distances[new + q] = distances[old + np.uint64(keep[q])]
        names[p], sizes[p], bound[p], mask[p] = names[i], sizes[i], bound[i], 0
        nearest[p] = place[nearest[i]]
    mask[len(keep) :], bound[len(keep) :] = infinity, infinity
    return len(keep)


@compiled
def _merge(square, rule, lower, upper, level):
    """Merge the closest pair until one cluster is left."""
    distances, bits, n, width, infinity = square
    m = left = n
    end, weights, no_row = block_of(n + ROWS_BLOCK - 1), np.ones(2, distances.dtype), np.uint64(0)
    names, sizes, mask = np.arange(n), np.ones(end), np.full(end, infinity)
    bound, nearest, means = np.full(end, infinity), np.empty(n, np.int64), np.empty(end, bits.dtype)
    mask[:n] = 0
    for i in range(n):
        bound[i], nearest[i] = _nearest_after(bits, np.uint64(i * width), mask, i, n, infinity)
    for made in range(n - 1):
        a = first_lowest(bound, m, infinity)
        while nearest[a] < 0:
            at, end = np.uint64(a * width), block_of(m + ROWS_BLOCK - 1)
            if rule.sums:
                _mean_bits(distances, at, sizes, sizes[a], block_of(a), end, means)
                bound[a], nearest[a] = _nearest_after(means, no_row, mask, a, m, infinity)
            else:
                bound[a], nearest[a] = _nearest_after(bits, at, mask, a, m, infinity)
            a = first_lowest(bound, m, infinity)
        b = nearest[a]
        lower[made], upper[made], level[made] = names[a], names[b], bound[a]
        total = sizes[a] + sizes[b]
        if rule.method == UPGMA and not rule.sums:
            weights[0], weights[1] = sizes[a] / total, sizes[b] / total
        elif rule.method == WPGMA:
            weights[:] = 0.5
        at, end = np.uint64(a * width), block_of(m + ROWS_BLOCK - 1)
        _take_up_column(distances, width, a)
        _take_up_column(distances, width, b)
        _unite(distances, at, np.uint64(b * width), m, (weights[0], weights[1]), rule.constants)
        _write_column(distances, width, a)
        sizes[a], mask[b], bound[b], nearest[b] = total, infinity, infinity, -1
        if rule.sums:
            _mean_bits(distances, at, sizes, total, no_row, end, means)
            _compare(means, no_row, mask, bound, nearest, a, b)
            bound[a], nearest[a] = _nearest_after(means, no_row, mask, a, m, infinity)
        else:
            _compare(bits, at, mask, bound, nearest, a, b)
            bound[a], nearest[a] = _nearest_after(bits, at, mask, a, m, infinity)
        left -= 1
        if 3 * left < 2 * m and m > ROWS_BLOCK:
            m = _close_ranks(square, Clusters(names, sizes, mask, bound, nearest), m)


@compiled
def merge_all(given, form, n, method, rows, lower, upper, distance):
    """Merge the closest pair until one cluster is left; returns the smallest and the largest distance's bits.

    Nothing is merged where these are below zero or not below infinity (NaN is beyond either). given:
    one-dimensional, of n taxa in a form (cpu.forms). rows: (n, row_width(n)) integers of the distances' size,
    overwritten. lower, upper, distance: (n-1,) of clustering.merges.
    """
    bits = rows.reshape(-1)
    infinity = np.full(1, np.inf, given.dtype).view(bits.dtype)[0]
    square = Square(bits.view(given.dtype), bits, n, rows.shape[1], infinity)
    _fill(given, form, square)
    found = np.array(_extremes(square), bits.dtype)
    if found[0] < 0 or found[2] >= infinity:
        return found[0], found[2]
    unit, info = 0.0, np.finfo(given.dtype)
    if given.itemsize == 8 and method != COMPLETE:
        _, positive, largest = found.view(given.dtype)
        unit = _count_units(square, np.float64(positive), np.float64(largest))
    sums = unit > 0 and method == UPGMA
    limits = np.array([0.0, 0.0, 2.0] if sums else [1 + info.eps, info.tiny, 1.0]).astype(given.dtype)
    level = np.empty(n - 1, bits.dtype)
    _merge(square, Rule(method, sums, (limits[0], limits[1], limits[2]), infinity), lower, upper, level)
    distance[:] = level.view(given.dtype)
    if unit > 0:
        distance *= unit
    return found[0], found[2]
