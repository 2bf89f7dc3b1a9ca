"""Exact neighbour joining in one launch: two meetings of all programs a join (reference/nj.py)."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.distance_barrier import grid_barrier
from phloem.kernels.triton.nj_compaction import count_alive, drop_dead, list_alive
from phloem.kernels.triton.nj_steps import (
    BOUND,
    MESSAGES,
    NEAR,
    NEAR_DISTANCE,
    NOTES,
    RISE,
    SLOT,
    SUMS,
    TOTAL,
    U,
    best_known,
    closest_pair,
    join,
    lowest_in_row,
    own_rows,
    row_sum,
    search,
)

ARRIVED = tl.constexpr(0)  # programs at the barrier
ROWS_READ = tl.constexpr(1)
SIDE = tl.constexpr(2)  # which of two rows holds the final values
TURN = tl.constexpr(3)
COUNTERS = 4


@triton.jit
def _start(
    distances, ld, state, reals, counters, N, n, programs, BLOCK: tl.constexpr, NATIVE: tl.constexpr
):  # fmt: skip
    """Sums, u and every row's smallest d_ij - u_j."""
    for i in range(tl.program_id(0), n, programs):
        row = tl.load(state + SLOT * N + i).to(tl.int64) * ld
        total = row_sum(distances, row, n, BLOCK)
        tl.store(reals + SUMS * N + i, total)
        tl.store(reals + U * N + i, total / (n - 2))
    grid_barrier(counters + ARRIVED, programs, NATIVE)
    for i in range(tl.program_id(0), n, programs):
        row = tl.load(state + SLOT * N + i).to(tl.int64) * ld
        lowest, first, distance = lowest_in_row(distances, row, i, reals + U * N, -1, 0.0, BLOCK)
        tl.store(reals + BOUND * N + i, lowest)
        tl.store(state + NEAR * N + i, first)
        tl.store(reals + NEAR_DISTANCE * N + i, distance)


@triton.jit(do_not_specialize=["n"])
def nj_exact(
    distances, ld, state, reals, messages, notes, N, n, counters,
    BLOCK: tl.constexpr, LANES: tl.constexpr, PROGRAMS: tl.constexpr, SMALL: tl.constexpr,
    DTYPE: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Join until four clusters are left; joins are in state[LOWER], state[UPPER], reals[ABOVE_…], in order.

    distances: rows of ld entries (a multiple of 16), symmetric, zero diagonal; overwritten. state, reals,
    messages, notes: see nj_steps; PROGRAMS columns. LANES × programs ≥ n. counters: zeros.
    Columns are dropped when a quarter of them is dead, while n > SMALL.
    """
    programs = tl.num_programs(0)
    me = tl.program_id(0)
    lane = tl.arange(0, PROGRAMS)
    told, noted = messages, notes  # of the last search; the next one tells elsewhere: some may still read
    side, turn, left, made, read = n - n, n - n, n, n - n, n - n
    fallen = (n - n).to(tl.float64)
    _start(distances, ld, state, reals, counters, N, n, programs, BLOCK, NATIVE)
    tl.debug_barrier()
    u_i, d_a, slot, near, at, u_near, bound = own_rows(
        distances, fallen.to(tl.int64), state, reals, N, side, turn, n, n, programs, LANES
    )
    search(
        distances, ld, state, reals, messages, notes, N, side, turn, n, n, 0.0, fallen, float("-inf"),
        programs, u_i, d_a, slot, near, at, u_near, bound, LANES, PROGRAMS, BLOCK,
    )  # fmt: skip
    arrivals = 2 * programs
    grid_barrier(counters + ARRIVED, arrivals, NATIVE)
    while left > 4:
        a, b, ab = closest_pair(told, noted, programs, PROGRAMS)
        left -= 1
        row_a = join(
            distances, ld, state, reals, messages, N, side, turn, n, left, a, b, ab, made, programs,
            LANES, PROGRAMS, DTYPE,
        )  # fmt: skip
        made += 1
        turn = 1 - turn
        grid_barrier(counters + ARRIVED, arrivals + programs, NATIVE)
        u_i, d_a, slot, near, at, u_near, bound = own_rows(
            distances, row_a, state, reals, N, side, turn, n, a, programs, LANES
        )
        total = tl.load(messages + TOTAL * PROGRAMS + lane, mask=lane < programs, other=0.0)
        rise = tl.load(messages + RISE * PROGRAMS + lane, mask=lane < programs, other=float("-inf"))
        best = best_known(told, noted, reals + (U + turn) * N, a, programs, PROGRAMS)
        total, fallen = tl.sum(total, axis=0), fallen + tl.max(rise, axis=0)
        u_a = total / (left - 2)
        tl.debug_barrier()
        if me == 0:
            tl.store(reals + (SUMS + side) * N + a, total)
            tl.store(reals + (U + turn) * N + a, u_a)
        told = messages + (made % 2) * MESSAGES * PROGRAMS
        noted = notes + (made % 2) * NOTES * PROGRAMS
        read += search(
            distances, ld, state, reals, told, noted, N, side, turn, n, a, u_a, fallen, best, programs,
            u_i, d_a, slot, near, at, u_near, bound, LANES, PROGRAMS, BLOCK,
        )  # fmt: skip
        arrivals += 2 * programs
        grid_barrier(counters + ARRIVED, arrivals, NATIVE)
        if (n > SMALL) & (left * 4 < n * 3):
            count_alive(reals, notes, N, turn, n, programs, LANES, PROGRAMS)
            grid_barrier(counters + ARRIVED, arrivals + programs, NATIVE)
            list_alive(state, reals, notes, N, turn, n, programs, LANES, PROGRAMS)
            grid_barrier(counters + ARRIVED, arrivals + 2 * programs, NATIVE)
            drop_dead(distances, ld, state, reals, noted, N, side, turn, left, programs, BLOCK, PROGRAMS)
            arrivals += 3 * programs
            grid_barrier(counters + ARRIVED, arrivals, NATIVE)
            side, turn, n = 1 - side, 1 - turn, left
    tl.atomic_add(counters + ROWS_READ, read)
    if me == 0:
        tl.store(counters + SIDE, side)
        tl.store(counters + TURN, turn)
