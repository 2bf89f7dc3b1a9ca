"""Dead columns go: every row moves its living entries to the left, and places are counted anew."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.nj_steps import BEGIN, NEAR, SLOT, row_of

KEEP = tl.constexpr(0)  # places that stay, in order
PLACE = tl.constexpr(1)  # how many before a place stay: its new one


@triton.jit(do_not_specialize=["n"])
def count_places(order, sums, N, n, BLOCK: tl.constexpr):
    """Both rows of order, (2, N); a program a block of places. sums: -inf of the dead."""
    begin = tl.program_id(0) * BLOCK
    earlier = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, begin, BLOCK):
        earlier += (tl.load(sums + start + tl.arange(0, BLOCK)) > float("-inf")).to(tl.int32)
    k = begin + tl.arange(0, BLOCK)
    alive = (tl.load(sums + k, mask=k < n, other=float("-inf")) > float("-inf")).to(tl.int32)
    place = tl.sum(earlier, axis=0) + tl.cumsum(alive, axis=0) - alive
    tl.store(order + KEEP * N + place, k, mask=alive != 0)
    tl.store(order + PLACE * N + k, place, mask=k <= n)


@triton.jit(do_not_specialize=["left"])
def drop_columns(
    matrix, ld, order, state, reals, new_state, new_reals, N, left,
    MOVES_STATE: tl.constexpr, FIELDS: tl.constexpr, REALS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A row a program, by new places, from left to right: no column moves to the right.

    MOVES_STATE: what is known of the row goes to its new place too (it is kept once, beside one or two
    matrices). FIELDS, REALS: nj_steps, not above 8.
    """
    k = tl.program_id(0)
    old = tl.load(order + KEEP * N + k)
    row = row_of(tl.load(state + SLOT * N + old), ld)
    for start in range(0, left, BLOCK):
        j = start + tl.arange(0, BLOCK)
        c = tl.load(order + KEEP * N + j, mask=j < left, other=0)
        value = tl.load(matrix + row + c, mask=j < left, other=0.0)
        tl.debug_barrier()
        tl.store(matrix + row + j, value, mask=j < left)
    if MOVES_STATE:
        field = tl.arange(0, 8)
        known = tl.load(state + field * N + old, mask=field < FIELDS, other=0)
        is_place = ((field == NEAR) & (known >= 0)) | (field == BEGIN)
        known = tl.where(is_place, tl.load(order + PLACE * N + known, mask=is_place, other=0), known)
        tl.store(new_state + field * N + k, known, mask=field < FIELDS)
        known = tl.load(reals + field * N + old, mask=field < REALS, other=0.0)
        tl.store(new_reals + field * N + k, known, mask=field < REALS)
