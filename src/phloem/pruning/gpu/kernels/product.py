"""Products of a tile of columns with one matrix: tensor cores, or explicit scalars for four states."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def four_columns(x, TILE: tl.constexpr):
    """The four states of a (TILE, 4) tile, each a vector of columns."""
    even, odd = tl.split(tl.reshape(x, (TILE, 2, 2)))
    x0, x2 = tl.split(even)
    x1, x3 = tl.split(odd)
    return x0, x1, x2, x3


@triton.jit
def _times_four(x, matrix, STEP: tl.constexpr, STRIDE: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr):
    """x M for four states: 16 scalars, M[j, i] = matrix[j · STRIDE + i · STEP]."""
    x0, x1, x2, x3 = four_columns(x, TILE)
    y0 = x0 * tl.load(matrix).to(DTYPE) + x1 * tl.load(matrix + STRIDE).to(DTYPE)
    y0 += x2 * tl.load(matrix + 2 * STRIDE).to(DTYPE) + x3 * tl.load(matrix + 3 * STRIDE).to(DTYPE)
    matrix += STEP
    y1 = x0 * tl.load(matrix).to(DTYPE) + x1 * tl.load(matrix + STRIDE).to(DTYPE)
    y1 += x2 * tl.load(matrix + 2 * STRIDE).to(DTYPE) + x3 * tl.load(matrix + 3 * STRIDE).to(DTYPE)
    matrix += STEP
    y2 = x0 * tl.load(matrix).to(DTYPE) + x1 * tl.load(matrix + STRIDE).to(DTYPE)
    y2 += x2 * tl.load(matrix + 2 * STRIDE).to(DTYPE) + x3 * tl.load(matrix + 3 * STRIDE).to(DTYPE)
    matrix += STEP
    y3 = x0 * tl.load(matrix).to(DTYPE) + x1 * tl.load(matrix + STRIDE).to(DTYPE)
    y3 += x2 * tl.load(matrix + 2 * STRIDE).to(DTYPE) + x3 * tl.load(matrix + 3 * STRIDE).to(DTYPE)
    return tl.reshape(tl.join(tl.join(y0, y2), tl.join(y1, y3)), (TILE, 4))


@triton.jit
def fetch(matrix, TRANSPOSED: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, DTYPE: tl.constexpr):
    """The operand of `times`: the matrix itself, or where it lies for four states. TRANSPOSED: use its
    transpose."""
    if WIDTH == 4:
        return matrix
    else:
        state = tl.arange(0, BLOCK)
        inside = (state < WIDTH)[:, None] & (state < WIDTH)[None, :]
        if TRANSPOSED:
            place = state[None, :] * WIDTH + state[:, None]
        else:
            place = state[:, None] * WIDTH + state[None, :]
        return tl.load(matrix + place, mask=inside, other=0.0).to(DTYPE)


@triton.jit
def times(
    x, operand, TRANSPOSED: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr, DTYPE: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    """x M, or x Mᵀ, with M from fetch."""
    if WIDTH == 4:
        if TRANSPOSED:
            return _times_four(x, operand, 4, 1, TILE, DTYPE)
        else:
            return _times_four(x, operand, 1, 4, TILE, DTYPE)
    else:
        return tl.dot(x, operand, input_precision=PRODUCT, out_dtype=DTYPE)
