"""A round that rewrites the matrix: merged rows and columns become one, dead ones go, all are scanned."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.linkage_state import (
    DISTANCE,
    HEIGHT,
    KEEP,
    KEEP_MATE,
    MATE,
    NAME,
    NEAREST,
    NO_PLACE,
    PAIR,
    SECOND,
    SLOT,
    STALE,
    WEIGHT_LOWER,
    WEIGHT_UPPER,
    append,
    block_entry,
    combined,
    merge_weights,
    nearer,
    nearest_in_row,
    nearest_two,
    own_share,
)


@triton.jit
def list_kept(
    state, alive, reals, sizes, N, side, n, programs, survivors, rows,
    LANES: tl.constexpr, PROGRAMS: tl.constexpr, DTYPE: tl.constexpr, WEIGHTING: tl.constexpr,
):  # fmt: skip
    """The clusters that stay, in order of place, their mates, and what is known of the new clusters.

    survivors: how many stay in each program's share. rows: two counters, of the rows in state[PAIR] that
    merge and in state[STALE] that do not, as places in the new matrix.
    """
    lane, new = tl.arange(0, PROGRAMS), 1 - side
    at = tl.sum(tl.load(survivors + lane, mask=lane < tl.program_id(0), other=0), axis=0)
    begin, stop = own_share(n, programs, LANES)
    for start in range(begin, stop, LANES):
        k = start + tl.arange(0, LANES)
        here = tl.load(alive + side * N + k, mask=k < stop, other=0) != 0
        mate = tl.load(state + MATE * N + k, mask=here, other=-1)
        kept = here & ((mate < 0) | (mate > k))
        merging = here & (mate > k)
        place = at + tl.cumsum(kept.to(tl.int32), axis=0) - 1
        at += tl.sum(kept.to(tl.int32), axis=0)
        size = tl.load(sizes + side * N + k, mask=kept, other=1.0)
        other_size = tl.load(sizes + side * N + mate, mask=merging, other=0.0)
        weight, other_weight = merge_weights(size, other_size, DTYPE, WEIGHTING)
        name = tl.load(state + (NAME + side) * N + k, mask=kept, other=0)
        other_name = tl.load(state + (NAME + side) * N + mate, mask=merging, other=NO_PLACE)
        tl.store(state + KEEP * N + place, k, mask=kept)
        tl.store(state + KEEP_MATE * N + place, mate, mask=kept)
        tl.store(reals + WEIGHT_LOWER * N + place, weight, mask=kept)
        tl.store(reals + WEIGHT_UPPER * N + place, other_weight, mask=kept)
        height = tl.load(reals + (DISTANCE + side) * N + k, mask=kept, other=0.0)
        tl.store(reals + HEIGHT * N + place, height, mask=kept)
        slot = tl.load(state + (SLOT + side) * N + k, mask=kept, other=0)
        tl.store(state + (SLOT + new) * N + place, slot, mask=kept)
        tl.store(state + (NAME + new) * N + place, tl.minimum(name, other_name), mask=kept)
        tl.store(alive + new * N + place, 1, mask=kept)
        tl.store(sizes + new * N + place, size + other_size, mask=kept)
        tl.store(state + PAIR * N + append(rows, merging), place, mask=merging)
        tl.store(state + STALE * N + append(rows + 1, kept & (mate < 0)), place, mask=kept & (mate < 0))


@triton.jit
def _columns(state, N, j, kept):
    """Old places of the new columns j, and their mates (-1: none)."""
    c = tl.load(state + KEEP * N + j, mask=j < kept, other=0)
    return c, tl.load(state + KEEP_MATE * N + j, mask=j < kept, other=-1)


@triton.jit
def _entries(distances, row, other, c, d, present, PAIR: tl.constexpr):
    """Old entries of rows, or of two rows that merge, in columns c and d."""
    both = present & (d >= 0)
    ac = tl.load(distances + row + c, mask=present, other=0.0)
    ad = tl.load(distances + row + d, mask=both, other=0.0)
    bc, bd = ac, ad
    if PAIR:
        bc = tl.load(distances + other + c, mask=present, other=0.0)
        bd = tl.load(distances + other + d, mask=both, other=0.0)
    return ac, ad, bc, bd


@triton.jit
def _new_entries(
    ac, ad, bc, bd, state, reals, N, new, i, j, kept, merging, one_up, tiny, cap, PAIR: tl.constexpr
):  # fmt: skip
    w_c = tl.load(reals + WEIGHT_LOWER * N + j, mask=j < kept, other=1.0)
    w_d = tl.load(reals + WEIGHT_UPPER * N + j, mask=j < kept, other=0.0)
    if PAIR:
        w_a, w_b = tl.load(reals + WEIGHT_LOWER * N + i), tl.load(reals + WEIGHT_UPPER * N + i)
        height, name = tl.load(reals + HEIGHT * N + i), tl.load(state + (NAME + new) * N + i)
        column_height = tl.load(reals + HEIGHT * N + j, mask=j < kept, other=0.0)
        column_name = tl.load(state + (NAME + new) * N + j, mask=j < kept, other=0)
        first = (height < column_height) | ((height == column_height) & (name < column_name))
        value = block_entry(ac, ad, bc, bd, w_a, w_b, w_c, w_d, first, merging, one_up, tiny, cap)
    else:
        value = tl.where(merging, combined(ac, ad, w_c, w_d, one_up, tiny, cap), ac)
    return value


@triton.jit
def _rewrite_row(
    distances, ld, i, state, alive, reals, sizes, N, side, kept, expand, one_up, tiny, cap,
    BLOCK: tl.constexpr, SCAN: tl.constexpr, DTYPE: tl.constexpr, SUMS: tl.constexpr, PAIR: tl.constexpr,
):  # fmt: skip
    """Row i in place of the old one, from left to right, and its nearest neighbour.

    A step's entries are fetched before the last step's are stored: they lie to the right of those.
    """
    new = 1 - side
    row = tl.load(state + (SLOT + new) * N + i).to(tl.int64) * ld
    other = row
    if PAIR:
        mate = tl.load(state + KEEP_MATE * N + i)
        other = tl.load(state + (SLOT + side) * N + mate).to(tl.int64) * ld
    size = tl.load(sizes + new * N + i)
    best = tl.full((BLOCK,), float("inf"), DTYPE)
    place, second = tl.zeros((BLOCK,), tl.int32), best
    j = tl.arange(0, BLOCK)
    c, d = _columns(state, N, j, kept)
    next_c, next_d = _columns(state, N, j + BLOCK, kept)
    ac, ad, bc, bd = _entries(distances, row, other, c, d, j < kept, PAIR)
    for start in range(0, kept, BLOCK):
        j = start + tl.arange(0, BLOCK)
        next_ac, next_ad, next_bc, next_bd = _entries(
            distances, row, other, next_c, next_d, j + BLOCK < kept, PAIR
        )
        value = _new_entries(
            ac, ad, bc, bd, state, reals, N, new, i, j, kept, d >= 0, one_up, tiny, cap, PAIR
        )  # fmt: skip
        d = next_d
        next_c, next_d = _columns(state, N, j + 2 * BLOCK, kept)
        mean = value
        if SUMS:
            leaf_pairs = size * tl.load(sizes + new * N + j, mask=j < kept, other=1.0)
            value = tl.where(expand != 0, value * leaf_pairs, value)
            mean = value / leaf_pairs
        tl.debug_barrier()
        tl.store(distances + row + j, tl.where(j == i, float("inf"), value), mask=j < kept)
        best, place, second = nearer(best, place, second, mean, j, (j < kept) & (j != i), j, True)
        ac, ad, bc, bd = next_ac, next_ad, next_bc, next_bd
    lowest, near, after = nearest_two(best, place, second)
    if after == lowest:  # a tie, which names decide
        tl.debug_barrier()
        _, near, _ = nearest_in_row(
            distances, row, kept, alive, state + (NAME + new) * N, sizes + new * N, size,
            SCAN, DTYPE, SUMS, True, False,
        )  # fmt: skip
    tl.store(state + (NEAREST + new) * N + i, near)
    tl.store(reals + (DISTANCE + new) * N + i, lowest)
    tl.store(reals + (SECOND + new) * N + i, after)


@triton.jit
def rewrite(
    distances, ld, state, alive, reals, sizes, N, side, kept, pairs, expand, programs, one_up, tiny, cap,
    BLOCK: tl.constexpr, SCAN: tl.constexpr, DTYPE: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """The matrix of the kept clusters, inside the old one's rows, and every nearest neighbour.

    A new column never lies right of the old one it comes from, so that a row is rewritten from left to right.
    expand: turn distances into sums over pairs of leaves (after identical rows were collapsed; SUMS only).
    """
    for item in range(tl.program_id(0), pairs, programs):
        i = tl.load(state + PAIR * N + item)
        _rewrite_row(
            distances, ld, i, state, alive, reals, sizes, N, side, kept, expand, one_up, tiny, cap,
            BLOCK, SCAN, DTYPE, SUMS, True,
        )  # fmt: skip
    for item in range(programs - 1 - tl.program_id(0), kept - pairs, programs):  # who had fewer begins
        i = tl.load(state + STALE * N + item)
        _rewrite_row(
            distances, ld, i, state, alive, reals, sizes, N, side, kept, expand, one_up, tiny, cap,
            BLOCK, SCAN, DTYPE, SUMS, False,
        )  # fmt: skip
