"""Before the first join: sums of rows, and the partner of each."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.kernels.triton.nj_records import meet
from phloem.kernels.triton.nj_steps import RUN, lowest_in_row, row_of


@triton.jit
def _row_sum(distances, row, n, BLOCK: tl.constexpr):
    """Σ_j d_ij over the first n columns."""
    total = tl.zeros((BLOCK,), tl.float64)
    stop = (n + 15) // 16 * 16  # a multiple of 16 keeps the loads wide
    for start in range(0, stop, BLOCK):
        j = start + tl.arange(0, BLOCK)
        value = tl.load(distances + row + j, mask=j < stop, other=0.0).to(tl.float64)
        total += tl.where(j < n, value, 0.0)
    return tl.sum(total, axis=0)


@triton.jit
def _own_sums(distances, ld, i, sums, n, programs, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Sums of this program's rows, -inf where there is none; stored too."""
    total = tl.full((WIDTH,), float("-inf"), tl.float64)
    for first in range(tl.program_id(0) * RUN, n, programs * RUN):
        for k in range(first, tl.minimum(first + RUN, n)):
            total = tl.where(i == k, _row_sum(distances, row_of(k, ld), n, BLOCK), total)
    tl.store(sums + i, total, mask=i < n)
    return total


@triton.jit
def first_partners(
    distances, ld, i, sums, inverse, n, programs, counter,
    WIDTH: tl.constexpr, DTYPE: tl.constexpr, BLOCK: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """(Σ_j d_ij, smallest d_ij - u_j over j < i, its first j or -1, d_ij) of this program's rows."""
    total = _own_sums(distances, ld, i, sums, n, programs, WIDTH, BLOCK)
    meet(counter, programs, NATIVE)
    bound = tl.full((WIDTH,), float("inf"), tl.float64)
    near = tl.full((WIDTH,), -1, tl.int32)
    at = tl.zeros((WIDTH,), tl.float64)
    for first in range(tl.program_id(0) * RUN, n, programs * RUN):
        for k in range(tl.maximum(first, 1), tl.minimum(first + RUN, n)):
            row = row_of(k, ld)
            lowest, j, distance = lowest_in_row(
                distances, row, k, sums, inverse, -1, -1, row, row, inverse, inverse, False, DTYPE, BLOCK
            )
            bound, near = tl.where(i == k, lowest, bound), tl.where(i == k, j, near)
            at = tl.where(i == k, distance, at)
    return total, bound, near, at
