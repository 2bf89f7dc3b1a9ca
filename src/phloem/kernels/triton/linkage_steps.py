"""Steps of a round of reciprocal nearest neighbours; every program of the grid does its share of each.

state: (FIELDS, N) int32, one row a field; two rows (+ side) where a rewritten matrix needs old and new.
reals: (5, N) in the matrix's precision. sizes: (2, N) float64, leaves of a cluster. N ≥ clusters + 16.
A cluster's place is its column; places are in the order of names (smallest leaves).
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.linkage_entries import block_entry, nearest_in_row

NEAREST = tl.constexpr(0)  # place of the nearest neighbour (2 rows)
SLOT = tl.constexpr(2)  # row of the matrix (2 rows)
NAME = tl.constexpr(4)  # smallest leaf (2 rows)
ALIVE = tl.constexpr(6)  # 1 or 0 (2 rows)
MATE = tl.constexpr(8)  # place of the cluster it merges with in this round, or -1
KEEP = tl.constexpr(9)  # places that stay when the matrix is rewritten
STALE = tl.constexpr(10)  # places to scan again
PAIR = tl.constexpr(11)  # lower places of this round's pairs
LOWER = tl.constexpr(12)  # names merged so far
UPPER = tl.constexpr(13)
ZEROS = tl.constexpr(14)  # zeros in a row
TWINS = tl.constexpr(15)  # identical rows that come later
KEEP_MATE = tl.constexpr(16)  # mates of the kept places, or -1
FIELDS = 17

DISTANCE = tl.constexpr(0)  # to the nearest neighbour (2 rows)
MERGED = tl.constexpr(2)  # distance of each merge
WEIGHT_LOWER = tl.constexpr(3)  # weights of the two members of a pair, kept at the lower place
WEIGHT_UPPER = tl.constexpr(4)
REALS = 5


@triton.jit
def append(counter, chosen):
    """Places for the chosen lanes in a list shared by all programs."""
    mine = chosen.to(tl.int32)
    return tl.atomic_add(counter, tl.sum(mine, axis=0)) + tl.cumsum(mine, axis=0) - 1


@triton.jit
def find_pairs(
    state, reals, sizes, N, side, n, made, programs, counter, survivors,
    LANES: tl.constexpr, DTYPE: tl.constexpr, WEIGHTING: tl.constexpr,
):  # fmt: skip
    """Mates of this program's places, the list of pairs and their merges; how many of its places survive.

    WEIGHTING: 0 by size (UPGMA), 1 halves (WPGMA), 2 ones (complete linkage, sums over pairs of leaves).
    """
    per = tl.cdiv(n, programs)
    stop = tl.minimum((tl.program_id(0) + 1) * per, n)
    left = 0
    for start in range(tl.program_id(0) * per, stop, LANES):
        k = start + tl.arange(0, LANES)
        inside = k < stop
        alive = tl.load(state + (ALIVE + side) * N + k, mask=inside, other=0) != 0
        near = tl.load(state + (NEAREST + side) * N + k, mask=inside, other=0)
        back = tl.load(state + (NEAREST + side) * N + near, mask=alive, other=-1)
        paired = alive & (back == k)
        lower = paired & (near > k)
        tl.store(state + MATE * N + k, tl.where(paired, near, -1), mask=inside)
        name = tl.load(state + (NAME + side) * N + k, mask=lower, other=0)
        other_name = tl.load(state + (NAME + side) * N + near, mask=lower, other=0)
        distance = tl.load(reals + (DISTANCE + side) * N + k, mask=lower, other=0.0)
        if WEIGHTING == 0:
            size = tl.load(sizes + side * N + k, mask=lower, other=1.0)
            other_size = tl.load(sizes + side * N + near, mask=lower, other=1.0)
            weight, other_weight = size / (size + other_size), other_size / (size + other_size)
        else:
            weight = tl.full((LANES,), 0.5 if WEIGHTING == 1 else 1.0, tl.float64)
            other_weight = weight
        tl.store(reals + WEIGHT_LOWER * N + k, weight.to(DTYPE), mask=lower)
        tl.store(reals + WEIGHT_UPPER * N + k, other_weight.to(DTYPE), mask=lower)
        left += tl.sum((alive & (lower | (back != k))).to(tl.int32), axis=0)
        place = append(counter, lower)
        tl.store(state + PAIR * N + place, k, mask=lower)
        tl.store(state + LOWER * N + made + place, name, mask=lower)
        tl.store(state + UPPER * N + made + place, other_name, mask=lower)
        tl.store(reals + MERGED * N + made + place, distance, mask=lower)
    tl.store(survivors + tl.program_id(0), left)


@triton.jit
def merge_in_place(
    distances, ld, state, reals, N, side, n, pairs, programs, one_up, tiny, cap,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """New rows of the pairs' lower members, mirrored into their columns. Dead columns are left as they are:
    the entries of an upper member are read by whoever needs them, in any order."""
    chunks = tl.cdiv(n, BLOCK)
    for item in range(tl.program_id(0), pairs * chunks, programs):
        a = tl.load(state + PAIR * N + item // chunks)
        c = (item % chunks) * BLOCK + tl.arange(0, BLOCK)
        d = tl.load(state + MATE * N + c, mask=c < n, other=-1)
        live = tl.load(state + (ALIVE + side) * N + c, mask=c < n, other=0) != 0
        column_row = tl.load(state + (SLOT + side) * N + c, mask=c < n, other=0).to(tl.int64) * ld
        b = tl.load(state + MATE * N + a)
        row = tl.load(state + (SLOT + side) * N + a).to(tl.int64) * ld
        other = tl.load(state + (SLOT + side) * N + b).to(tl.int64) * ld
        w_a, w_b = tl.load(reals + WEIGHT_LOWER * N + a), tl.load(reals + WEIGHT_UPPER * N + a)
        height = tl.load(reals + (DISTANCE + side) * N + a)
        live = live & ((d < 0) | (d > c))
        merging = live & (d > c)
        w_c = tl.load(reals + WEIGHT_LOWER * N + c, mask=merging, other=1.0)
        w_d = tl.load(reals + WEIGHT_UPPER * N + c, mask=merging, other=0.0)
        column_height = tl.load(reals + (DISTANCE + side) * N + c, mask=merging, other=0.0)
        ac = tl.load(distances + row + c, mask=live, other=0.0)
        bc = tl.load(distances + other + c, mask=live, other=0.0)
        ad = tl.load(distances + row + d, mask=merging, other=0.0)
        bd = tl.load(distances + other + d, mask=merging, other=0.0)
        first = (height < column_height) | ((height == column_height) & (a < c))
        value = block_entry(ac, ad, bc, bd, w_a, w_b, w_c, w_d, first, merging, one_up, tiny, cap)
        value = tl.where(c == a, float("inf"), value)
        tl.store(distances + row + c, value, mask=live)
        mirror = live & (d < 0)
        tl.store(distances + column_row + a, value, mask=mirror)


@triton.jit
def list_stale(state, sizes, N, side, n, programs, counter, LANES: tl.constexpr):
    """Clusters that merged, or whose nearest neighbour did; upper members die, lower ones grow."""
    per = tl.cdiv(n, programs)
    stop = tl.minimum((tl.program_id(0) + 1) * per, n)
    for start in range(tl.program_id(0) * per, stop, LANES):
        k = start + tl.arange(0, LANES)
        inside = k < stop
        alive = tl.load(state + (ALIVE + side) * N + k, mask=inside, other=0) != 0
        mate = tl.load(state + MATE * N + k, mask=alive, other=-1)
        near = tl.load(state + (NEAREST + side) * N + k, mask=alive, other=0)
        touched = tl.load(state + MATE * N + near, mask=alive, other=-1) >= 0
        lower, upper = alive & (mate > k), alive & (mate >= 0) & (mate < k)
        tl.store(state + (ALIVE + side) * N + k, 0, mask=upper)
        size = tl.load(sizes + side * N + k, mask=lower, other=0.0)
        size += tl.load(sizes + side * N + mate, mask=lower, other=0.0)
        tl.store(sizes + side * N + k, size, mask=lower)
        stale = lower | (alive & (mate < 0) & touched)
        tl.store(state + STALE * N + append(counter, stale), k, mask=stale)


@triton.jit
def scan_stale(
    distances, ld, state, reals, sizes, N, side, n, stale, programs,
    BLOCK: tl.constexpr, DTYPE: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """Nearest neighbours of the listed clusters."""
    for item in range(tl.program_id(0), stale, programs):
        k = tl.load(state + STALE * N + item)
        row = tl.load(state + (SLOT + side) * N + k).to(tl.int64) * ld
        lowest, first, _ = nearest_in_row(
            distances, row, n, k, state + (ALIVE + side) * N, sizes + side * N, tl.load(sizes + side * N + k),
            BLOCK, DTYPE, SUMS,
        )  # fmt: skip
        tl.store(state + (NEAREST + side) * N + k, first)
        tl.store(reals + (DISTANCE + side) * N + k, lowest)
