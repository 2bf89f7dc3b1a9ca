"""What the linkage kernels keep of every cluster, and the entries of merged ones."""

from __future__ import annotations

import triton
import triton.language as tl

# What the linkage kernels keep of every cluster, beside the matrix.
#
# state: (FIELDS, N) int32, one row a field. reals: (REALS, N) in the matrix's precision. sizes: (2, N)
# float64, leaves of a cluster. alive: (2, N) uint8. "2 rows" (+ side): old and new, where the matrix is
# rewritten. A cluster's place is its column. Places are in no order; names (smallest leaves) decide between
# equals. N ≥ columns of the matrix + 16.


NEAREST = tl.constexpr(0)  # place of the nearest neighbour (2 rows)
SLOT = tl.constexpr(2)  # row of the matrix (2 rows)
NAME = tl.constexpr(4)  # smallest leaf (2 rows)
MATE = tl.constexpr(6)  # place of the cluster it merges with in this round, or -1
KEEP = tl.constexpr(7)  # places that stay when the matrix is rewritten
KEEP_MATE = tl.constexpr(8)  # their mates, or -1
STALE = tl.constexpr(9)  # places to scan again
PAIR = tl.constexpr(10)  # this round's pairs: lower places
OTHER = tl.constexpr(11)  # and upper places
LOWER = tl.constexpr(12)  # lower names of all merges so far
INTO = tl.constexpr(13)  # by name: the smaller name that it merged with
ZEROS = tl.constexpr(14)  # zeros in a row
TWINS = tl.constexpr(15)  # identical rows that come later
QUEUE = tl.constexpr(16)  # number of the pair whose lower member a cluster is
FIELDS = 17

DISTANCE = tl.constexpr(0)  # to the nearest neighbour (2 rows)
MERGED = tl.constexpr(2)  # distances of all merges so far
WEIGHT_LOWER = tl.constexpr(3)  # weights of the members, by pair, or by kept place in a rewriting round
WEIGHT_UPPER = tl.constexpr(4)
HEIGHT = tl.constexpr(5)  # distance between the members, by kept place
SECOND = tl.constexpr(6)  # no cluster but the nearest neighbour is nearer than this (2 rows)
HEIGHT_INTO = tl.constexpr(8)  # by name: how far the one that it merged with was
REALS = 9


@triton.jit
def append(counter, chosen):
    """Places for the chosen lanes in a list shared by all programs."""
    mine = chosen.to(tl.int32)
    count = tl.sum(mine, axis=0)
    start = count - count
    if count > 0:  # they queue for the counter
        start = tl.atomic_add(counter, count)
    return start + tl.cumsum(mine, axis=0) - 1


@triton.jit
def own_share(n, programs, LANES: tl.constexpr):
    """(first, one past the last) of this program's places: whole steps, if few programs do them all."""
    per = tl.maximum(tl.cdiv(n, programs), LANES)
    return tl.program_id(0) * per, tl.minimum((tl.program_id(0) + 1) * per, n)


@triton.jit
def merge_weights(size, other, DTYPE: tl.constexpr, WEIGHTING: tl.constexpr):
    """WEIGHTING: 0 by size (UPGMA), 1 halves (WPGMA), 2 ones (complete linkage, sums over leaf pairs)."""
    if WEIGHTING == 0:
        weight, other_weight = size / (size + other), other / (size + other)
    else:
        weight = tl.full(size.shape, 0.5 if WEIGHTING == 1 else 1.0, tl.float64)
        other_weight = weight
    return weight.to(DTYPE), other_weight.to(DTYPE)


# Entries of merged clusters (reference/linkage.py).


@triton.jit
def limits(DTYPE: tl.constexpr, SUMS: tl.constexpr):
    """(one_up, tiny, cap) of `combined`."""
    if SUMS:
        one_up, tiny, cap = 0.0, 0.0, 2.0
    elif tl.float64 == DTYPE:
        one_up, tiny, cap = 1.0000000000000002, 2.2250738585072014e-308, 1.0
    else:
        one_up, tiny, cap = 1.0000001192092896, 1.1754943508222875e-38, 1.0
    return tl.full((), one_up, DTYPE), tl.full((), tiny, DTYPE), tl.full((), cap, DTYPE)


@triton.jit
def combined(x, y, weight_x, weight_y, one_up, tiny, cap):
    """reference.linkage.combine; one_up, tiny, cap = 1 + eps, tiny, 1, or 0, 0, 2 to leave a sum alone."""
    low, high = tl.minimum(x, y), tl.maximum(x, y)
    return tl.minimum(tl.maximum(x * weight_x + y * weight_y, low * one_up + tiny), high * cap)


@triton.jit
def block_entry(
    ac, ad, bc, bd, w_a, w_b, w_c, w_d, row_first, column_merges, one_up, tiny, cap
):  # fmt: skip
    """Distance between clusters a + b (the row's) and c (+ d, if it merges), from the four (or two) entries.

    The pair that comes first in the order of merging averages first, so that both pairs of an entry compute
    the same number to the last bit.
    """
    ab_c = combined(ac, bc, w_a, w_b, one_up, tiny, cap)
    ab_d = combined(ad, bd, w_a, w_b, one_up, tiny, cap)
    a_cd = combined(ac, ad, w_c, w_d, one_up, tiny, cap)
    b_cd = combined(bc, bd, w_c, w_d, one_up, tiny, cap)
    rows_first = combined(ab_c, ab_d, w_c, w_d, one_up, tiny, cap)
    columns_first = combined(a_cd, b_cd, w_a, w_b, one_up, tiny, cap)
    return tl.where(column_merges, tl.where(row_first, rows_first, columns_first), ab_c)


# Nearest neighbours of rows.


NO_PLACE = tl.constexpr(0x7FFFFFFF)


@triton.jit
def nearer(best, place, second, value, j, counts, names, ORDERED: tl.constexpr):
    """A lane's (lowest, place of it, second lowest) after it has seen value at place j, if it counts.

    Of equals the smallest name stays, or, if places are in the order of names (ORDERED), the first.
    """
    value = tl.where(counts, value, float("inf"))
    closer = value < best
    if not ORDERED:
        tie = counts & (value == best)
        name = tl.load(names + tl.where(tie, j, 0), mask=tie, other=0)
        closer = closer | (name < tl.load(names + place, mask=tie, other=0))
    place = tl.where(closer, j, place)
    return tl.minimum(best, value), place, tl.minimum(second, tl.maximum(best, value))


@triton.jit
def nearest_two(best, place, second):
    """(lowest value, first place of it, lowest of all others: equal in a tie) of the lanes."""
    lowest = tl.min(best, axis=0)
    holds = best == lowest
    first = tl.min(tl.where(holds, place, NO_PLACE), axis=0)
    return lowest, first, tl.min(tl.where(holds & (place == first), second, best), axis=0)


@triton.jit
def first_named(best, place, lowest, names):
    """Place of the lanes' lowest value, of equals the one with the smallest name."""
    name = tl.load(names + place, mask=best == lowest, other=NO_PLACE).to(tl.int64)
    return (tl.min((name << 32) | place, axis=0) & NO_PLACE).to(tl.int32)


@triton.jit
def _living(distances, row, j, n, alive, sizes, size, SUMS: tl.constexpr, ALL: tl.constexpr):
    """(values, which of them count) of one block of columns."""
    inside = j < (n + 15) // 16 * 16  # a multiple of 16 keeps the loads wide
    value = tl.load(distances + row + j, mask=inside, other=0.0)
    if SUMS:
        value = value / (size * tl.load(sizes + j, mask=inside, other=1.0))
    live = j < n
    if not ALL:
        four = tl.max_contiguous(0 * n + j, 4)  # as many at a time as distances: else those are strided
        live = live & (tl.load(alive + four, mask=inside, other=0) != 0)
    return value, live


@triton.jit
def nearest_in_row(
    distances, row, n, alive, names, sizes, size,
    BLOCK: tl.constexpr, DTYPE: tl.constexpr, SUMS: tl.constexpr, ALL: tl.constexpr, ORDERED: tl.constexpr,
):  # fmt: skip
    """(distance, place) of the nearest cluster, of equals the one with the smallest name; next distance.

    The row's own entry is infinite. SUMS: the row holds sums over pairs of leaves, size × sizes[j] of them.
    ALL: every column is alive. ORDERED: places are in the order of names, so that the first one wins.
    """
    best = tl.full((BLOCK,), float("inf"), DTYPE)
    place, second = tl.zeros((BLOCK,), tl.int32), best
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        value, live = _living(distances, row, j, n, alive, sizes, size, SUMS, ALL)
        best, place, second = nearer(best, place, second, value, j, live, names, ORDERED)
    lowest, near, after = nearest_two(best, place, second)
    if not ORDERED:
        if after == lowest:
            near = first_named(best, place, lowest, names)
    return lowest, near, after


@triton.jit
def zeros_in_row(distances, row, n, BLOCK: tl.constexpr):
    """How many entries are zero."""
    zeros = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        zeros += (tl.load(distances + row + j, mask=j < n, other=1.0) == 0).to(tl.int32)
    return tl.sum(zeros, axis=0)


@triton.jit
def scan_listed(
    distances, ld, state, alive, reals, sizes, N, side, n, pairs, base, stale, programs,
    BLOCK: tl.constexpr, DTYPE: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """Nearest neighbours of this round's new clusters (base: see linkage_merge) and of the stale ones.

    Many rows are read first as if no distances were equal, at the memory's speed; a few rows, and those in
    which some are, with an eye on names.
    """
    many, names = pairs + stale > 2 * programs, state + (NAME + side) * N
    for item in range(tl.program_id(0), pairs + stale, programs):
        if item >= pairs:
            k = tl.load(state + STALE * N + item - pairs)
        elif base >= 0:
            k = base + item
        else:
            k = tl.load(state + PAIR * N + item)
        row = tl.load(state + (SLOT + side) * N + k).to(tl.int64) * ld
        size = tl.load(sizes + side * N + k)
        lowest, near, after = tl.full((), 0.0, DTYPE), k, tl.full((), 0.0, DTYPE)
        if many:
            lowest, near, after = nearest_in_row(
                distances, row, n, alive + side * N, names, sizes + side * N, size,
                BLOCK, DTYPE, SUMS, False, True,
            )  # fmt: skip
        if lowest == after:
            lowest, near, after = nearest_in_row(
                distances, row, n, alive + side * N, names, sizes + side * N, size,
                BLOCK, DTYPE, SUMS, False, False,
            )  # fmt: skip
        tl.store(state + (NEAREST + side) * N + k, near)
        tl.store(reals + (DISTANCE + side) * N + k, lowest)
        tl.store(reals + (SECOND + side) * N + k, after)
