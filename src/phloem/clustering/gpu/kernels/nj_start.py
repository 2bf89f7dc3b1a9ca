"""Before the first join: sums of rows, and the partner of each; a program a row."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.clustering.gpu.kernels.nj_scan import lowest_in_row
from phloem.clustering.gpu.kernels.nj_steps import AT, BEGIN, BOUND, NEAR, SECOND, SUMS, row_of


@triton.jit(do_not_specialize=["n"])
def row_sums(distances, ld, reals, N, n, BLOCK: tl.constexpr):
    """Σ_j d_ij, for both sums of turn 0: not finite where an entry is not."""
    k = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float64)
    stop = (n + 15) // 16 * 16  # a multiple of 16 keeps the loads wide
    for start in range(0, stop, BLOCK):
        j = start + tl.arange(0, BLOCK)
        value = tl.load(distances + row_of(k, ld) + j, mask=j < stop, other=0.0).to(tl.float64)
        total += tl.where(j < n, value, 0.0)
    total = tl.sum(total, axis=0)
    tl.store(reals + SUMS * N + k, total)
    tl.store(reals + SECOND * N + k, total)


@triton.jit(do_not_specialize=["n"])
def first_partners(distances, ld, state, reals, N, n, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    """Smallest d_ij - u_j of the j that row i answers for, its first j, and d_ij."""
    k = tl.program_id(0)
    row, inverse = row_of(k, ld), 1.0 / (n - 2).to(tl.float64)
    lowest, j, distance = lowest_in_row(
        distances, row, k, tl.load(state + BEGIN * N + k), n, reals + SUMS * N, inverse, -1, -1, row, row,
        inverse, inverse, False, DTYPE, BLOCK,
    )  # fmt: skip
    tl.store(reals + BOUND * N + k, lowest)
    tl.store(state + NEAR * N + k, j)
    tl.store(reals + AT * N + k, distance)
