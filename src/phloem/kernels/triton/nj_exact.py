"""Exact neighbour joining, BIONJ and UNJ in one launch: the programs meet once a join (reference/nj.py)."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.nj_compaction import drop_columns
from phloem.kernels.triton.nj_join import own_record, store_variances, weigh_pair
from phloem.kernels.triton.nj_records import PLACES, condense, hear, meet, tell
from phloem.kernels.triton.nj_rules import BIONJ, NJ, UNJ, averaged, wide
from phloem.kernels.triton.nj_start import first_partners
from phloem.kernels.triton.nj_steps import SECOND, SIZE, SLOT, SUMS, best_told, own_places, search, u_after

ARRIVED = tl.constexpr(0)  # programs at the barrier
ROWS_READ = tl.constexpr(1)
TURN = tl.constexpr(2)  # which sums are the last
COUNTERS = 3


@triton.jit
def _finish(
    state, reals, counters, N, turn, read, newest, newest_slot, newest_size, programs, NATIVE: tl.constexpr
):  # fmt: skip
    """Counters, and what the last join changed, once nobody reads the old state any more."""
    tl.atomic_add(counters + ROWS_READ, read)
    meet(counters + ARRIVED, programs, NATIVE)
    if tl.program_id(0) == 0:
        tl.store(counters + TURN, turn % 2)
        if newest >= 0:
            tl.store(state + SLOT * N + newest, newest_slot)
            tl.store(reals + SIZE * N + newest, newest_size)


@triton.jit(do_not_specialize=["n"])
def nj_exact(
    distances, variances, ld, state, reals, records, N, n, counters, ahead,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, SMALL: tl.constexpr, METHOD: tl.constexpr,
    DTYPE: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Join until four clusters are left; joins are in state[LOWER], state[UPPER], reals[ABOVE_…], in order.

    distances: rows of ld entries (a multiple of 16), symmetric, zero diagonal; overwritten. variances: a copy
    for BIONJ, else anything. state (SLOT and NAME the places), reals (SUMS -inf, SIZE 1), records: see
    nj_steps, nj_records. WIDTH lanes hold the rows of a program, and a record each. counters: zeros. ahead:
    see search, in rises. Columns are dropped when a quarter of them is dead, while n > SMALL.
    """
    programs, infinity = tl.num_programs(0), float("inf")
    counter, i = counters + ARRIVED, own_places(programs, WIDTH)
    left, turn, read = n, n - n, n - n
    newest, newest_slot, free, newest_size = n - n - 1, n - n, n - n, n.to(tl.float64)
    leaves, slot = newest_size, tl.where(i < n, i, 0)
    inverse = 1.0 / (left - 2).to(tl.float64)
    total, bound, near, at = first_partners(
        distances, ld, i, reals + SUMS * N, inverse, n, programs, counter, WIDTH, DTYPE, BLOCK, NATIVE
    )
    second = total
    if METHOD != NJ:
        tl.store(reals + SECOND * N + i, second, mask=i < n)
    q, pair, ab, new_bound = own_record(i, n, total * inverse, near, at, bound, i == n, bound, bound)
    tell(records, counter, turn, programs, q, pair, ab, new_bound, NATIVE)
    while left > 4:
        before, inverse = inverse, 1.0 / (left - 3).to(tl.float64)
        told_q, told, told_at, told_bound = hear(records, turn, programs, WIDTH, NATIVE)
        _, pair, ab, new_bound = condense(told_q, told, told_at, told_bound)
        a, b = (pair // PLACES).to(tl.int32), (pair % PLACES).to(tl.int32)
        bound = tl.where(i == newest, new_bound, bound)
        sums = reals + (SUMS + turn % 2) * N
        slot_a, slot_b, share, constant, rise, new_sum, new_second, size_a, size_b, v_ab = weigh_pair(
            state, reals, variances, N, ld, turn, a, b, ab, left, before, newest, newest_slot, newest_size,
            leaves, METHOD,
        )  # fmt: skip
        row_a, row_b = slot_a.to(tl.int64) * ld, slot_b.to(tl.int64) * ld
        free, left, rise = tl.where(turn == 0, slot_a, free), left - 1, rise * inverse
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
        if turn > 0:
            tl.store(distances + free.to(tl.int64) * ld + i, stored, mask=rest | (i == a))
        in_row = tl.where(rest & (i > a), with_a, infinity)
        bound = tl.minimum(bound - rise, in_row)
        known = tl.where(rest & (near >= 0), at - u_near, infinity)
        nearer = in_row < known
        known, near = tl.where(nearer, in_row, known), tl.where(nearer, a, near)
        at = tl.where(nearer, new, at)
        best = tl.minimum(best, tl.minimum(known, tl.where(rest, with_a, infinity)) - u)
        bound, near, at, known, scanned = search(
            distances, ld, i, u, best, bound, near, at, known, slot, rest, ahead * tl.maximum(rise, 0.0),
            sums, inverse, a, b, row_a, row_b, share, constant, DTYPE, BLOCK,
        )  # fmt: skip
        read += scanned
        if turn == 0:  # the first new row takes the place of one that others may still read
            meet(counter, programs, NATIVE)
            tl.store(distances + free.to(tl.int64) * ld + i, stored, mask=rest | (i == a))
        slot = tl.where(i == a, free, slot)
        newest, newest_slot, newest_size, free, turn = a, free, size_a + size_b, slot_b, turn + 1
        q, pair, ab, new_bound = own_record(i, a, u, near, at, known, rest & (i < a), new, with_a)
        if (n > SMALL) & (left * 4 < n * 3):
            newest, pair, slot, near, at, bound, total, second = drop_columns(
                distances, variances, ld, state, reals, N, turn, n, left, i, newest, newest_size, pair, slot,
                near, at, bound, total, second, counter, programs, WIDTH, BLOCK, METHOD, NATIVE,
            )  # fmt: skip
            n = left
        tell(records, counter, turn, programs, q, pair, ab, new_bound, NATIVE)
    _finish(state, reals, counters, N, turn, read, newest, newest_slot, newest_size, programs, NATIVE)
