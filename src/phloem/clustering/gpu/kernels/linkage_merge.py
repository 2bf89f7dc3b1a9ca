"""A round of linkage: who merges with whom, and rows of merged clusters where the matrix stays."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.linkage_state import (
    DISTANCE,
    HEIGHT_INTO,
    INTO,
    LOWER,
    MATE,
    MERGED,
    NAME,
    NEAREST,
    OTHER,
    PAIR,
    QUEUE,
    SECOND,
    SLOT,
    STALE,
    WEIGHT_LOWER,
    WEIGHT_UPPER,
    append,
    block_entry,
    combined,
    merge_weights,
    own_share,
)

# Bookkeeping of a round of reciprocal nearest neighbours; every program does its share of the places.


@triton.jit
def find_pairs(
    state, alive, reals, sizes, N, side, n, made, programs, counter, survivors,
    LANES: tl.constexpr, DTYPE: tl.constexpr, WEIGHTING: tl.constexpr,
):  # fmt: skip
    """Mates, the list of pairs and their merges; how many of this program's places survive."""
    begin, stop = own_share(n, programs, LANES)
    left = 0
    for start in range(begin, stop, LANES):
        k = start + tl.arange(0, LANES)
        inside = k < stop
        here = tl.load(alive + side * N + k, mask=inside, other=0) != 0
        near = tl.load(state + (NEAREST + side) * N + k, mask=inside, other=0)
        back = tl.load(state + (NEAREST + side) * N + near, mask=here, other=-1)
        paired = here & (back == k) & (near != k)
        lower = paired & (near > k)
        tl.store(state + MATE * N + k, tl.where(paired, near, -1), mask=inside)
        name = tl.load(state + (NAME + side) * N + k, mask=lower, other=0)
        other_name = tl.load(state + (NAME + side) * N + near, mask=lower, other=0)
        distance = tl.load(reals + (DISTANCE + side) * N + k, mask=lower, other=0.0)
        size = tl.load(sizes + side * N + k, mask=lower, other=1.0)
        other_size = tl.load(sizes + side * N + near, mask=lower, other=1.0)
        weight, other_weight = merge_weights(size, other_size, DTYPE, WEIGHTING)
        left += tl.sum((here & (lower | (paired == 0))).to(tl.int32), axis=0)
        place = append(counter, lower)
        tl.store(state + PAIR * N + place, k, mask=lower)
        tl.store(state + OTHER * N + place, near, mask=lower)
        tl.store(state + QUEUE * N + k, place, mask=lower)
        tl.store(reals + WEIGHT_LOWER * N + place, weight, mask=lower)
        tl.store(reals + WEIGHT_UPPER * N + place, other_weight, mask=lower)
        tl.store(state + LOWER * N + made + place, tl.minimum(name, other_name), mask=lower)
        tl.store(reals + MERGED * N + made + place, distance, mask=lower)
        upper = tl.maximum(name, other_name)
        tl.store(state + INTO * N + upper, tl.minimum(name, other_name), mask=lower)
        tl.store(reals + HEIGHT_INTO * N + upper, tl.maximum(distance, 0.0), mask=lower)  # no -0
    tl.store(survivors + tl.program_id(0), left)


@triton.jit
def new_clusters(
    state, alive, sizes, N, side, n, pairs, made, base, programs, LANES: tl.constexpr
):  # fmt: skip
    """Name, size and row of this round's new clusters (base: see linkage_merge); their members die."""
    between = n + tl.arange(0, 16)
    tl.store(alive + side * N + between, 0, mask=between < base)
    for start in range(tl.program_id(0) * LANES, pairs, programs * LANES):
        q = start + tl.arange(0, LANES)
        real = q < pairs
        a = tl.load(state + PAIR * N + q, mask=real, other=0)
        b = tl.load(state + OTHER * N + q, mask=real, other=0)
        size = tl.load(sizes + side * N + a, mask=real, other=0.0)
        size += tl.load(sizes + side * N + b, mask=real, other=0.0)
        slot = tl.load(state + (SLOT + side) * N + a, mask=real, other=0)
        name = tl.load(state + LOWER * N + made + q, mask=real, other=0)
        place = tl.where(base >= 0, base + q, a)
        tl.store(alive + side * N + b, 0, mask=real)
        tl.store(alive + side * N + a, 0, mask=real & (place != a))
        tl.store(alive + side * N + place, 1, mask=real)
        tl.store(state + (SLOT + side) * N + place, slot, mask=real)
        tl.store(state + (NAME + side) * N + place, name, mask=real)
        tl.store(sizes + side * N + place, size, mask=real)


@triton.jit
def list_stale(
    distances, ld, state, alive, reals, sizes, N, side, n, base, programs, counter, one_up, tiny, cap,
    LANES: tl.constexpr, DTYPE: tl.constexpr, WEIGHTING: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """Clusters whose nearest neighbour merged, and that did not: those that must look for a new one.

    The merged cluster (base: see linkage_merge) is the nearest neighbour still if it is nearer than all
    others were, or as near as before: then both its members were, and no other has a smaller name.
    """
    for start in range((programs - 1 - tl.program_id(0)) * LANES, n, programs * LANES):
        k = start + tl.arange(0, LANES)
        here = tl.load(alive + side * N + k, mask=k < n, other=0) != 0
        near = tl.load(state + (NEAREST + side) * N + k, mask=here, other=0)
        single = here & (tl.load(state + MATE * N + k, mask=here, other=0) < 0)
        mate = tl.load(state + MATE * N + near, mask=single, other=-1)
        moved = single & (mate >= 0)
        a, b = tl.minimum(near, mate), tl.maximum(near, mate)
        row = tl.load(state + (SLOT + side) * N + k, mask=moved, other=0).to(tl.int64) * ld
        size = tl.load(sizes + side * N + a, mask=moved, other=1.0)
        other_size = tl.load(sizes + side * N + b, mask=moved, other=1.0)
        weight, other_weight = merge_weights(size, other_size, DTYPE, WEIGHTING)
        x = tl.load(distances + row + a, mask=moved, other=0.0)
        y = tl.load(distances + row + b, mask=moved, other=0.0)
        now = combined(x, y, weight, other_weight, one_up, tiny, cap)
        if SUMS:
            now = now / (tl.load(sizes + side * N + k, mask=moved, other=1.0) * (size + other_size))
        was = tl.load(reals + (DISTANCE + side) * N + k, mask=moved, other=0.0)
        second = tl.load(reals + (SECOND + side) * N + k, mask=moved, other=0.0)
        follows = moved & ((now < second) | (now == was))
        place = a
        if base >= 0:
            place = base + tl.load(state + QUEUE * N + a, mask=follows, other=0)
        tl.store(state + (NEAREST + side) * N + k, place, mask=follows)
        tl.store(reals + (DISTANCE + side) * N + k, now, mask=follows)
        stale = moved & (follows == 0)
        tl.store(state + STALE * N + append(counter, stale), k, mask=stale)


# A round that leaves the matrix where it is: rows of merged clusters, and their mirrored columns.


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
