"""A round that rewrites the matrix: merged rows and columns become one, dead ones go, all are scanned."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.linkage_entries import block_entry, combined
from phloem.kernels.triton.linkage_steps import (
    ALIVE,
    DISTANCE,
    KEEP,
    KEEP_MATE,
    MATE,
    NAME,
    NEAREST,
    SLOT,
    WEIGHT_LOWER,
    WEIGHT_UPPER,
)


@triton.jit
def list_kept(state, N, side, n, programs, survivors, LANES: tl.constexpr, PROGRAMS: tl.constexpr):
    """Places of the clusters that stay, in order, and their mates; survivors: how many in each share."""
    lane = tl.arange(0, PROGRAMS)
    earlier = lane < tl.program_id(0)
    at = tl.sum(tl.load(survivors + lane, mask=earlier, other=0), axis=0)
    per = tl.cdiv(n, programs)
    stop = tl.minimum((tl.program_id(0) + 1) * per, n)
    for start in range(tl.program_id(0) * per, stop, LANES):
        k = start + tl.arange(0, LANES)
        alive = tl.load(state + (ALIVE + side) * N + k, mask=k < stop, other=0) != 0
        mate = tl.load(state + MATE * N + k, mask=alive, other=-1)
        kept = (alive & ((mate < 0) | (mate > k))).to(tl.int32)
        place = at + tl.cumsum(kept, axis=0) - 1
        tl.store(state + KEEP * N + place, k, mask=kept != 0)
        tl.store(state + KEEP_MATE * N + place, mate, mask=kept != 0)
        at += tl.sum(kept, axis=0)


@triton.jit
def _new_state(state, sizes, N, side, i, k, mate):
    """Slot, name and size of new cluster i, which was k (and its mate); returns its size."""
    new = 1 - side
    size = tl.load(sizes + side * N + k)
    if mate >= 0:
        size += tl.load(sizes + side * N + mate)
    tl.store(state + (SLOT + new) * N + i, tl.load(state + (SLOT + side) * N + k))
    tl.store(state + (NAME + new) * N + i, tl.load(state + (NAME + side) * N + k))
    tl.store(state + (ALIVE + new) * N + i, 1)
    tl.store(sizes + new * N + i, size)
    return size


@triton.jit
def _columns(state, N, j, kept):
    """Old places of the new columns j, and their mates (-1: none)."""
    c = tl.load(state + KEEP * N + j, mask=j < kept, other=0)
    return c, tl.load(state + KEEP_MATE * N + j, mask=j < kept, other=-1)


@triton.jit
def _entries_of_one(distances, row, c, d, w_c, w_d, present, merging, one_up, tiny, cap):
    """Entries of a row that does not merge in columns c (merged with d)."""
    ac = tl.load(distances + row + c, mask=present, other=0.0)
    ad = tl.load(distances + row + d, mask=merging, other=0.0)
    return tl.where(merging, combined(ac, ad, w_c, w_d, one_up, tiny, cap), ac)


@triton.jit
def _entries_of_pair(
    distances, ld, state, reals, N, side, a, b, row, c, d, w_c, w_d, present, merging, one_up, tiny, cap
):  # fmt: skip
    """Entries of row a, merged with row b, in columns c (merged with d)."""
    other = tl.load(state + (SLOT + side) * N + b).to(tl.int64) * ld
    w_a, w_b = tl.load(reals + WEIGHT_LOWER * N + a), tl.load(reals + WEIGHT_UPPER * N + a)
    height = tl.load(reals + (DISTANCE + side) * N + a)
    column_height = tl.load(reals + (DISTANCE + side) * N + c, mask=merging, other=0.0)
    ac = tl.load(distances + row + c, mask=present, other=0.0)
    bc = tl.load(distances + other + c, mask=present, other=0.0)
    ad = tl.load(distances + row + d, mask=merging, other=0.0)
    bd = tl.load(distances + other + d, mask=merging, other=0.0)
    first = (height < column_height) | ((height == column_height) & (a < c))
    return block_entry(ac, ad, bc, bd, w_a, w_b, w_c, w_d, first, merging, one_up, tiny, cap)


@triton.jit
def rewrite(
    distances, ld, state, reals, sizes, N, side, kept, expand, programs, one_up, tiny, cap,
    BLOCK: tl.constexpr, DTYPE: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """The matrix of the kept clusters, inside the old one's rows, and every nearest neighbour.

    A new column never lies right of the old one it comes from, so that a row is rewritten from left to right.
    expand: turn distances into sums over pairs of leaves (after identical rows were collapsed; SUMS only).
    """
    for i in range(tl.program_id(0), kept, programs):
        k, mate = tl.load(state + KEEP * N + i), tl.load(state + KEEP_MATE * N + i)
        size = _new_state(state, sizes, N, side, i, k, mate)
        row = tl.load(state + (SLOT + side) * N + k).to(tl.int64) * ld
        best = tl.full((BLOCK,), float("inf"), DTYPE)
        place = tl.zeros((BLOCK,), tl.int32)
        c, d = _columns(state, N, tl.arange(0, BLOCK), kept)
        for start in range(0, kept, BLOCK):
            j = start + tl.arange(0, BLOCK)
            present, merging = j < kept, d >= 0
            next_c, next_d = _columns(state, N, j + BLOCK, kept)  # ahead of use: nothing waits for them here
            w_c = tl.load(reals + WEIGHT_LOWER * N + c, mask=merging, other=1.0)
            w_d = tl.load(reals + WEIGHT_UPPER * N + c, mask=merging, other=0.0)
            if mate >= 0:
                value = _entries_of_pair(
                    distances, ld, state, reals, N, side, k, mate, row, c, d, w_c, w_d, present, merging,
                    one_up, tiny, cap,
                )  # fmt: skip
            else:
                value = _entries_of_one(distances, row, c, d, w_c, w_d, present, merging, one_up, tiny, cap)
            mean = value
            if SUMS:
                column_size = tl.load(sizes + side * N + c, mask=present, other=1.0)
                column_size += tl.load(sizes + side * N + d, mask=merging, other=0.0)
                leaf_pairs = size * column_size
                value = tl.where(expand != 0, value * leaf_pairs, value)
                mean = value / leaf_pairs
            tl.debug_barrier()
            tl.store(distances + row + j, tl.where(j == i, float("inf"), value), mask=present)
            closer = present & (mean < best) & (j != i)
            best = tl.where(closer, mean, best)
            place = tl.where(closer, j, place)
            c, d = next_c, next_d
        lowest = tl.min(best, axis=0)
        nearest = tl.min(tl.where(best == lowest, place, 0x7FFFFFFF), axis=0)
        tl.store(state + (NEAREST + 1 - side) * N + i, nearest)
        tl.store(reals + (DISTANCE + 1 - side) * N + i, lowest)
