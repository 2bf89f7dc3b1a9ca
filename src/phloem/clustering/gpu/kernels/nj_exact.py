"""Exact NJ, BIONJ and UNJ, many joins a launch: the programs meet once a join (reference/joining.py)."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.nj_records import (
    AT,
    BEGIN,
    BIONJ,
    BOUND,
    LOWER,
    NAME,
    NEAR,
    NJ,
    NO_PAIR,
    PLACES,
    SECOND,
    SIZE,
    SLOT,
    SUMS,
    UNJ,
    UPPER,
    answers,
    averaged,
    best_told,
    condense,
    hear,
    meet,
    own_places,
    tell,
    u_after,
    weigh,
    wide,
)
from phloem.clustering.gpu.kernels.nj_scan import search

# The pair that is joined, and what a program tells the others afterwards.


@triton.jit
def weigh_pair(
    state, reals, variances, names, lengths, N, ld, turn, a, b, ab, left, inverse, newest, newest_slot,
    newest_size, leaves, METHOD: tl.constexpr,
):  # fmt: skip
    """(slots of a and b, share, constant, rise, new sums, sizes of a and b, variance between them): nj_rules.

    left: clusters before the join; inverse: 1/(left - 2). rise: no u rises by more than rise/(left - 3). The
    first program records the join, and what the join before changed: nobody reads that any more.
    """
    sum_a = tl.load(reals + (SUMS + turn % 2) * N + a)
    sum_b = tl.load(reals + (SUMS + turn % 2) * N + b)
    slot_a = tl.where(a == newest, newest_slot, tl.load(state + SLOT * N + a))
    slot_b = tl.where(b == newest, newest_slot, tl.load(state + SLOT * N + b))
    second_a, second_b, size_a, size_b, v_ab = sum_a, sum_b, ab, ab, ab
    if METHOD != NJ:
        second_a = tl.load(reals + (SECOND + turn % 2) * N + a)
        second_b = tl.load(reals + (SECOND + turn % 2) * N + b)
    if METHOD == UNJ:
        size_a = tl.where(a == newest, newest_size, tl.load(reals + SIZE * N + a))
        size_b = tl.where(b == newest, newest_size, tl.load(reals + SIZE * N + b))
    elif METHOD == BIONJ:
        v_ab = tl.load(variances + slot_a.to(tl.int64) * ld + b).to(tl.float64)
    share, constant, above_a, above_b, new_sum, new_second = weigh(
        ab, left, inverse, sum_a, sum_b, second_a, second_b, size_a, size_b, v_ab, leaves, METHOD
    )
    if tl.program_id(0) == 0:
        tl.store(names + LOWER * N + turn, tl.load(state + NAME * N + a))
        tl.store(names + UPPER * N + turn, tl.load(state + NAME * N + b))
        tl.store(lengths + LOWER * N + turn, above_a)
        tl.store(lengths + UPPER * N + turn, above_b)
        if newest >= 0:
            tl.store(state + SLOT * N + newest, newest_slot)
            if METHOD == UNJ:
                tl.store(reals + SIZE * N + newest, newest_size)
    # No q is smaller than that of a and b: for any j, u_j - d_aj ≤ u_b - d_ab and u_j - d_bj ≤ u_a - d_ab.
    rise = share * (sum_a * inverse - ab) + (1 - share) * (sum_b * inverse - ab) - constant
    return slot_a, slot_b, share, constant, rise, new_sum, new_second, size_a, size_b, v_ab


@triton.jit
def store_variances(variances, ld, i, slot, rest, free, a, row_a, row_b, share, v_ab, DTYPE: tl.constexpr):
    """BIONJ's variances of the joined cluster, stored by columns; how much own sums of variances change."""
    x = wide(tl.load(variances + row_a + i, mask=rest, other=0.0))
    y = wide(tl.load(variances + row_b + i, mask=rest, other=0.0))
    stored = averaged(x, y, share, share * (1 - share) * v_ab, DTYPE)
    tl.store(variances + free.to(tl.int64) * ld + i, stored, mask=rest)
    tl.store(variances + slot.to(tl.int64) * ld + a, stored, mask=rest)
    return wide(stored) - x - y


@triton.jit
def _pair(i, j):
    return tl.minimum(i, j).to(tl.int64) * PLACES + tl.maximum(i, j)


@triton.jit
def own_record(i, a, u, near, at, known, other, new, with_a):
    """The record (nj_records) of this program's rows, and of their pairs with the new cluster a.

    known: smallest d - u of the row's own pairs; other: rows whose pair with a is a's, not theirs; new: d_ia;
    with_a: new - u_a.
    """
    infinity = float("inf")
    own_q = tl.where(near >= 0, known - u, infinity)
    own_pair = tl.where(near >= 0, _pair(i, near), NO_PAIR)
    new_q = tl.where(other, with_a - u, infinity)
    with_new = new_q < own_q
    return condense(
        tl.where(with_new, new_q, own_q),
        tl.where(with_new, _pair(i, a), own_pair),
        tl.where(with_new, new, at),
        tl.where(other, new - u, infinity),
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
