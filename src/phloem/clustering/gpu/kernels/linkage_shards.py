"""A round of linkage in one band of a matrix that is spread over devices, and the rows others need."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.linkage_state import combined

# Rows of one band that another one needs: gathered to be sent, and compared for being identical.


@triton.jit(do_not_specialize=["first", "n"])
def gather_rows(distances, ld, slots, first, out, out_ld, n, BLOCK: tl.constexpr):
    """out[p, :n] = row slots[first + p], and what follows up to a multiple of 16."""
    stop = (n + 15) // 16 * 16  # keeps the loads wide
    slot = tl.load(slots + first + tl.program_id(0)).to(tl.int64)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(distances + slot * ld + j, mask=j < stop, other=0.0)
    tl.store(out + tl.program_id(0).to(tl.int64) * out_ld + j, value, mask=j < stop)


@triton.jit(do_not_specialize=["M", "first", "n"])
def compare_rows(distances, ld, others, others_ld, rows, M, first, n, equal, BLOCK: tl.constexpr):
    """equal = 1 where two rows agree in every column but their own two.

    rows: (4, M) int32: row of `distances`, row of `others`, place of each.
    """
    item = first + tl.program_id(0)
    row = distances + tl.load(rows + item).to(tl.int64) * ld
    other = others + tl.load(rows + M + item).to(tl.int64) * others_ld
    me, other_me = tl.load(rows + 2 * M + item), tl.load(rows + 3 * M + item)
    same, start, stop = 1, 0, (n + 15) // 16 * 16
    while (start < n) & (same == 1):
        j = start + tl.arange(0, BLOCK)
        inside = (j < n) & (j != me) & (j != other_me)
        x = tl.load(row + j, mask=j < stop, other=0.0)
        y = tl.load(other + j, mask=j < stop, other=0.0)
        same = 1 - tl.max((inside & (x != y)).to(tl.int32), axis=0)
        start += BLOCK
    tl.store(equal + item, same)


# A round of linkage in the rows of one band of a matrix that is spread over devices; a program a row.
#
# A band holds whole rows, each of all columns. Column j of a launch is what becomes of place j: columns[0, j]
# is where it lies now (-1: nothing does), columns[1, j] the place that merges into it, or -1;
# column_reals[:, j] the weights of these two and the distance at which they merge. Rows of both tables are P
# entries apart. rows: (3, M) int32, what a program works on. No program reads a row that another one writes.


@triton.jit
def _nearest(best, place):
    """(smallest, first place of it) from the smallest of each lane."""
    lowest = tl.min(best, axis=0)
    return lowest, tl.min(tl.where(best == lowest, place, 0x7FFFFFFF), axis=0)


@triton.jit(do_not_specialize=["M", "first", "n", "expand"])
def merge_rows(
    distances, ld, others, others_ld, rows, row_reals, M, first, columns, column_reals, column_sizes, P, n,
    expand, constants, nearest, nearest_distance,
    BLOCK: tl.constexpr, DTYPE: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """New rows in place, from left to right, and their nearest neighbours.

    The pair that merges at the smaller distance, or comes first, averages first, so that both rows of an
    entry get the same number. A new column never lies right of the ones it comes from.
    rows: row of `distances`, row of `others` that merges into it (-1: none), new place. row_reals: (4, M)
    float64: weights of the two, their distance, leaves of the new cluster.
    SUMS: entries are sums over column_sizes × leaves pairs; expand: they become so.
    """
    item = first + tl.program_id(0)
    one_up, tiny, cap = tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    row = distances + tl.load(rows + item).to(tl.int64) * ld
    partner = tl.load(rows + M + item)
    other = others + partner.to(tl.int64) * others_ld
    i = tl.load(rows + 2 * M + item)
    w_a, w_b = tl.load(row_reals + item).to(DTYPE), tl.load(row_reals + M + item).to(DTYPE)
    height, size = tl.load(row_reals + 2 * M + item).to(DTYPE), tl.load(row_reals + 3 * M + item)
    best = tl.full((BLOCK,), float("inf"), DTYPE)
    place = tl.zeros((BLOCK,), tl.int32)
    lane, stop = tl.arange(0, BLOCK), (n + 15) // 16 * 16  # a multiple of 16 keeps the loads wide
    c = tl.load(columns + lane, mask=lane < stop, other=-1)
    d = tl.load(columns + P + lane, mask=lane < stop, other=-1)
    for start in range(0, n, BLOCK):
        j = start + lane
        present, merging = (c >= 0) & (j < n), (d >= 0) & (j < n)
        next_c = tl.load(columns + BLOCK + j, mask=j + BLOCK < stop, other=-1)  # ahead of use: nothing waits
        next_d = tl.load(columns + P + BLOCK + j, mask=j + BLOCK < stop, other=-1)
        w_c = tl.load(column_reals + j, mask=merging, other=1.0)
        w_d = tl.load(column_reals + P + j, mask=merging, other=0.0)
        ac = tl.load(row + c, mask=present, other=0.0)
        ad = tl.load(row + d, mask=merging, other=0.0)
        if partner >= 0:
            column_height = tl.load(column_reals + 2 * P + j, mask=merging, other=0.0)
            bc = tl.load(other + c, mask=present, other=0.0)
            bd = tl.load(other + d, mask=merging, other=0.0)
            earlier = (height < column_height) | ((height == column_height) & (i < j))
            rows_first = combined(ac, bc, w_a, w_b, one_up, tiny, cap)
            columns_first = combined(ac, ad, w_c, w_d, one_up, tiny, cap)
            rest = combined(ad, bd, w_a, w_b, one_up, tiny, cap)
            value = combined(rows_first, rest, w_c, w_d, one_up, tiny, cap)
            rest = combined(bc, bd, w_c, w_d, one_up, tiny, cap)
            columns_first = combined(columns_first, rest, w_a, w_b, one_up, tiny, cap)
            value = tl.where(merging, tl.where(earlier, value, columns_first), rows_first)
        else:
            value = tl.where(merging, combined(ac, ad, w_c, w_d, one_up, tiny, cap), ac)
        mean = value
        if SUMS:
            leaf_pairs = size * tl.load(column_sizes + j, mask=present, other=1.0)
            value = tl.where(expand != 0, value * leaf_pairs, value)
            mean = value / leaf_pairs
        tl.debug_barrier()
        tl.store(row + j, tl.where(j == i, float("inf"), value), mask=present)
        closer = present & (mean < best) & (j != i)
        best = tl.where(closer, mean, best)
        place = tl.where(closer, j, place)
        c, d = next_c, next_d
    lowest, at = _nearest(best, place)
    tl.store(nearest + item, at)
    tl.store(nearest_distance + item, lowest)


@triton.jit(do_not_specialize=["M", "pairs"])
def merge_columns(
    distances, ld, slots, M, merged, weights, pairs, constants, ROWS: tl.constexpr, PAIRS: tl.constexpr
):
    """Entries of rows that do not merge in columns merged[0] (with merged[1]); weights (2, pairs) alike."""
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    p = tl.program_id(1) * PAIRS + tl.arange(0, PAIRS)
    one_up, tiny, cap = tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    row = distances + tl.load(slots + r, mask=r < M, other=0).to(tl.int64) * ld
    c = tl.load(merged + p, mask=p < pairs, other=0)
    d = tl.load(merged + pairs + p, mask=p < pairs, other=0)
    w_c = tl.load(weights + p, mask=p < pairs, other=1.0)
    w_d = tl.load(weights + pairs + p, mask=p < pairs, other=0.0)
    inside = (r < M)[:, None] & (p < pairs)[None, :]
    x = tl.load(row[:, None] + c[None, :], mask=inside, other=0.0)
    y = tl.load(row[:, None] + d[None, :], mask=inside, other=0.0)
    value = combined(x, y, w_c[None, :], w_d[None, :], one_up, tiny, cap)
    tl.store(row[:, None] + c[None, :], value, mask=inside)


@triton.jit(do_not_specialize=["M", "n"])
def scan_rows(
    distances, ld, rows, before, M, columns, column_sizes, n, nearest, nearest_distance, zeros,
    BLOCK: tl.constexpr, DTYPE: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """Nearest neighbours of rows, and how many zeros they have (0 where the row need not be read).

    rows: row of `distances`, place, where its nearest neighbour went (-1: read the row). before: (M,) how far
    that was; if the merged cluster is as near, both its members were, and it is the nearest neighbour still.
    """
    item = tl.program_id(0)
    row = distances + tl.load(rows + item).to(tl.int64) * ld
    me = tl.load(rows + M + item)
    went = tl.load(rows + 2 * M + item)
    size = tl.load(column_sizes + me)
    now, was = tl.load(row + tl.maximum(went, 0)), tl.load(before + item)
    if SUMS:
        now = now / (size * tl.load(column_sizes + tl.maximum(went, 0)))
    unmoved = (went >= 0) & (now == was)
    if unmoved:
        tl.store(nearest + item, went)
        tl.store(nearest_distance + item, was)
        tl.store(zeros + item, 0)
    else:
        best = tl.full((BLOCK,), float("inf"), DTYPE)
        place = tl.zeros((BLOCK,), tl.int32)
        count = tl.zeros((BLOCK,), tl.int32)
        stop = (n + 15) // 16 * 16
        for start in range(0, n, BLOCK):
            j = start + tl.arange(0, BLOCK)
            live = (tl.load(columns + j, mask=j < stop, other=-1) >= 0) & (j != me) & (j < n)
            value = tl.load(row + j, mask=j < stop, other=0.0)
            if SUMS:
                value = value / (size * tl.load(column_sizes + j, mask=j < stop, other=1.0))
            closer = live & (value < best)
            best = tl.where(closer, value, best)
            place = tl.where(closer, j, place)
            count += (live & (value == 0)).to(tl.int32)
        lowest, at = _nearest(best, place)
        tl.store(nearest + item, at)
        tl.store(nearest_distance + item, lowest)
        tl.store(zeros + item, tl.sum(count, axis=0))
