"""Bookkeeping of a round of reciprocal nearest neighbours; every program does its share of the places."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.linkage_entries import combined
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
    merge_weights,
    own_share,
)


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
