"""The pair that is joined, and what a program tells the others afterwards."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.nj_records import NO_PAIR, PLACES, condense
from phloem.clustering.gpu.kernels.nj_rules import BIONJ, NJ, UNJ, averaged, weigh, wide
from phloem.clustering.gpu.kernels.nj_steps import LOWER, NAME, SECOND, SIZE, SLOT, SUMS, UPPER


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
