"""Rounds of reciprocal nearest neighbours: a dense one rewrites the matrix, a sparse one what merged."""

from __future__ import annotations

import numpy as np

from phloem.kernels.numba.compile import compiled
from phloem.kernels.numba.linkage_rows import combine_rows, combined, nearest_neighbour


@compiled()
def _clamped(x, y, weight_x, weight_y, n, constants):
    """x[:n] ← combined(x, y) with weights per entry."""
    one_up, tiny, cap = constants
    for q in range(n):
        low, high = min(x[q], y[q]), max(x[q], y[q])
        value = x[q] * weight_x[q] + y[q] * weight_y[q]
        x[q] = min(max(value, low * one_up + tiny), high * cap)


@compiled()
def _pair_entries(row, other, pairs, pair, weight_lower, weight_upper, constants, x, y, z, entries):
    """Distances between pair `pair` (rows `row`, `other`) and every pair: the earlier pair averages first.

    Both pairs of an entry see the same four numbers in the same order: symmetric to the last bit. x, y, z:
    scratch.
    """
    m, wa, wb = len(pairs), weight_lower[pair], weight_upper[pair]
    for q in range(m):
        entries[q], x[q] = row[pairs[q, 0]], row[pairs[q, 1]]
        y[q], z[q] = other[pairs[q, 0]], other[pairs[q, 1]]
    _clamped(entries, x, weight_lower, weight_upper, pair, constants)
    _clamped(y, z, weight_lower, weight_upper, pair, constants)
    combine_rows(entries, y, m, wa, wb, constants)
    combine_rows(x[pair:], z[pair:], m - pair, wa, wb, constants)
    _clamped(entries[pair:], x[pair:], weight_lower[pair:], weight_upper[pair:], m - pair, constants)


@compiled()
def _merge_columns(row, pairs, weight_lower, weight_upper, constants, x, y):
    """row[lower] ← combined(row[lower], row[upper]) for all pairs; x, y: scratch."""
    for q in range(len(pairs)):
        x[q], y[q] = row[pairs[q, 0]], row[pairs[q, 1]]
    _clamped(x, y, weight_lower, weight_upper, len(pairs), constants)
    for q in range(len(pairs)):
        row[pairs[q, 0]] = x[q]


@compiled()
def dense_round(
    distances, bits, slots, n, start, stop, keep, pair_of, pairs, pair_weights, stale, sizes, sums,
    constants, mask, infinity, nearest, nearest_bits,
):  # fmt: skip
    """Rewrite the rows of the kept clusters start … stop-1: merge rows and columns, drop the dead, rescan.

    distances, bits: (N, N) and its integer view; row slots[k] is cluster k, the first n columns are used.
    keep: positions of the clusters that remain; unsigned, as are pairs, which spares tests for negative
    indices. pair_of: (n,) the pair whose lower member k is, or -1.
    pairs: (m, 2) merged positions, ordered by (distance, lower, upper); pair_weights: (m, 2).
    stale, sizes: (len(keep),) whose nearest neighbour (nearest: where it went) merged, and leaves of the new
    clusters. sums: entries are sums over leaf pairs. constants: see `combined`; mask: zeros.
    A row belongs to one new cluster only, so threads may share the work by ranges of keep.
    """
    m = len(pairs)
    x, y = np.empty(m, distances.dtype), np.empty(m, distances.dtype)
    z, entries = np.empty(m, distances.dtype), np.empty(m, distances.dtype)
    weight_lower, weight_upper = pair_weights[:, 0].copy(), pair_weights[:, 1].copy()
    for i in range(start, stop):
        k = keep[i]
        row = distances[slots[k]]
        p = pair_of[k]
        if p >= 0:
            other = distances[slots[pairs[p, 1]]]
            _pair_entries(row, other, pairs, p, weight_lower, weight_upper, constants, x, y, z, entries)
            combine_rows(row, other, n, weight_lower[p], weight_upper[p], constants)
            for q in range(len(pairs)):
                row[pairs[q, 0]] = entries[q]
            row[k] = np.inf
        else:
            _merge_columns(row, pairs, weight_lower, weight_upper, constants, x, y)
        for j in range(len(keep)):
            row[j] = row[keep[j]]
        if not stale[i]:
            continue
        near = nearest[i]
        if p >= 0 or not _unmoved(row, bits[slots[k]], near, sizes, i, sums, nearest_bits[i]):
            nearest_bits[i], nearest[i] = nearest_neighbour(
                row, bits[slots[k]], mask, len(keep), infinity, sizes, sizes[i], sums
            )


@compiled()
def _unmoved(row, bits, a, sizes, k, sums, nearest_bits):
    """True if the merged cluster a is as near to cluster k as its nearest neighbour was.

    Then both members were equally near (combine never falls to the smaller of two), a the first of them, and
    nothing else came nearer: a is the nearest neighbour, and the row need not be read.
    """
    if sums:
        return np.float64(row[a] / (sizes[k] * sizes[a])).view(np.int64) == nearest_bits
    return bits[a] == nearest_bits


@compiled()
def _reciprocal_pairs(nearest, nearest_bits, alive, n, pairs):
    """Reciprocal nearest neighbours ordered by (distance, lower, upper); returns how many."""
    count = 0
    for k in range(n):
        j = nearest[k]
        if alive[k] and k < j and nearest[j] == k:
            pairs[count, 0], pairs[count, 1] = k, j
            count += 1
    order = np.argsort(nearest_bits[pairs[:count, 0]], kind="mergesort")
    pairs[:count] = pairs[:count][order]
    return count


@compiled()
def _merge_rows(distances, slots, n, pairs, weights, alive, constants):
    """Merge the rows of all pairs, their mutual entries once and mirrored; then mirror the new rows."""
    for p in range(len(pairs)):
        row, other = distances[slots[pairs[p, 0]]], distances[slots[pairs[p, 1]]]
        combine_rows(row, other, n, weights[p, 0], weights[p, 1], constants)
        row[pairs[p, 0]] = np.inf
        alive[pairs[p, 1]] = False
    for p in range(len(pairs)):
        row = distances[slots[pairs[p, 0]]]
        for q in range(p + 1, len(pairs)):
            c, d = pairs[q, 0], pairs[q, 1]
            row[c] = combined(row[c], row[d], weights[q, 0], weights[q, 1], constants)
            distances[slots[c], pairs[p, 0]] = row[c]
    for p in range(len(pairs)):
        a = pairs[p, 0]
        row = distances[slots[a]]
        for k in range(n):
            if alive[k]:
                distances[slots[k], a] = row[k]


@compiled()
def sparse_rounds(
    distances, bits, slots, n, alive, mask, sizes, weighting, constants, infinity, nearest, nearest_bits,
    dense_share, fewest_alive, merged, merged_bits,
):  # fmt: skip
    """Rounds in place until one cluster is left, a round is dense, or few columns are alive.

    weighting: 0 by size (UPGMA), 1 halves (WPGMA), 2 ones (complete linkage), 3 ones (sums over leaf pairs).
    Stops before a round of more than dense_share × n pairs, when at most fewest_alive clusters live, or if
    no two are nearest to each other, which only happens where a distance is not a number.
    merged: (n-1, 2) positions and merged_bits: (n-1,) distances are filled; returns (merges made, rounds).
    """
    made, rounds, left = 0, 0, int(alive[:n].sum())
    pairs, weights = np.empty((n, 2), np.int64), np.empty((n, 2), distances.dtype)
    touched, into = np.zeros(n, np.bool_), np.arange(n)
    while left > 1:
        m = _reciprocal_pairs(nearest, nearest_bits, alive, n, pairs)
        if m == 0 or m > dense_share * n or left <= fewest_alive:
            break
        rounds += 1
        touched[:] = False
        for p in range(m):
            a, b = pairs[p, 0], pairs[p, 1]
            merged[made, 0], merged[made, 1], merged_bits[made] = a, b, nearest_bits[a]
            made += 1
            total = sizes[a] + sizes[b]
            weights[p, 0] = sizes[a] / total if weighting == 0 else (0.5 if weighting == 1 else 1.0)
            weights[p, 1] = sizes[b] / total if weighting == 0 else (0.5 if weighting == 1 else 1.0)
            sizes[a] = total
            touched[a], touched[b] = True, True
            into[a], into[b] = a, a
            mask[b] = infinity
        left -= m
        _merge_rows(distances, slots, n, pairs[:m], weights[:m], alive, constants)
        for k in range(n):
            if not alive[k] or not (touched[k] or touched[nearest[k]]):
                continue
            s = slots[k]
            near = into[nearest[k]]
            if not touched[k] and _unmoved(
                distances[s], bits[s], near, sizes, k, weighting == 3, nearest_bits[k]
            ):
                nearest[k] = near
            else:
                nearest_bits[k], nearest[k] = nearest_neighbour(
                    distances[s], bits[s], mask, n, infinity, sizes, sizes[k], weighting == 3
                )
    return made, rounds
