"""All rounds of reciprocal nearest neighbours in one launch (Bruynooghe 1978; Murtagh 1983).

These methods are reducible: merging a pair brings no other pair closer, so all reciprocal nearest neighbours
may merge at once, and only clusters that merged, or whose neighbour did, look for a new one.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.distance_barrier import grid_barrier
from phloem.kernels.triton.linkage_entries import nearest_in_row, rows_equal
from phloem.kernels.triton.linkage_rewrite import list_kept, rewrite
from phloem.kernels.triton.linkage_steps import (
    ALIVE,
    DISTANCE,
    LOWER,
    MATE,
    MERGED,
    NEAREST,
    SLOT,
    TWINS,
    UPPER,
    ZEROS,
    append,
    find_pairs,
    list_stale,
    merge_in_place,
    scan_stale,
)

ARRIVED = tl.constexpr(0)  # programs at the barrier
TWIN_PAIRS = tl.constexpr(1)  # rows with a zero, then identical rows
COPIES = tl.constexpr(2)
PAIRS = tl.constexpr(3)  # this round's and the next one's
TO_SCAN = tl.constexpr(5)
ROUNDS = tl.constexpr(7)
MADE = tl.constexpr(8)  # merges: fewer than n - 1 if a distance is not a number
COUNTERS = 9


@triton.jit
def _first_scan(
    distances, ld, state, reals, sizes, N, n, programs, counters,
    BLOCK: tl.constexpr, DTYPE: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """Every row's nearest neighbour, and how many zeros it has."""
    for k in range(tl.program_id(0), n, programs):
        row = tl.load(state + SLOT * N + k).to(tl.int64) * ld
        lowest, first, zeros = nearest_in_row(
            distances, row, n, k, state + ALIVE * N, sizes, 1.0, BLOCK, DTYPE, SUMS
        )
        tl.store(state + NEAREST * N + k, first)
        tl.store(reals + DISTANCE * N + k, lowest)
        tl.store(state + ZEROS * N + k, zeros)
        tl.store(state + MATE * N + k, -1)
        if (zeros > 0) & (first < k):
            tl.atomic_add(counters + TWIN_PAIRS, 1)


@triton.jit
def _find_twins(distances, ld, state, reals, N, n, programs, BLOCK: tl.constexpr):
    """TWINS[j] counts the rows identical to row j that come later; their own entry becomes -1 - j."""
    for k in range(tl.program_id(0), n, programs):
        near = tl.load(state + NEAREST * N + k)
        if (tl.load(reals + DISTANCE * N + k) == 0) & (near < k):
            row = tl.load(state + SLOT * N + k).to(tl.int64) * ld
            if rows_equal(distances, row, near.to(tl.int64) * ld, n, k, near, BLOCK) == 1:
                tl.store(state + TWINS * N + k, -1 - near)
                tl.atomic_add(state + TWINS * N + near, 1)


@triton.jit
def _merge_twins(state, reals, sizes, N, n, programs, counters, survivors, LANES: tl.constexpr):
    """Merge a class of identical rows at distance zero if nothing outside it is at distance zero from it."""
    per = tl.cdiv(n, programs)
    stop = tl.minimum((tl.program_id(0) + 1) * per, n)
    left = 0
    for start in range(tl.program_id(0) * per, stop, LANES):
        k = start + tl.arange(0, LANES)
        inside = k < stop
        first = -1 - tl.load(state + TWINS * N + k, mask=inside, other=0)
        twin = inside & (first >= 0)
        count = tl.load(state + TWINS * N + first, mask=twin, other=0)
        copy = twin & (count == tl.load(state + ZEROS * N + first, mask=twin, other=-1))
        place = append(counters + COPIES, copy)
        tl.store(state + LOWER * N + place, first, mask=copy)
        tl.store(state + UPPER * N + place, k, mask=copy)
        tl.store(reals + MERGED * N + place, 0.0, mask=copy)
        tl.store(state + ALIVE * N + k, 0, mask=copy)
        tl.atomic_add(sizes + first, 1.0, mask=copy)
        left += tl.sum((inside & (copy == 0)).to(tl.int32), axis=0)
    tl.store(survivors + tl.program_id(0), left)


@triton.jit(do_not_specialize=["n"])
def linkage_rounds(
    distances, ld, state, reals, sizes, N, n, constants, counters, survivors,
    SCAN: tl.constexpr, MERGE: tl.constexpr, COLUMNS: tl.constexpr, LANES: tl.constexpr,
    PROGRAMS: tl.constexpr, DENSE: tl.constexpr, SMALL: tl.constexpr, DTYPE: tl.constexpr,
    WEIGHTING: tl.constexpr, SUMS: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Merge until one cluster is left; merges are in state[LOWER], state[UPPER] and reals[MERGED], unordered.

    distances: rows of ld entries (a multiple of 16), symmetric, infinite diagonal; overwritten. state, reals,
    sizes: see linkage_steps. counters: zeros. survivors: (PROGRAMS,). A round that merges more than n / DENSE
    clusters, or one after which a quarter of the columns is dead, rewrites the matrix if n > SMALL.
    """
    programs = tl.num_programs(0)
    one_up, tiny, cap = tl.load(constants), tl.load(constants + 1), tl.load(constants + 2)
    left, made, side, rounds, arrivals = n, n - n, n - n, n - n, programs
    _first_scan(distances, ld, state, reals, sizes, N, n, programs, counters, SCAN, DTYPE, SUMS)
    grid_barrier(counters + ARRIVED, arrivals, NATIVE)
    if tl.load(counters + TWIN_PAIRS) > 0:
        _find_twins(distances, ld, state, reals, N, n, programs, SCAN)
        grid_barrier(counters + ARRIVED, arrivals + programs, NATIVE)
        _merge_twins(state, reals, sizes, N, n, programs, counters, survivors, LANES)
        grid_barrier(counters + ARRIVED, arrivals + 2 * programs, NATIVE)
        made = tl.load(counters + COPIES)
        arrivals += 2 * programs
        if made > 0:
            list_kept(state, N, side, n, programs, survivors, LANES, PROGRAMS)
            grid_barrier(counters + ARRIVED, arrivals + programs, NATIVE)
            left -= made
            rewrite(
                distances, ld, state, reals, sizes, N, side, left, 1, programs, one_up, tiny, cap,
                COLUMNS, DTYPE, SUMS,
            )  # fmt: skip
            grid_barrier(counters + ARRIVED, arrivals + 2 * programs, NATIVE)
            arrivals += 2 * programs
            side, n = 1 - side, left
    while left > 1:
        now = rounds % 2
        find_pairs(
            state, reals, sizes, N, side, n, made, programs, counters + PAIRS + now, survivors,
            LANES, DTYPE, WEIGHTING,
        )  # fmt: skip
        grid_barrier(counters + ARRIVED, arrivals + programs, NATIVE)
        pairs = tl.load(counters + PAIRS + now)
        if tl.program_id(0) == 0:
            tl.store(counters + PAIRS + 1 - now, 0)
            tl.store(counters + TO_SCAN + 1 - now, 0)
        left = tl.where(pairs > 0, left - pairs, 0)
        made += pairs
        rounds += 1
        if (n > SMALL) & ((pairs * DENSE > n) | (left * 4 < n * 3)):
            list_kept(state, N, side, n, programs, survivors, LANES, PROGRAMS)
            grid_barrier(counters + ARRIVED, arrivals + 2 * programs, NATIVE)
            rewrite(
                distances, ld, state, reals, sizes, N, side, left, 0, programs, one_up, tiny, cap,
                COLUMNS, DTYPE, SUMS,
            )  # fmt: skip
            side, n = 1 - side, left
        else:
            merge_in_place(distances, ld, state, reals, N, side, n, pairs, programs, one_up, tiny, cap, MERGE)
            list_stale(state, sizes, N, side, n, programs, counters + TO_SCAN + now, LANES)
            grid_barrier(counters + ARRIVED, arrivals + 2 * programs, NATIVE)
            stale = tl.load(counters + TO_SCAN + now)
            scan_stale(distances, ld, state, reals, sizes, N, side, n, stale, programs, SCAN, DTYPE, SUMS)
        arrivals += 3 * programs
        grid_barrier(counters + ARRIVED, arrivals, NATIVE)
    if tl.program_id(0) == 0:
        tl.store(counters + ROUNDS, rounds)
        tl.store(counters + MADE, made)
