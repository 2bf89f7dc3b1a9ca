"""A round that leaves the matrix where it is: rows of merged clusters, and their mirrored columns."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.linkage_entries import block_entry, combined
from phloem.clustering.gpu.kernels.linkage_state import (
    LOWER,
    MATE,
    MERGED,
    OTHER,
    PAIR,
    SLOT,
    WEIGHT_LOWER,
    WEIGHT_UPPER,
)


@triton.jit
def merge_pairs(
    distances, ld, state, alive, reals, N, side, n, pairs, made, base, programs, one_up, tiny, cap,
    PAIRS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """New rows, in the rows of the pairs' lower members, and their columns.

    base: the q-th new cluster gets column base + q, so that a row's new entries lie side by side (a multiple
    of 16 not below n; columns up to the next one are overwritten); or -1: it gets the column of its lower
    member. Entries of members stay as they were, and so may be read in any order.
    """
    groups, plain, mutual = tl.cdiv(pairs, PAIRS), tl.cdiv(n, COLUMNS), tl.cdiv(pairs, COLUMNS)
    for item in range(tl.program_id(0), groups * (plain + mutual), programs):
        chunk, group = item // groups, item % groups
        if chunk >= plain:  # a group's chunks at the same time: they read the same rows, here and there
            group, chunk = (item - groups * plain) // mutual, plain + (item - groups * plain) % mutual
        q = group * PAIRS + tl.arange(0, PAIRS)
        real = q < pairs
        a = tl.load(state + PAIR * N + q, mask=real, other=0)
        b = tl.load(state + OTHER * N + q, mask=real, other=0)
        w_a = tl.load(reals + WEIGHT_LOWER * N + q, mask=real, other=0.0)[None, :]
        w_b = tl.load(reals + WEIGHT_UPPER * N + q, mask=real, other=0.0)[None, :]
        row = tl.load(state + (SLOT + side) * N + a, mask=real, other=0).to(tl.int64)[None, :] * ld
        other = tl.load(state + (SLOT + side) * N + b, mask=real, other=0).to(tl.int64)[None, :] * ld
        if chunk < plain:
            _with_others(
                distances, ld, state, alive, N, side, n, q[None, :], real[None, :], a[None, :], row, other,
                w_a, w_b, chunk * COLUMNS + tl.arange(0, COLUMNS), base, one_up, tiny, cap,
            )  # fmt: skip
        else:
            _with_each_other(
                distances, state, reals, N, q, real, row, other, w_a, w_b,
                (chunk - plain) * COLUMNS + tl.arange(0, COLUMNS), pairs, made, base, one_up, tiny, cap,
            )  # fmt: skip


@triton.jit
def _with_others(
    distances, ld, state, alive, N, side, n, q, real, a, row, other, w_a, w_b, k, base, one_up, tiny, cap
):  # fmt: skip
    """Entries between pairs q and the clusters among columns k that do not merge."""
    inside = k < (n + 15) // 16 * 16  # a multiple of 16 keeps the loads wide
    wide = inside[:, None] & real
    x = tl.load(distances + row + k[:, None], mask=wide, other=0.0)
    y = tl.load(distances + other + k[:, None], mask=wide, other=0.0)
    single = (k < n) & (tl.load(state + MATE * N + k, mask=inside, other=0) < 0)
    single = single & (tl.load(alive + side * N + k, mask=inside, other=0) != 0)
    column_row = tl.load(state + (SLOT + side) * N + k, mask=inside, other=0).to(tl.int64)[:, None] * ld
    value = combined(x, y, w_a, w_b, one_up, tiny, cap)
    chosen = single[:, None]
    if base >= 0:
        start = tl.multiple_of(base, 16)
        tl.store(distances + row + k[:, None], tl.where(chosen, value, x), mask=wide)
        tl.store(distances + column_row + (start + q), value, mask=chosen)
    else:
        tl.store(distances + row + k[:, None], value, mask=chosen & real)
        tl.store(distances + column_row + a, value, mask=chosen & real)


@triton.jit
def _with_each_other(
    distances, state, reals, N, q, real, row, other, w_a, w_b, r, pairs, made, base, one_up, tiny, cap
):  # fmt: skip
    """Entries between pairs q and pairs r."""
    height = tl.load(reals + MERGED * N + made + q, mask=real, other=0.0)[None, :]
    name = tl.load(state + LOWER * N + made + q, mask=real, other=0)[None, :]
    there = r < pairs
    c = tl.load(state + PAIR * N + r, mask=there, other=0)
    d = tl.load(state + OTHER * N + r, mask=there, other=0)[:, None]
    w_c = tl.load(reals + WEIGHT_LOWER * N + r, mask=there, other=0.0)[:, None]
    w_d = tl.load(reals + WEIGHT_UPPER * N + r, mask=there, other=0.0)[:, None]
    column_height = tl.load(reals + MERGED * N + made + r, mask=there, other=0.0)[:, None]
    column_name = tl.load(state + LOWER * N + made + r, mask=there, other=0)[:, None]
    both = there[:, None] & real[None, :]
    ac = tl.load(distances + row + c[:, None], mask=both, other=0.0)
    ad = tl.load(distances + row + d, mask=both, other=0.0)
    bc = tl.load(distances + other + c[:, None], mask=both, other=0.0)
    bd = tl.load(distances + other + d, mask=both, other=0.0)
    first = (height < column_height) | ((height == column_height) & (name < column_name))
    value = block_entry(ac, ad, bc, bd, w_a, w_b, w_c, w_d, first, True, one_up, tiny, cap)
    value = tl.where(q[None, :] == r[:, None], float("inf"), value)
    column = tl.where(base >= 0, base + r, c)
    tl.store(distances + row + column[:, None], value, mask=both)
