"""Neighbour joining, exact with one lower bound a row, and simultaneous joining in rounds.

Row i answers for the pairs (i, j) with j < i: lower_bound[i] never exceeds their smallest
q_ij = d_ij - u_i - u_j. When a join changes every u by Δ, no q of row i falls by more than Δ_i + max Δ,
whatever the matrix; the one new column is compared directly. Only rows whose bound is below the best q found
are read.

Rounds (reference.joining.simultaneous_joining): each function does a range of rows or pairs; cluster i of n
is row slots[i] of the matrix and column i of its first n columns.
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled

INFINITE_BITS = np.int64(0x7FF0000000000000)


@compiled
def _lowest_shifted(row, shift, n):
    """Smallest of row[:n] + shift[:n], all non-negative, so that bit patterns order as the numbers do."""
    best = INFINITE_BITS
    for j in range(n):
        value = np.float64(row[j] + shift[j]).view(np.int64)
        best = value if value < best else best
    return np.int64(best).view(np.float64)


@compiled
def _place_of(row, shift, n, target):
    """First j with row[j] + shift[j] == target."""
    for j in range(n):
        if row[j] + shift[j] == target:
            return j
    return 0


@compiled
def row_sums(distances, slots, n, sums):
    """sums[i] = Σ_j d_ij over the first n columns, diagonal zero, in float64."""
    for i in range(n):
        row = distances[slots[i]]
        parts = np.zeros(16)
        for j in range(0, n - n % 16, 16):
            for k in range(16):
                parts[k] += row[j + k]
        total = parts.sum()
        for j in range(n - n % 16, n):
            total += row[j]
        sums[i] = total


@compiled
def _exact_bounds(distances, slots, n, u, shift, offset, lower_bound):
    for i in range(n):
        lower_bound[i] = _lowest_shifted(distances[slots[i]], shift, i) - offset - u[i]


@compiled
def _closest(distances, slots, n, u, shift, offset, lower_bound):
    """The pair of smallest q: (lower, upper, rows read)."""
    i = np.argmin(lower_bound[:n])
    value = _lowest_shifted(distances[slots[i]], shift, i)
    best = value - offset - u[i]
    lower_bound[i], upper, at = best, i, value
    read = 1
    for i in range(n):
        if lower_bound[i] < best:
            value = _lowest_shifted(distances[slots[i]], shift, i)
            lower_bound[i] = value - offset - u[i]
            read += 1
            if lower_bound[i] < best:
                best, upper, at = lower_bound[i], i, value
    return _place_of(distances[slots[upper]], shift, upper, at), upper, read


@compiled
def _first_of_four(distances, slots, n, u, alive):
    """Among four clusters complementary pairs tie: the best pair that holds the first cluster."""
    last = np.flatnonzero(alive[:n])
    first, best, upper = last[0], np.inf, last[1]
    for j in last[1:]:
        q = distances[slots[first], j] - u[first] - u[j]
        if q < best:
            best, upper = q, j
    return first, upper, 1


@compiled
def _unweighted_difference(x, y, alive, sizes, leaves, a, b):
    """Half of what a is farther from the rest than b, where every leaf counts once (UNJ)."""
    total = 0.0
    for j in range(len(alive)):
        if alive[j] and j != a and j != b:
            total += sizes[j] * (np.float64(x[j]) - np.float64(y[j]))
    return total / (2 * (leaves - sizes[a] - sizes[b]))


@compiled
def _bionj_share(variances, slots, n, alive, a, b, left):
    """BIONJ's λ, and the variances of the joined cluster written as row and column a."""
    x, y = variances[slots[a]], variances[slots[b]]
    ab = np.float64(x[b])
    share = 0.5
    if ab > 0:
        excess = 0.0
        for j in range(n):
            if alive[j] and j != a and j != b:
                excess += np.float64(y[j]) - np.float64(x[j])
        share = min(max(0.5 + excess / (2 * (left - 2) * ab), 0.0), 1.0)
    for j in range(n):
        x[j] = share * x[j] + (1 - share) * y[j] - share * (1 - share) * ab
    for j in range(n):
        if alive[j]:
            variances[slots[j], a] = x[j]
    return share


@compiled
def _join_rows(distances, slots, alive, a, b, share, constant, sums):
    """Row and column a become the joined cluster's distances, the mean of both less a constant.

    sums follow. Returns the smallest distance.
    """
    n, x, y = len(alive), distances[slots[a]], distances[slots[b]]
    x[a] = y[a]
    for j in range(n):
        old_x, old_y = np.float64(x[j]), np.float64(y[j])
        x[j] = share * old_x + (1 - share) * old_y - constant
        sums[j] += np.float64(x[j]) - old_x - old_y
    x[a] = 0.0
    total, lowest = 0.0, 0.0
    for j in range(n):
        if alive[j]:
            distances[slots[j], a] = x[j]
            total += x[j]
            lowest = min(lowest, np.float64(x[j]))
    sums[a] = total
    return lowest


@compiled
def _update_bounds(row, alive, a, left, lowest, sums, bounds):
    """New bounds (u, shift, lower_bound) after a join whose row is `row`; returns the offset of shift."""
    (u, shift, lower_bound), n = bounds, len(alive)
    largest_change, largest_u = -np.inf, -np.inf
    scale = 1.0 / (left - 2)
    for j in range(n):
        if alive[j]:
            largest_change = max(largest_change, sums[j] * scale - u[j]) if j != a else largest_change
            largest_u = max(largest_u, sums[j] * scale)
    offset = largest_u - lowest
    for j in range(n):
        new_u = sums[j] * scale
        lower_bound[j] -= new_u - u[j] + largest_change
        u[j] = new_u
        shift[j] = offset - new_u if alive[j] else np.inf
    for j in range(a + 1, n):
        lower_bound[j] = min(lower_bound[j], row[j] - u[j] - u[a])
    lower_bound[a] = _lowest_shifted(row, shift, a) - offset - u[a]
    for j in range(n):
        lower_bound[j] = lower_bound[j] if alive[j] else np.inf
    return offset


@compiled
def _drop_dead(matrix, slots, n, keep):
    for i in range(len(keep)):
        row = matrix[slots[keep[i]]]
        for j in range(len(keep)):
            row[j] = row[keep[j]]


@compiled
def join_all(distances, variances, slots, names, sizes, lowest, method, pairs, lengths):
    """Join until three clusters are left.

    distances: (N, N), row slots[i] is cluster i, the first n = len(slots) columns are used, zero diagonal;
    overwritten. variances: the same for BIONJ, else (1, 1). lowest: 0, or the smallest distance if negative.
    method: 0 NJ, 1 BIONJ, 2 UNJ. pairs, lengths: (n-3, 2), filled with names joined and branch lengths.
    Returns (positions of the last three, their slots, their names, rows read).
    """
    n = left = len(slots)
    leaves = sizes.sum()
    sums, u, shift, lower_bound = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    alive = np.ones(n, np.bool_)
    row_sums(distances, slots, n, sums)
    u[:] = sums / max(left - 2, 1)
    offset = u.max() - lowest
    shift[:] = offset - u
    _exact_bounds(distances, slots, n, u, shift, offset, lower_bound)
    read = n
    for step in range(n - 3):
        if left == 4:
            a, b, scanned = _first_of_four(distances, slots, n, u, alive)
        else:
            a, b, scanned = _closest(distances, slots, n, u, shift, offset, lower_bound)
        read += scanned
        x, y = distances[slots[a]], distances[slots[b]]
        half = (u[a] - u[b]) / 2
        if method == 2:
            half = _unweighted_difference(x, y, alive, sizes, leaves, a, b)
        above_a, above_b = np.float64(x[b]) / 2 + half, np.float64(x[b]) / 2 - half
        share = 0.5
        if method == 1:
            share = _bionj_share(variances, slots, n, alive, a, b, left)
        elif method == 2:
            share = sizes[a] / (sizes[a] + sizes[b])
        pairs[step, 0], pairs[step, 1] = names[a], names[b]
        lengths[step, 0], lengths[step, 1] = above_a, above_b
        alive[b] = False
        left -= 1
        sizes[a] += sizes[b]
        constant = share * above_a + (1 - share) * above_b
        lowest = min(lowest, _join_rows(distances, slots, alive, a, b, share, constant, sums))
        offset = _update_bounds(x, alive, a, left, lowest, sums, (u, shift, lower_bound))
        if 4 * left < 3 * n and left > 3:
            keep = np.flatnonzero(alive)
            _drop_dead(distances, slots, n, keep)
            if method == 1:
                _drop_dead(variances, slots, n, keep)
            slots, names, sizes = slots[keep], names[keep], sizes[keep]
            sums, u, shift, lower_bound = sums[keep], u[keep], shift[keep], lower_bound[keep]
            n = left
            alive = np.ones(n, np.bool_)
    last = np.flatnonzero(alive)
    return last, slots[last], names[last], read


SHORT = 64  # entries compared before a refuted pair is given up


@compiled
def nearest_rows(distances, slots, n, shift, begin, end, partner, lowest):
    """partner[i]: first j of smallest d_ij + shift_j (no such sum is negative), lowest[i]: that sum."""
    for i in range(begin, end):
        row = distances[slots[i]]
        left = _lowest_shifted(row, shift, i)
        right = _lowest_shifted(row[i + 1 :], shift[i + 1 :], n - i - 1)
        if left <= right:
            partner[i], lowest[i] = _place_of(row, shift, i, left), left
        else:
            partner[i], lowest[i] = i + 1 + _place_of(row[i + 1 :], shift[i + 1 :], n - i - 1, right), right


@compiled
def _is_deepest(row, seen, n, i, j, r, value):
    """Whether no k but i, j, r has d_ik - d_kr below value."""
    for start in range(0, n, SHORT):
        lowest = np.inf
        for k in range(start, min(start + SHORT, n)):
            difference = np.float64(row[k]) - np.float64(seen[k])
            lowest = difference if difference < lowest and k != i and k != j and k != r else lowest
        if lowest < value:
            return False
    return True


@compiled
def confirm_pairs(distances, slots, n, lower, upper, references, begin, end, confirmed):
    """confirmed[p]: whether some reference sees lower[p] and upper[p] as each other's deepest relatives."""
    for p in range(begin, end):
        i, j = lower[p], upper[p]
        x, y = distances[slots[i]], distances[slots[j]]
        ij = np.float64(x[j])
        for r in references:
            if r != i and r != j:
                seen = distances[slots[r]]
                if _is_deepest(x, seen, n, i, j, r, ij - np.float64(seen[j])) and _is_deepest(
                    y, seen, n, i, j, r, ij - np.float64(seen[i])
                ):
                    confirmed[p] = True
                    break


@compiled
def average_rows(distances, slots, n, lower, upper, ab, begin, end):
    """Row lower[p] becomes the mean of the pair's rows less half the distance within the pair."""
    for p in range(begin, end):
        x, y = distances[slots[lower[p]]], distances[slots[upper[p]]]
        for k in range(n):
            x[k] = (np.float64(x[k]) + np.float64(y[k]) - ab[p]) / 2


@compiled
def average_columns(distances, slots, stays, other, within, begin, end, sums):
    """Rows of the clusters that stay get the columns that stay, averaged with column `other` where it is ≥ 0.

    within: distance within each such pair. slots: of the clusters that stay. sums: Σ_j of the new row.
    Returns the smallest entry.
    """
    lowest = 0.0
    for i in range(begin, end):
        row, total = distances[slots[i]], 0.0
        for j in range(len(stays)):
            value = np.float64(row[stays[j]])
            if other[j] >= 0:
                value = (value + np.float64(row[other[j]]) - within[j]) / 2
            row[j] = value if i != j else 0.0
            total += np.float64(row[j])
            lowest = min(lowest, np.float64(row[j]))
        sums[i] = total
    return lowest
