"""Exact NJ, BIONJ and UNJ, many joins a launch: the programs meet once a join (reference/nj.py)."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.nj_join import own_record, store_variances, weigh_pair
from phloem.clustering.gpu.kernels.nj_records import PLACES, condense, hear, meet, tell
from phloem.clustering.gpu.kernels.nj_rules import BIONJ, NJ, UNJ, averaged, wide
from phloem.clustering.gpu.kernels.nj_scan import search
from phloem.clustering.gpu.kernels.nj_steps import (
    AT,
    BEGIN,
    BOUND,
    NEAR,
    SECOND,
    SIZE,
    SLOT,
    SUMS,
    answers,
    best_told,
    own_places,
    u_after,
)

ARRIVED = tl.constexpr(0)  # programs at the barrier
ROWS_READ = tl.constexpr(1)
COUNTERS = 2


@triton.jit
def _take_over(state, reals, N, turn, i, n, METHOD: tl.constexpr):
    """What is known of this program's rows: (slot, near, begin, at, bound, total, second)."""
    mine = i < n
    slot = tl.load(state + SLOT * N + i, mask=mine, other=0)
    near = tl.load(state + NEAR * N + i, mask=mine, other=-1)
    begin = tl.load(state + BEGIN * N + i, mask=mine, other=0)
    at = tl.load(reals + AT * N + i, mask=mine, other=0.0)
    bound = tl.load(reals + BOUND * N + i, mask=mine, other=float("inf"))
    total = tl.load(reals + (SUMS + turn % 2) * N + i, mask=mine, other=float("-inf"))
    second = total
    if METHOD != NJ:
        second = tl.load(reals + (SECOND + turn % 2) * N + i, mask=mine, other=0.0)
    return slot, near, begin, at, bound, total, second


@triton.jit
def _hand_over(
    state, reals, records, counters, N, turn, i, n, slot, near, at, bound, read, newest, newest_size,
    programs, WIDTH: tl.constexpr, METHOD: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """What is known of this program's rows (sums are stored already), with what the last records told."""
    told_q, told, told_at, told_bound = hear(records, turn, programs, WIDTH, NATIVE)
    _, pair, ab, new_bound = condense(told_q, told, told_at, told_bound)
    best = i == (pair % PLACES).to(tl.int32)
    tl.store(state + SLOT * N + i, slot, mask=i < n)
    tl.store(state + NEAR * N + i, tl.where(best, (pair // PLACES).to(tl.int32), near), mask=i < n)
    tl.store(reals + AT * N + i, tl.where(best, ab, at), mask=i < n)
    tl.store(reals + BOUND * N + i, tl.where(i == newest, new_bound, bound), mask=i < n)
    if METHOD == UNJ:
        tl.store(reals + SIZE * N + i, newest_size, mask=i == newest)
    tl.atomic_add(counters + ROWS_READ, read)


@triton.jit(do_not_specialize=["n", "stop", "first"])
def nj_exact(
    distances, variances, ld, state, reals, records, names, lengths, N, n, stop, first, counters, ahead,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, METHOD: tl.constexpr, DTYPE: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Join n living clusters in columns 0 … n-1 until `stop` ≥ 4 are left; `first` joins were made before.

    distances: rows of ld entries (a multiple of 16), symmetric, zero diagonal; overwritten. variances: a copy
    for BIONJ, else anything. state, reals: of every cluster, see nj_steps; afterwards too, with sums -inf of
    the dead. records: see nj_records. names, lengths: (2, N), of all joins in order. WIDTH lanes hold the
    rows of a program, and a record each. counters: no program has arrived. ahead: see search, in rises.
    """
    programs, infinity = tl.num_programs(0), float("inf")
    counter, i = counters + ARRIVED, own_places(programs, WIDTH)
    left, turn, read = n, first + n - n, n - n
    newest, newest_slot, free, newest_size = n - n - 1, n - n, n - n, n.to(tl.float64)
    leaves, inverse = (n + first).to(tl.float64), 1.0 / (left - 2).to(tl.float64)
    slot, near, begin, at, bound, total, second = _take_over(state, reals, N, turn, i, n, METHOD)
    u_near = tl.load(reals + (SUMS + turn % 2) * N + near, mask=near >= 0, other=0.0) * inverse
    q, pair, ab, new_bound = own_record(i, n, total * inverse, near, at, at - u_near, i < 0, bound, bound)
    tell(records, counter, turn, programs, q, pair, ab, new_bound, NATIVE)
    while left > stop:
        before, inverse = inverse, 1.0 / (left - 3).to(tl.float64)
        told_q, told, told_at, told_bound = hear(records, turn, programs, WIDTH, NATIVE)
        _, pair, ab, new_bound = condense(told_q, told, told_at, told_bound)
        a, b = (pair // PLACES).to(tl.int32), (pair % PLACES).to(tl.int32)
        bound = tl.where(i == newest, new_bound, bound)
        sums = reals + (SUMS + turn % 2) * N
        slot_a, slot_b, share, constant, rise, new_sum, new_second, size_a, size_b, v_ab = weigh_pair(
            state, reals, variances, names, lengths, N, ld, turn, a, b, ab, left, before, newest, newest_slot,
            newest_size, leaves, METHOD,
        )  # fmt: skip
        row_a, row_b = slot_a.to(tl.int64) * ld, slot_b.to(tl.int64) * ld
        free, left, rise = tl.where(turn == first, slot_a, free), left - 1, rise * inverse
        # Own rows after the join.
        rest = (total > -infinity) & (i != a) & (i != b)
        x = wide(tl.load(distances + row_a + i, mask=rest, other=0.0))
        y = wide(tl.load(distances + row_b + i, mask=rest, other=0.0))
        near = tl.where((near == a) | (near == b) | (i == a) | (i == b), -1, near)
        u_near = u_after(distances, sums, near, near >= 0, row_a, row_b, share, constant, inverse)
        best = best_told(distances, sums, told, told_at, a, b, row_a, row_b, share, constant, inverse)
        stored = averaged(x, y, share, constant, DTYPE)
        new = wide(stored)
        total = tl.where(rest, total + new - x - y, tl.where(i == a, new_sum, -infinity))
        u, with_a = total * inverse, new - new_sum * inverse
        tl.store(reals + (SUMS + (turn + 1) % 2) * N + i, total, mask=i < n)
        if METHOD == UNJ:
            second += (size_a + size_b) * new - size_a * x - size_b * y
        elif METHOD == BIONJ:
            second += store_variances(variances, ld, i, slot, rest, free, a, row_a, row_b, share, v_ab, DTYPE)
        if METHOD != NJ:
            second = tl.where(rest, second, tl.where(i == a, new_second, 0.0))
            tl.store(reals + (SECOND + (turn + 1) % 2) * N + i, second, mask=i < n)
        tl.store(distances + slot.to(tl.int64) * ld + a, stored, mask=rest)
        stored = tl.where(rest, stored, 0.0)
        if turn > first:
            tl.store(distances + free.to(tl.int64) * ld + i, stored, mask=rest | (i == a))
        own = answers(i, begin, a)
        in_row = tl.where(rest & own, with_a, infinity)
        bound = tl.minimum(bound - rise, in_row)
        known = tl.where(rest & (near >= 0), at - u_near, infinity)
        nearer = in_row < known
        known, near = tl.where(nearer, in_row, known), tl.where(nearer, a, near)
        at = tl.where(nearer, new, at)
        best = tl.minimum(best, tl.minimum(known, tl.where(rest, with_a, infinity)) - u)
        bound, near, at, known, scanned = search(
            distances, ld, n, i, begin, u, best, bound, near, at, known, slot, rest,
            ahead * tl.maximum(rise, 0.0), sums, inverse, a, b, row_a, row_b, share, constant, DTYPE, BLOCK,
            NATIVE,
        )  # fmt: skip
        read += scanned
        if turn == first:  # the first new row takes the place of one that others may still read
            meet(counter, programs, NATIVE)
            tl.store(distances + free.to(tl.int64) * ld + i, stored, mask=rest | (i == a))
        slot = tl.where(i == a, free, slot)
        newest, newest_slot, newest_size, free, turn = a, free, size_a + size_b, slot_b, turn + 1
        q, pair, ab, new_bound = own_record(i, a, u, near, at, known, rest & ~own, new, with_a)
        tell(records, counter, turn, programs, q, pair, ab, new_bound, NATIVE)
    _hand_over(
        state, reals, records, counters, N, turn, i, n, slot, near, at, bound, read, newest, newest_size,
        programs, WIDTH, METHOD, NATIVE,
    )  # fmt: skip
