"""The first scan, and identical rows, which merge before the first round."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.linkage_scan import nearest_in_row, zeros_in_row
from phloem.clustering.gpu.kernels.linkage_state import (
    DISTANCE,
    HEIGHT_INTO,
    INTO,
    MATE,
    NAME,
    NEAREST,
    SECOND,
    SLOT,
    STALE,
    TWINS,
    ZEROS,
    append,
    own_share,
)


@triton.jit
def first_scan(
    distances, ld, state, alive, reals, sizes, N, n, programs, counter,
    BLOCK: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """The state of clusters of one leaf, infinite diagonal, every row's nearest neighbour.

    counter: rows at distance zero from an earlier one.
    """
    for k in range(tl.program_id(0), n, programs):
        tl.store(state + SLOT * N + k, k)
        tl.store(state + NAME * N + k, k)
        tl.store(alive + k, 1)
        row = k * tl.full((), 1, tl.int64) * ld
        tl.store(distances + row + k, float("inf"))
        tl.debug_barrier()
        lowest, near, after = nearest_in_row(
            distances, row, n, alive, state + NAME * N, sizes, 1.0, BLOCK, DTYPE, False, True, True
        )
        tl.store(state + NEAREST * N + k, near)
        tl.store(reals + DISTANCE * N + k, lowest)
        tl.store(reals + SECOND * N + k, after)
        if lowest == 0:
            tl.store(state + ZEROS * N + k, zeros_in_row(distances, row, n, BLOCK))
            if near < k:
                tl.atomic_add(counter, 1)


@triton.jit
def _rows_equal(distances, row, other, n, me, other_me, BLOCK: tl.constexpr):
    """1 if two rows agree in every column but their own two."""
    equal, start = 1, 0
    while (start < n) & (equal == 1):
        j = start + tl.arange(0, BLOCK)
        inside = (j < n) & (j != me) & (j != other_me)
        x = tl.load(distances + row + j, mask=inside, other=0.0)
        y = tl.load(distances + other + j, mask=inside, other=0.0)
        equal = 1 - tl.max((x != y).to(tl.int32), axis=0)
        start += BLOCK
    return equal


@triton.jit
def find_twins(distances, ld, state, reals, N, n, programs, BLOCK: tl.constexpr):
    """TWINS[j] counts the rows identical to row j that come later; their own entry becomes -1 - j."""
    for k in range(tl.program_id(0), n, programs):
        near = tl.load(state + NEAREST * N + k)
        if (tl.load(reals + DISTANCE * N + k) == 0) & (near < k):
            row = tl.load(state + SLOT * N + k).to(tl.int64) * ld
            if _rows_equal(distances, row, near.to(tl.int64) * ld, n, k, near, BLOCK) == 1:
                tl.store(state + TWINS * N + k, -1 - near)
                tl.atomic_add(state + TWINS * N + near, 1)


@triton.jit
def merge_twins(state, alive, reals, sizes, N, n, programs, counter, to_scan, survivors, LANES: tl.constexpr):
    """Merge a class of identical rows at distance zero if nothing outside it is at distance zero from it.

    to_scan counts the first ones of such classes, in state[STALE]: only they lose their nearest neighbour.
    """
    begin, stop = own_share(n, programs, LANES)
    left = 0
    for start in range(begin, stop, LANES):
        k = start + tl.arange(0, LANES)
        inside = k < stop
        twins = tl.load(state + TWINS * N + k, mask=inside, other=0)
        first, twin = -1 - twins, twins < 0
        count = tl.load(state + TWINS * N + first, mask=twin, other=0)
        copy = twin & (count == tl.load(state + ZEROS * N + first, mask=twin, other=-1))
        tl.atomic_add(counter, tl.sum(copy.to(tl.int32), axis=0))
        tl.store(state + INTO * N + k, first, mask=copy)
        tl.store(reals + HEIGHT_INTO * N + k, 0.0, mask=copy)
        tl.store(alive + k, 0, mask=copy)
        tl.atomic_add(sizes + first, tl.load(sizes + k, mask=copy, other=0.0), mask=copy)
        tl.store(state + MATE * N + k, -1, mask=inside)
        left += tl.sum((inside & (copy == 0)).to(tl.int32), axis=0)
        kept = (twins > 0) & (twins == tl.load(state + ZEROS * N + k, mask=inside, other=0))
        tl.store(state + STALE * N + append(to_scan, kept), k, mask=kept)
    tl.store(survivors + tl.program_id(0), left)
