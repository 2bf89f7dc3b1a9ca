"""Transition matrices of all branches and categories in one launch."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _expm1(x):
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
        growth = _expm1(tl.load(values + k, mask=k < WIDTH, other=0.0) * time)
        inside = (j < WIDTH)[:, None] & (k < WIDTH)[None, :]
        from_left = tl.load(left + k[None, :] * WIDTH + j[:, None], mask=inside, other=0.0)
        inside = (k < WIDTH)[:, None] & (i < WIDTH)[None, :]
        from_right = tl.load(right + i[None, :] * WIDTH + k[:, None], mask=inside, other=0.0)
        total = tl.dot(from_left * growth[None, :], from_right, acc=total, out_dtype=tl.float64)
    total += tl.where((j[:, None] == i[None, :]) & (n_states > i)[None, :], 1.0, 0.0)
    inside = (j < WIDTH)[:, None] & (i < WIDTH)[None, :]
    tl.store(matrix + j[:, None] * WIDTH + i[None, :], tl.maximum(total, 0.0).to(DTYPE), mask=inside)


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
