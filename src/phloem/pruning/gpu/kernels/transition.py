"""Transition matrices of all branches and categories in one launch, and their adjoints."""

from __future__ import annotations

import triton
import triton.language as tl

from phloem.pruning.gpu.kernels.product import scale_down

# Transition matrices of all branches and categories in one launch.


@triton.jit
def expm1(x):
    """exp(x) - 1 to a few units in the last place: Taylor's series up to x¹⁶ / 16! for |x| < 1/2."""
    series = x * (1.0 / 16.0) + 1.0
    for n in tl.static_range(14):
        series = series * (x * (1.0 / (15.0 - n))) + 1.0
    return tl.where((x > -0.5) & (x < 0.5), series * x, tl.exp(x) - 1.0)


@triton.jit
def process_of(process, R, model, c, C):
    """Which of all models' processes category c of a model evolves by."""
    return model * R + tl.load(process + model * C + c)


@triton.jit
def matrix_tile(
    time, values, right, left, n_states, matrix, tile,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """One of CHUNKS² tiles of P = I + R (exp(Λ time) - 1) L, stored transposed: the child's state first."""
    j = (tile // CHUNKS) * BLOCK + tl.arange(0, BLOCK)
    i = (tile % CHUNKS) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float64)
    for step in tl.static_range(CHUNKS):
        k = step * BLOCK + tl.arange(0, BLOCK)
        growth = expm1(tl.load(values + k, mask=k < WIDTH, other=0.0) * time)
        inside = (j < WIDTH)[:, None] & (k < WIDTH)[None, :]
        from_left = tl.load(left + k[None, :] * WIDTH + j[:, None], mask=inside, other=0.0)
        inside = (k < WIDTH)[:, None] & (i < WIDTH)[None, :]
        from_right = tl.load(right + i[None, :] * WIDTH + k[:, None], mask=inside, other=0.0)
        total = tl.dot(from_left * growth[None, :], from_right, acc=total, out_dtype=tl.float64)
    total += tl.where((j[:, None] == i[None, :]) & (n_states > i)[None, :], 1.0, 0.0)
    inside = (j < WIDTH)[:, None] & (i < WIDTH)[None, :]
    total = tl.where(total < 0.0, 0.0, total)  # rounding below 0; a maximum would make 0 of NaN, too
    tl.store(matrix + j[:, None] * WIDTH + i[None, :], total.to(DTYPE), mask=inside)


@triton.jit
def transition_matrices(
    jobs, times, process, R, values, right, left, n_states, transition, counters, n_counters, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, DTYPE: tl.constexpr,
):  # fmt: skip
    """transition[slot, c, j, i] = P[i, j] = [i = j] + Σ_k right[i, k] (exp(values[k] times[source, c]) - 1)
    left[k, j], of the process of category c.

    jobs: (n, 4) int64: source, slot, model. Stored transposed, the child's state first, so that a
    tip's message is one row. right, left: (models, R, WIDTH, WIDTH)
    float64, zero outside the model's states; process: (models, C) int64, numbers below R.
    Grid: (n, C, CHUNKS²). The first program also clears the counters that the passes wait on.
    """
    if tl.program_id(0) + tl.program_id(1) + tl.program_id(2) == 0:
        for start in range(0, n_counters, 1024):
            place = start + tl.arange(0, 1024)
            tl.store(counters + place, tl.zeros((1024,), tl.int32), mask=place < n_counters)
    job = jobs + tl.program_id(0).to(tl.int64) * 4
    c = tl.program_id(1)
    source, slot, model = tl.load(job), tl.load(job + 1), tl.load(job + 2)
    g = process_of(process, R, model, c, C)
    matrix_tile(
        tl.load(times + source * C + c), values + g * WIDTH, right + g * WIDTH * WIDTH,
        left + g * WIDTH * WIDTH,
        n_states, transition + (slot * C + c) * WIDTH * WIDTH, tl.program_id(2), WIDTH, BLOCK, CHUNKS, DTYPE,
    )  # fmt: skip


# Adjoints of the transition matrices, for the gradient of the model's parameters.


@triton.jit
def transition_adjoint(
    jobs, sizes, messages, shifts, u_kept, own_class, left_class, right_class, state_sets, adjoint, C,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    STRIDE: tl.constexpr,
):  # fmt: skip
    """adjoint[job, c, i, j] = Σ over columns of u[i] p[j], float64 (reference/recursion.py).

    jobs: (n, 8) int64: kind · first column of u · number of them · first column · left child's first ·
    right child's first · place in the class arrays · place in own_class, int32, which has the column that
    every column of u stands for, one in STRIDE entries. sizes: columns of messages, and, two further on, of
    u. Grid: (n, C, CHUNKS²).
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
        place = (tl.load(job + 7) + start + tl.arange(0, TILE)) * STRIDE
        own = tl.load(own_class + place, mask=live, other=0).to(tl.int64)
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
