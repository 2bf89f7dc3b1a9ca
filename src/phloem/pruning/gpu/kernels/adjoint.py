"""Adjoints of the transition matrices, for the gradient of the model's parameters."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.scaling import scale_down


@triton.jit
def transition_adjoint(
    jobs, sizes, messages, shifts, u_kept, pre_class, left_class, right_class, state_sets, adjoint, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """adjoint[job, c, i, j] = Σ over columns of u[i] p[j], float64 (reference/preorder.py).

    jobs: (n, 8) int64: kind · first pre-order column · number of them · first column · left child's first ·
    right child's first · place in the class arrays. Grid: (n, C, CHUNKS²).
    """
    job = jobs + tl.program_id(0).to(tl.int64) * 8
    c = tl.program_id(1)
    columns, pre_columns = tl.load(sizes), tl.load(sizes + 2)
    i = (tl.program_id(2) // CHUNKS) * BLOCK + tl.arange(0, BLOCK)
    j = (tl.program_id(2) % CHUNKS) * BLOCK + tl.arange(0, BLOCK)
    is_tip = tl.load(job) == 0
    first, n = tl.load(job + 1), tl.load(job + 2)
    messages += c * columns * WIDTH
    u_kept += c * pre_columns * WIDTH
    total = tl.zeros((BLOCK, BLOCK), tl.float64)
    for start in range(0, n, TILE):
        column = first + start + tl.arange(0, TILE)
        live = start + tl.arange(0, TILE) < n
        own = tl.load(pre_class + column, mask=live, other=0).to(tl.int64)
        left = tl.load(left_class + tl.load(job + 6) + own, mask=live, other=0).to(tl.int64)
        inside = live[:, None] & (j < WIDTH)[None, :]
        if is_tip:
            p = tl.load(state_sets + left[:, None] * WIDTH + j[None, :], mask=inside, other=0.0)
        else:
            right = tl.load(right_class + tl.load(job + 6) + own, mask=live, other=0).to(tl.int64)
            left += tl.load(job + 4)
            right += tl.load(job + 5)
            p = tl.load(messages + left[:, None] * WIDTH + j[None, :], mask=inside, other=0.0)
            p *= tl.load(messages + right[:, None] * WIDTH + j[None, :], mask=inside, other=0.0)
            shift = tl.load(shifts + c * columns + tl.load(job + 3) + own, mask=live, other=0)
            p = scale_down(p, shift[:, None], DTYPE)
        inside = (i < WIDTH)[:, None] & live[None, :]
        u = tl.load(u_kept + column[None, :] * WIDTH + i[:, None], mask=inside, other=0.0)
        total = tl.dot(u.to(tl.float64), p.to(tl.float64), acc=total, out_dtype=tl.float64)
    place = (
        adjoint + (tl.program_id(0).to(tl.int64) * C + c) * WIDTH * WIDTH + i[:, None] * WIDTH + j[None, :]
    )
    tl.store(place, total, mask=(i < WIDTH)[:, None] & (j < WIDTH)[None, :])
