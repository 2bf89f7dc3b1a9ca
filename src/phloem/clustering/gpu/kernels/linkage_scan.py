"""Nearest neighbours of rows."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.linkage_state import DISTANCE, NAME, NEAREST, PAIR, SECOND, SLOT, STALE

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
