"""Dead columns go: every row moves its living entries to the left, and places are counted anew."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.nj_steps import (
    BEST_LOWER,
    BEST_UPPER,
    BOUND,
    KEEP,
    NAME,
    NEAR,
    NEAR_DISTANCE,
    PLACE,
    SLOT,
    SUMS,
    SURVIVORS,
    U,
)


@triton.jit
def _share(reals, N, turn, n, programs, LANES: tl.constexpr):
    """Places of this program's share, and 1 where the cluster lives."""
    per = tl.cdiv(n, programs)
    k = tl.program_id(0) * per + tl.arange(0, LANES)
    inside = (tl.arange(0, LANES) < per) & (k < n)
    u = tl.load(reals + (U + turn) * N + k, mask=inside, other=float("-inf"))
    return k, (u > float("-inf")).to(tl.int32)


@triton.jit
def count_alive(reals, notes, N, turn, n, programs, LANES: tl.constexpr, PROGRAMS: tl.constexpr):
    """How many clusters of this program's share live."""
    _, alive = _share(reals, N, turn, n, programs, LANES)
    tl.store(notes + SURVIVORS * PROGRAMS + tl.program_id(0), tl.sum(alive, axis=0))


@triton.jit
def list_alive(state, reals, notes, N, turn, n, programs, LANES: tl.constexpr, PROGRAMS: tl.constexpr):
    """Places that stay, in order, and the new place of each (-1: none)."""
    p = tl.arange(0, PROGRAMS)
    earlier = tl.load(notes + SURVIVORS * PROGRAMS + p, mask=p < tl.program_id(0), other=0)
    k, alive = _share(reals, N, turn, n, programs, LANES)
    place = tl.sum(earlier, axis=0) + tl.cumsum(alive, axis=0) - 1
    mine = (tl.arange(0, LANES) < tl.cdiv(n, programs)) & (k < n)
    tl.store(state + KEEP * N + place, k, mask=alive != 0)
    tl.store(state + PLACE * N + k, tl.where(alive != 0, place, -1), mask=mine)


@triton.jit
def _move_state(state, reals, N, side, turn, i, k):
    """What is known of cluster k, at its new place i."""
    new = 1 - side
    near = tl.load(state + (NEAR + side) * N + k)
    if near >= 0:
        near = tl.load(state + PLACE * N + near)
    tl.store(state + (NEAR + new) * N + i, near)
    tl.store(state + (SLOT + new) * N + i, tl.load(state + (SLOT + side) * N + k))
    tl.store(state + (NAME + new) * N + i, tl.load(state + (NAME + side) * N + k))
    tl.store(reals + (SUMS + new) * N + i, tl.load(reals + (SUMS + side) * N + k))
    tl.store(reals + (BOUND + new) * N + i, tl.load(reals + (BOUND + side) * N + k))
    distance = tl.load(reals + (NEAR_DISTANCE + side) * N + k)
    tl.store(reals + (NEAR_DISTANCE + new) * N + i, distance)
    tl.store(reals + (U + 1 - turn) * N + i, tl.load(reals + (U + turn) * N + k))


@triton.jit
def drop_dead(
    distances, ld, state, reals, notes, N, side, turn, kept, programs, BLOCK: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """The matrix without dead columns, inside its rows from left to right: no column moves to the right."""
    for i in range(tl.program_id(0), kept, programs):
        k = tl.load(state + KEEP * N + i)
        _move_state(state, reals, N, side, turn, i, k)
        row = tl.load(state + (SLOT + side) * N + k).to(tl.int64) * ld
        for start in range(0, kept, BLOCK):
            j = start + tl.arange(0, BLOCK)
            c = tl.load(state + KEEP * N + j, mask=j < kept, other=0)
            value = tl.load(distances + row + c, mask=j < kept, other=0.0)
            tl.debug_barrier()
            tl.store(distances + row + j, value, mask=j < kept)
    me = tl.program_id(0)
    upper = tl.load(notes + BEST_UPPER * PROGRAMS + me)
    if upper >= 0:
        lower = tl.load(notes + BEST_LOWER * PROGRAMS + me)
        tl.store(notes + BEST_UPPER * PROGRAMS + me, tl.load(state + PLACE * N + upper))
        tl.store(notes + BEST_LOWER * PROGRAMS + me, tl.load(state + PLACE * N + lower))
