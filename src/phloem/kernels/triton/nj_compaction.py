"""Dead columns go: every row moves its living entries to the left, and places are counted anew."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.nj_records import NO_PAIR, PLACES, meet
from phloem.kernels.triton.nj_rules import BIONJ, NJ
from phloem.kernels.triton.nj_steps import (
    AT,
    BOUND,
    KEEP,
    NAME,
    NEAR,
    PLACE,
    RUN,
    SECOND,
    SIZE,
    SLOT,
    SUMS,
    row_of,
)


@triton.jit
def _count_in_order(state, sums, N, n, programs, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Places that stay, in order, and the new place of each: of a stretch of places per program."""
    per = tl.cdiv(n, programs)
    begin = tl.program_id(0) * per
    earlier = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, begin, BLOCK):
        k = start + tl.arange(0, BLOCK)
        total = tl.load(sums + k, mask=(k < begin) & (k < n), other=float("-inf"))
        earlier += (total > float("-inf")).to(tl.int32)
    k = begin + tl.arange(0, WIDTH)
    mine = (tl.arange(0, WIDTH) < per) & (k < n)
    alive = (tl.load(sums + k, mask=mine, other=float("-inf")) > float("-inf")).to(tl.int32)
    place = tl.sum(earlier, axis=0) + tl.cumsum(alive, axis=0) - 1
    tl.store(state + KEEP * N + place, k, mask=alive != 0)
    tl.store(state + PLACE * N + k, place, mask=mine)


@triton.jit
def _drop_dead(
    matrix, ld, state, i, slot, total, N, n, kept, programs, WIDTH: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """This program's rows without dead columns, each from left to right: no column moves to the right."""
    for first in range(tl.program_id(0) * RUN, n, programs * RUN):
        for k in range(first, tl.minimum(first + RUN, n)):
            here = (i == k) & (total > float("-inf"))
            row = row_of(tl.max(tl.where(here, slot, -1), axis=0), ld)
            if row >= 0:
                for start in range(0, kept, BLOCK):
                    j = start + tl.arange(0, BLOCK)
                    c = tl.load(state + KEEP * N + j, mask=j < kept, other=0)
                    value = tl.load(matrix + row + c, mask=j < kept, other=0.0)
                    tl.debug_barrier()
                    tl.store(matrix + row + j, value, mask=j < kept)


@triton.jit
def _hand_over(
    state, reals, N, turn, i, newest, newest_size, slot, near, at, bound, total, second, pair,
    counter, programs, METHOD: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """What is known of this program's rows goes to their new places, for the owners then.

    Returns the new places of the newest cluster and of a pair.
    """
    alive = total > float("-inf")
    place = tl.load(state + PLACE * N + i, mask=alive, other=0)
    near = tl.where(
        alive & (near >= 0), tl.load(state + PLACE * N + near, mask=alive & (near >= 0), other=0), -1
    )
    name = tl.load(state + NAME * N + i, mask=alive, other=0)
    size = tl.load(reals + SIZE * N + i, mask=alive, other=0.0)
    size = tl.where(i == newest, newest_size, size)
    newest = tl.load(state + PLACE * N + newest)
    told = pair != NO_PAIR
    lower = tl.load(state + PLACE * N + (pair // PLACES), mask=told, other=0).to(tl.int64)
    upper = tl.load(state + PLACE * N + (pair % PLACES), mask=told, other=0)
    pair = tl.where(told, lower * PLACES + upper, NO_PAIR)
    meet(counter, programs, NATIVE)
    tl.store(state + SLOT * N + place, slot, mask=alive)
    tl.store(state + NEAR * N + place, near, mask=alive)
    tl.store(state + NAME * N + place, name, mask=alive)
    tl.store(reals + AT * N + place, at, mask=alive)
    tl.store(reals + BOUND * N + place, bound, mask=alive)
    tl.store(reals + (SUMS + turn % 2) * N + place, total, mask=alive)
    if METHOD != NJ:
        tl.store(reals + SIZE * N + place, size, mask=alive)
        tl.store(reals + (SECOND + turn % 2) * N + place, second, mask=alive)
    meet(counter, programs, NATIVE)
    return newest, pair


@triton.jit
def _take_over(state, reals, N, turn, i, n, METHOD: tl.constexpr):
    """What is known of this program's rows: (slot, near, at, bound, total, second)."""
    mine = i < n
    slot = tl.load(state + SLOT * N + i, mask=mine, other=0)
    near = tl.load(state + NEAR * N + i, mask=mine, other=-1)
    at = tl.load(reals + AT * N + i, mask=mine, other=0.0)
    bound = tl.load(reals + BOUND * N + i, mask=mine, other=float("inf"))
    total = tl.load(reals + (SUMS + turn % 2) * N + i, mask=mine, other=float("-inf"))
    second = total
    if METHOD != NJ:
        second = tl.load(reals + (SECOND + turn % 2) * N + i, mask=mine, other=0.0)
    return slot, near, at, bound, total, second


@triton.jit
def drop_columns(
    distances, variances, ld, state, reals, N, turn, n, left, i, newest, newest_size, pair, slot, near, at,
    bound, total, second, counter, programs,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, METHOD: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """All of it, between meetings. Returns the new places of the newest cluster and of a pair, and what is
    known of the rows that this program has then: (slot, near, at, bound, total, second)."""
    meet(counter, programs, NATIVE)
    _count_in_order(state, reals + (SUMS + turn % 2) * N, N, n, programs, WIDTH, BLOCK)
    meet(counter, programs, NATIVE)
    _drop_dead(distances, ld, state, i, slot, total, N, n, left, programs, WIDTH, BLOCK)
    if METHOD == BIONJ:
        _drop_dead(variances, ld, state, i, slot, total, N, n, left, programs, WIDTH, BLOCK)
    newest, pair = _hand_over(
        state, reals, N, turn, i, newest, newest_size, slot, near, at, bound, total, second, pair, counter,
        programs, METHOD, NATIVE,
    )  # fmt: skip
    slot, near, at, bound, total, second = _take_over(state, reals, N, turn, i, left, METHOD)
    return newest, pair, slot, near, at, bound, total, second
