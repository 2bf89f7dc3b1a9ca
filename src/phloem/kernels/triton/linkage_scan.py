"""Nearest neighbours of rows."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.linkage_state import DISTANCE, NAME, NEAREST, PAIR, SLOT, STALE

NO_PLACE = tl.constexpr(0x7FFFFFFF)
TIED = tl.constexpr(0x40000000)  # added to a lane's place when its best is met again


@triton.jit
def nearer(best, place, value, j, counts):
    """A lane's (lowest, first place of it) once it has seen value at place j, where that counts."""
    closer, again = counts & (value < best), counts & (value == best)
    place = tl.where(closer, j, tl.where(again, place | TIED, place))
    return tl.where(closer, value, best), place


@triton.jit
def first_place(best, place, lowest):
    """(first place with the lowest value, whether there is another) along axis 0."""
    holds = best == lowest
    first = tl.min(tl.where(holds, place & (TIED - 1), NO_PLACE), axis=0)
    often = tl.sum(tl.where(holds, tl.where(place >= TIED, 2, 1), 0), axis=0)
    return first, often > 1


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
    """(distance, place) of the nearest cluster; of equals the one with the smallest name.

    The row's own entry is infinite. SUMS: the row holds sums over pairs of leaves, size × sizes[j] of them.
    ALL: every column is alive. ORDERED: places are in the order of names, so that the first one wins.
    """
    best = tl.full((BLOCK,), float("inf"), DTYPE)
    place = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        value, live = _living(distances, row, j, n, alive, sizes, size, SUMS, ALL)
        best, place = nearer(best, place, value, j, live)
    lowest = tl.min(best, axis=0)
    near, tied = first_place(best, place, lowest)
    if not ORDERED:
        if tied:
            near = first_named(
                distances, row, n, alive, names, sizes, size, lowest, BLOCK, SUMS, ALL
            )  # fmt: skip
    return lowest, near


@triton.jit
def first_named(
    distances, row, n, alive, names, sizes, size, target,
    BLOCK: tl.constexpr, SUMS: tl.constexpr, ALL: tl.constexpr,
):  # fmt: skip
    """Place with the smallest name among the entries equal to target."""
    best = tl.full((BLOCK,), 0x7FFFFFFFFFFFFFFF, tl.int64)
    for start in range(0, n, BLOCK):
        j = start + tl.arange(0, BLOCK)
        value, live = _living(distances, row, j, n, alive, sizes, size, SUMS, ALL)
        equal = live & (value == target)
        name = tl.load(names + j, mask=equal, other=0).to(tl.int64)
        best = tl.where(equal, tl.minimum(best, (name << 32) | j), best)
    return (tl.min(best, axis=0) & NO_PLACE).to(tl.int32)


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
    """Nearest neighbours of this round's new clusters (base: see linkage_merge) and of the stale ones."""
    for item in range(tl.program_id(0), pairs + stale, programs):
        if item >= pairs:
            k = tl.load(state + STALE * N + item - pairs)
        elif base >= 0:
            k = base + item
        else:
            k = tl.load(state + PAIR * N + item)
        row = tl.load(state + (SLOT + side) * N + k).to(tl.int64) * ld
        lowest, near = nearest_in_row(
            distances, row, n, alive + side * N, state + (NAME + side) * N, sizes + side * N,
            tl.load(sizes + side * N + k), BLOCK, DTYPE, SUMS, False, False,
        )  # fmt: skip
        tl.store(state + (NEAREST + side) * N + k, near)
        tl.store(reals + (DISTANCE + side) * N + k, lowest)
