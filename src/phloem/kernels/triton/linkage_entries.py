"""Entries of merged clusters, and nearest neighbours (reference/linkage.py)."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def combined(x, y, weight_x, weight_y, one_up, tiny, cap):
    """reference.linkage.combine; one_up, tiny, cap = 1 + eps, tiny, 1, or 0, 0, 2 to leave a sum alone."""
    low, high = tl.minimum(x, y), tl.maximum(x, y)
    return tl.minimum(tl.maximum(x * weight_x + y * weight_y, low * one_up + tiny), high * cap)


@triton.jit
def block_entry(
    ac, ad, bc, bd, w_a, w_b, w_c, w_d, row_first, column_merges, one_up, tiny, cap
):  # fmt: skip
    """Distance between row cluster a (+ b) and column cluster c (+ d), from the four (or two) entries.

    The pair that comes first in the order of merging averages first, so that both pairs of an entry compute
    the same number to the last bit. A row that does not merge has weights (1, 0) and row_first False.
    """
    a_cd = combined(ac, ad, w_c, w_d, one_up, tiny, cap)
    b_cd = combined(bc, bd, w_c, w_d, one_up, tiny, cap)
    ab_c = combined(ac, bc, w_a, w_b, one_up, tiny, cap)
    ab_d = combined(ad, bd, w_a, w_b, one_up, tiny, cap)
    rows_first = combined(ab_c, ab_d, w_c, w_d, one_up, tiny, cap)
    columns_first = combined(a_cd, b_cd, w_a, w_b, one_up, tiny, cap)
    return tl.where(column_merges, tl.where(row_first, rows_first, columns_first), ab_c)


@triton.jit
def nearest_in_row(
    distances, row, n, me, alive, sizes, size, BLOCK: tl.constexpr, DTYPE: tl.constexpr, SUMS: tl.constexpr
):  # fmt: skip
    """(distance, first place of it, zeros) among the living columns of one row but `me`.

    SUMS: the row holds sums over pairs of leaves, size × sizes[j] of them.
    """
    best = tl.full((BLOCK,), float("inf"), DTYPE)
    place = tl.zeros((BLOCK,), tl.int32)
    zeros = tl.zeros((BLOCK,), tl.int32)
    stop = (n + 15) // 16 * 16  # a multiple of 16 keeps the loads wide
    for start in range(0, stop, BLOCK):
        j = start + tl.arange(0, BLOCK)
        inside = j < stop
        value = tl.load(distances + row + j, mask=inside, other=0.0)
        live = tl.load(alive + j, mask=inside, other=0)
        if SUMS:
            value = value / (size * tl.load(sizes + j, mask=inside, other=1.0))
        live = (live != 0) & (j < n) & (j != me)
        closer = live & (value < best)
        best = tl.where(closer, value, best)
        place = tl.where(closer, j, place)
        zeros += (live & (value == 0)).to(tl.int32)
    lowest = tl.min(best, axis=0)
    first = tl.min(tl.where(best == lowest, place, 0x7FFFFFFF), axis=0)
    return lowest, first, tl.sum(zeros, axis=0)


@triton.jit
def rows_equal(distances, row, other, n, me, other_me, BLOCK: tl.constexpr):
    """1 if two rows agree in every column but their own two."""
    equal, start = 1, 0
    while (start < n) & (equal == 1):
        j = start + tl.arange(0, BLOCK)
        inside = (j < n) & (j != me) & (j != other_me)
        x = tl.load(distances + row + j, mask=inside, other=0.0)
        y = tl.load(distances + other + j, mask=inside, other=0.0)
        equal = 1 - tl.max((x != y).to(tl.int32), axis=0)
        start += BLOCK
    return equal
