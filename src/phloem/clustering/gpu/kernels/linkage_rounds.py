"""All rounds of reciprocal nearest neighbours in one launch (Bruynooghe 1978; Murtagh 1983).

These methods are reducible: merging a pair brings no other pair closer, so all reciprocal nearest neighbours
may merge at once, and only clusters that merged, or whose neighbour did, look for a new one.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.distance_barrier import grid_barrier
from phloem.clustering.gpu.kernels.linkage_entries import limits
from phloem.clustering.gpu.kernels.linkage_merge import merge_pairs
from phloem.clustering.gpu.kernels.linkage_pairs import find_pairs, list_stale, new_clusters
from phloem.clustering.gpu.kernels.linkage_rewrite import list_kept, rewrite
from phloem.clustering.gpu.kernels.linkage_scan import scan_listed
from phloem.clustering.gpu.kernels.linkage_twins import find_twins, first_scan, merge_twins

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
