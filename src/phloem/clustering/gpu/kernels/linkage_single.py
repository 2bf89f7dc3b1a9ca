"""Single linkage, one merge at a time in one launch: no merge moves a nearest neighbour farther away.

Merging all reciprocal nearest neighbours at once would be wrong where distances tie: a merged cluster can
take the place of a neighbour that it ties with.
"""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.distance_counts import grid_barrier
from phloem.clustering.gpu.kernels.linkage_state import NO_PLACE, nearest_in_row

CLOSEST = tl.constexpr(0)  # a program's closest pair, its lower place
NEW = tl.constexpr(2)  # and its cluster nearest to the one just made (two steps of each)
REPORTS = 4


@triton.jit
def _least(values, places):
    """(lowest value, smallest place of it)."""
    lowest = tl.min(values, axis=0)
    return lowest, tl.min(tl.where(values == lowest, places, NO_PLACE), axis=0)


@triton.jit
def _reported(values, places, field, programs, PROGRAMS: tl.constexpr):
    """The least of what all programs reported."""
    lane = tl.arange(0, PROGRAMS)
    at = field * PROGRAMS + lane
    value = tl.load(values + at, mask=lane < programs, other=float("inf"))
    return _least(value, tl.load(places + at, mask=lane < programs, other=NO_PLACE))


@triton.jit
def _first_scan(
    distances, ld, nearest, distance, alive, start, stop, n, values, places,
    SCAN: tl.constexpr, PROGRAMS: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """Nearest neighbours of this program's clusters, and the closest pair of them."""
    closest, place = tl.full((), float("inf"), DTYPE), tl.full((), NO_PLACE, tl.int32)
    for k in range(start, stop):
        row = tl.load(nearest + k).to(tl.int64) * ld  # filled with the rows' numbers
        lowest, near, _ = nearest_in_row(
            distances, row, n, alive, nearest, distance, 1.0, SCAN, DTYPE, False, True, True
        )
        tl.store(nearest + k, near)
        tl.store(distance + k, lowest)
        place = tl.where(lowest < closest, k, place)
        closest = tl.minimum(closest, lowest)
    tl.store(values + CLOSEST * PROGRAMS + tl.program_id(0), closest)
    tl.store(places + CLOSEST * PROGRAMS + tl.program_id(0), place)


@triton.jit
def _merge(
    distances, ld, nearest, distance, alive, a, b, last, last_near, last_distance, start, stop, now,
    values, places, LANES: tl.constexpr, PROGRAMS: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """b becomes part of a: new entries, and neighbours, of this program's clusters; then its report.

    last: the cluster made in the step before, whose neighbour is known only now.
    """
    best, new = tl.full((LANES,), float("inf"), DTYPE), tl.full((LANES,), float("inf"), DTYPE)
    best_place, new_place = tl.full((LANES,), NO_PLACE, tl.int32), tl.full((LANES,), NO_PLACE, tl.int32)
    for first in range(start, stop, LANES):
        k = first + tl.arange(0, LANES)
        other = (k < stop) & (k != a) & (k != b)
        other = other & (tl.load(alive + k, mask=other, other=0) != 0)
        near, far = tl.load(nearest + k, mask=other, other=0), tl.load(distance + k, mask=other, other=0.0)
        near, far = tl.where(k == last, last_near, near), tl.where(k == last, last_distance, far)
        x = tl.load(distances + a.to(tl.int64) * ld + k, mask=other, other=0.0)
        y = tl.load(distances + b.to(tl.int64) * ld + k, mask=other, other=0.0)
        value = tl.minimum(x, y)
        tl.store(distances + a.to(tl.int64) * ld + k, value, mask=other)
        tl.store(distances + k.to(tl.int64) * ld + a, value, mask=other)
        near = tl.where((near == b) | ((value == far) & (a < near)), a, near)
        tl.store(nearest + k, near, mask=other)
        tl.store(distance + k, far, mask=other)
        tl.store(alive + k, 0, mask=k == b)
        best_place = tl.where(other & (far < best), k, best_place)
        best = tl.where(other & (far < best), far, best)
        new_place = tl.where(other & (value < new), k, new_place)
        new = tl.where(other & (value < new), value, new)
    at = now * PROGRAMS + tl.program_id(0)
    lowest, place = _least(best, best_place)
    tl.store(values + CLOSEST * PROGRAMS + at, lowest)
    tl.store(places + CLOSEST * PROGRAMS + at, place)
    lowest, place = _least(new, new_place)
    tl.store(values + NEW * PROGRAMS + at, lowest)
    tl.store(places + NEW * PROGRAMS + at, place)


@triton.jit(do_not_specialize=["n"])
def single_merges(
    distances, ld, nearest, distance, alive, n, lower, upper, merged, values, places, counters,
    SCAN: tl.constexpr, LANES: tl.constexpr, PROGRAMS: tl.constexpr, DTYPE: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """Merge the closest pair n - 1 times; pairs are ordered by (distance, smaller name, larger name).

    distances: as in linkage_rounds; a cluster keeps the place of its smallest leaf. nearest: 0 … n-1.
    alive: ones. lower, upper, merged: (n - 1,). values, places: (REPORTS × PROGRAMS,), infinite and NO_PLACE.
    counters: zeros; the second one is set to the merges made, fewer if a distance is not a number.
    """
    programs = tl.num_programs(0)
    per = tl.cdiv(n, programs)
    start = tl.program_id(0) * per
    stop = tl.minimum(start + per, n)
    _first_scan(
        distances, ld, nearest, distance, alive, start, stop, n, values, places, SCAN, PROGRAMS, DTYPE
    )
    grid_barrier(counters, programs, NATIVE)
    step, last = n - n, n - n - 1
    going = step < n - 1
    while going:
        now = step % 2
        far, a = _reported(values, places, CLOSEST + now, programs, PROGRAMS)
        last_distance, last_near = _reported(values, places, NEW + now, programs, PROGRAMS)
        newest = (last >= 0) & ((last_distance < far) | ((last_distance == far) & (last < a)))
        far, a = tl.where(newest, last_distance, far), tl.where(newest, last, a)
        going = far < float("inf")
        if going:
            b = tl.where(newest, last_near, tl.load(nearest + a))
            if tl.program_id(0) == 0:
                tl.store(lower + step, a)
                tl.store(upper + step, b)
                tl.store(merged + step, far)
            _merge(
                distances, ld, nearest, distance, alive, a, b, last, last_near, last_distance, start, stop,
                1 - now, values, places, LANES, PROGRAMS, DTYPE,
            )  # fmt: skip
            step, last = step + 1, a
            grid_barrier(counters, (step + 1) * programs, NATIVE)
            going = step < n - 1
    if tl.program_id(0) == 0:
        tl.store(counters + 1, step)
