"""Entries of merged clusters (reference/linkage.py)."""

from __future__ import annotations

import triton
import triton.language as tl


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
