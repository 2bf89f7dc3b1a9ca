"""All rounds of reciprocal nearest neighbours in one launch, after the identical rows."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.distance_counts import grid_barrier
from phloem.clustering.gpu.kernels.linkage_merge import find_pairs, list_stale, merge_pairs, new_clusters
from phloem.clustering.gpu.kernels.linkage_rewrite import list_kept, rewrite
from phloem.clustering.gpu.kernels.linkage_state import (
    DISTANCE,
    HEIGHT_INTO,
    INTO,
    MATE,
    NAME,
    NEAREST,
    SECOND,
    SLOT,
    STALE,
    TWINS,
    ZEROS,
    append,
    limits,
    nearest_in_row,
    own_share,
    scan_listed,
    zeros_in_row,
)

# The first scan, and identical rows, which merge before the first round.


@triton.jit
def first_scan(
    distances, ld, state, alive, reals, sizes, N, n, programs, counter,
    BLOCK: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """The state of clusters of one leaf, infinite diagonal, every row's nearest neighbour.

    counter: rows at distance zero from an earlier one.
    """
    for k in range(tl.program_id(0), n, programs):
        tl.store(state + SLOT * N + k, k)
        tl.store(state + NAME * N + k, k)
        tl.store(alive + k, 1)
        row = k * tl.full((), 1, tl.int64) * ld
        tl.store(distances + row + k, float("inf"))
        tl.debug_barrier()
        lowest, near, after = nearest_in_row(
            distances, row, n, alive, state + NAME * N, sizes, 1.0, BLOCK, DTYPE, False, True, True
        )
        tl.store(state + NEAREST * N + k, near)
        tl.store(reals + DISTANCE * N + k, lowest)
        tl.store(reals + SECOND * N + k, after)
        if lowest == 0:
            tl.store(state + ZEROS * N + k, zeros_in_row(distances, row, n, BLOCK))
            if near < k:
                tl.atomic_add(counter, 1)


@triton.jit
def _rows_equal(distances, row, other, n, me, other_me, BLOCK: tl.constexpr):
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


@triton.jit
def find_twins(distances, ld, state, reals, N, n, programs, BLOCK: tl.constexpr):
    """TWINS[j] counts the rows identical to row j that come later; their own entry becomes -1 - j."""
    for k in range(tl.program_id(0), n, programs):
        near = tl.load(state + NEAREST * N + k)
        if (tl.load(reals + DISTANCE * N + k) == 0) & (near < k):
            row = tl.load(state + SLOT * N + k).to(tl.int64) * ld
            if _rows_equal(distances, row, near.to(tl.int64) * ld, n, k, near, BLOCK) == 1:
                tl.store(state + TWINS * N + k, -1 - near)
                tl.atomic_add(state + TWINS * N + near, 1)


@triton.jit
def merge_twins(state, alive, reals, sizes, N, n, programs, counter, to_scan, survivors, LANES: tl.constexpr):
    """Merge a class of identical rows at distance zero if nothing outside it is at distance zero from it.

    to_scan counts the first ones of such classes, in state[STALE]: only they lose their nearest neighbour.
    """
    begin, stop = own_share(n, programs, LANES)
    left = 0
    for start in range(begin, stop, LANES):
        k = start + tl.arange(0, LANES)
        inside = k < stop
        twins = tl.load(state + TWINS * N + k, mask=inside, other=0)
        first, twin = -1 - twins, twins < 0
        count = tl.load(state + TWINS * N + first, mask=twin, other=0)
        copy = twin & (count == tl.load(state + ZEROS * N + first, mask=twin, other=-1))
        tl.atomic_add(counter, tl.sum(copy.to(tl.int32), axis=0))
        tl.store(state + INTO * N + k, first, mask=copy)
        tl.store(reals + HEIGHT_INTO * N + k, 0.0, mask=copy)
        tl.store(alive + k, 0, mask=copy)
        tl.atomic_add(sizes + first, tl.load(sizes + k, mask=copy, other=0.0), mask=copy)
        tl.store(state + MATE * N + k, -1, mask=inside)
        left += tl.sum((inside & (copy == 0)).to(tl.int32), axis=0)
        kept = (twins > 0) & (twins == tl.load(state + ZEROS * N + k, mask=inside, other=0))
        tl.store(state + STALE * N + append(to_scan, kept), k, mask=kept)
    tl.store(survivors + tl.program_id(0), left)


# All rounds of reciprocal nearest neighbours in one launch (Bruynooghe 1978; Murtagh 1983).
#
# These methods are reducible: merging a pair brings no other pair closer, so all reciprocal nearest
# neighbours may merge at once, and only clusters that merged, or whose neighbour did, look for a new one.


ARRIVED = tl.constexpr(0)  # programs at the barrier
TWIN_PAIRS = tl.constexpr(1)  # rows with a zero, then identical rows
COPIES = tl.constexpr(2)
PAIRS = tl.constexpr(3)  # this round's
TO_SCAN = tl.constexpr(4)
KEPT_ROWS = tl.constexpr(5)  # rows that merge, and others, of a matrix that is rewritten
ROUNDS = tl.constexpr(7)
MADE = tl.constexpr(8)  # merges: fewer than n - 1 if a distance is not a number
COUNTERS = 9


@triton.jit
def _forget(counters):
    """This round's counts, once all programs have read them."""
    if tl.program_id(0) == 0:
        tl.store(counters + PAIRS, 0)
        tl.store(counters + KEPT_ROWS, 0)
        tl.store(counters + KEPT_ROWS + 1, 0)


@triton.jit(do_not_specialize=["n"])
def linkage_rounds(
    distances, ld, state, alive, reals, sizes, N, n, counters, survivors, SCAN: tl.constexpr,
    PAIR_ROWS: tl.constexpr, MERGE: tl.constexpr, COLUMNS: tl.constexpr, LANES: tl.constexpr,
    PROGRAMS: tl.constexpr, DENSE: tl.constexpr, LOOSE: tl.constexpr, SMALL: tl.constexpr,
    DTYPE: tl.constexpr, WEIGHTING: tl.constexpr, SUMS: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Merge until one cluster is left; merges are in state[INTO] and reals[HEIGHT_INTO], 1 … n-1.

    distances: rows of ld entries (a multiple of 16), symmetric, any diagonal; overwritten. state, alive,
    reals, sizes: see linkage_state; state and counters zeros, sizes[0] leaves. survivors: (PROGRAMS,).
    A round gives its new clusters columns of their own while the rows have any left. It rewrites the matrix
    instead if less than 1 / LOOSE of its columns stays alive, or if none are left and many merge (1 / DENSE)
    or are dead, and before the first round if many rows were identical.
    """
    programs = tl.num_programs(0)
    one_up, tiny, cap = limits(DTYPE, SUMS)
    left, side, rounds, arrivals = n, n - n, n - n, programs
    first_scan(distances, ld, state, alive, reals, sizes, N, n, programs, counters + TWIN_PAIRS, SCAN, DTYPE)
    grid_barrier(counters + ARRIVED, arrivals, NATIVE)
    if tl.load(counters + TWIN_PAIRS) > 0:
        find_twins(distances, ld, state, reals, N, n, programs, SCAN)
        grid_barrier(counters + ARRIVED, arrivals + programs, NATIVE)
        merge_twins(
            state, alive, reals, sizes, N, n, programs, counters + COPIES, counters + TO_SCAN, survivors,
            LANES,
        )  # fmt: skip
        grid_barrier(counters + ARRIVED, arrivals + 2 * programs, NATIVE)
        arrivals += 2 * programs
    made = tl.load(counters + COPIES)
    collapse = made > 0
    while left > 1:
        pairs, base, rewriting = n - n, n - n - 1, collapse & ((made * 4 > n) | SUMS)
        if collapse:
            left -= made
        else:
            find_pairs(
                state, alive, reals, sizes, N, side, n, made, programs, counters + PAIRS, survivors,
                LANES, DTYPE, WEIGHTING,
            )  # fmt: skip
            grid_barrier(counters + ARRIVED, arrivals + programs, NATIVE)
            arrivals += programs
            pairs = tl.load(counters + PAIRS)
            left = tl.where(pairs > 0, left - pairs, 0)
            rounds += 1
            base = (n + 15) // 16 * 16
            base = tl.where(base + (pairs + 15) // 16 * 16 <= ld, base, -1)
            scattered = (base < 0) & ((pairs * DENSE > n) | (left * 4 < n * 3))
            rewriting = (n > SMALL) & ((left * LOOSE < n) | scattered)
        if rewriting:
            list_kept(
                state, alive, reals, sizes, N, side, n, programs, survivors, counters + KEPT_ROWS,
                LANES, PROGRAMS, DTYPE, WEIGHTING,
            )  # fmt: skip
        elif collapse == 0:
            list_stale(
                distances, ld, state, alive, reals, sizes, N, side, n, base, programs, counters + TO_SCAN,
                one_up, tiny, cap, LANES, DTYPE, WEIGHTING, SUMS,
            )  # fmt: skip
            if base < 0:  # entries that were just read are overwritten
                grid_barrier(counters + ARRIVED, arrivals + programs, NATIVE)
                arrivals += programs
            merge_pairs(
                distances, ld, state, alive, reals, N, side, n, pairs, made, base, programs,
                one_up, tiny, cap, PAIR_ROWS, MERGE,
            )  # fmt: skip
            new_clusters(state, alive, sizes, N, side, n, pairs, made, base, programs, LANES)
        grid_barrier(counters + ARRIVED, arrivals + programs, NATIVE)
        stale = tl.load(counters + TO_SCAN)
        made += pairs
        if rewriting:
            rewrite(
                distances, ld, state, alive, reals, sizes, N, side, left, pairs, collapse, programs,
                one_up, tiny, cap, COLUMNS, SCAN, DTYPE, SUMS,
            )  # fmt: skip
            side, n = 1 - side, left
        else:
            n = tl.where(base >= 0, base + pairs, n)
            scan_listed(
                distances, ld, state, alive, reals, sizes, N, side, n, pairs, base, stale, programs,
                SCAN, DTYPE, SUMS,
            )  # fmt: skip
        _forget(counters)
        arrivals += 2 * programs
        grid_barrier(counters + ARRIVED, arrivals, NATIVE)
        if tl.program_id(0) == 0:
            tl.store(counters + TO_SCAN, 0)
        collapse = left < 0
    if tl.program_id(0) == 0:
        tl.store(counters + ROUNDS, rounds)
        tl.store(counters + MADE, made)
