"""Products of a tile of columns with one matrix, scaled by exact powers of two; steps that wait."""

from __future__ import annotations

import triton
import triton.language as tl

# Exact powers of two, by writing exponent bits.


@triton.jit
def power_of_two(n, DTYPE: tl.constexpr):
    """2**n for n in the range of normal numbers of DTYPE, exact."""
    if tl.float64 == DTYPE:
        return ((n.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)
    else:
        return ((n.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def scale_down(value, shift, DTYPE: tl.constexpr):
    """value · 2**-shift. Two factors, because shift may reach below the smallest normal exponent."""
    half = (0 - shift) >> 1
    return value * power_of_two(half, DTYPE) * power_of_two(0 - shift - half, DTYPE)


@triton.jit
def magnitude(x, DTYPE: tl.constexpr):
    """An integer that grows with x (0 ≤ x, far below the largest number) and begins with its exponent.

    Its largest over a row costs one instruction a warp where that of x itself costs ten. x is lifted first,
    so that subnormal numbers have an exponent of their own.
    """
    if tl.float64 == DTYPE:
        return ((x * 1.3407807929942597e154).to(tl.int64, bitcast=True) >> 32).to(tl.int32)  # 2**512
    else:
        return (x * 18446744073709551616.0).to(tl.int32, bitcast=True)  # 2**64


@triton.jit
def rescale_shift(largest, DTYPE: tl.constexpr):
    """Power of two of each column's largest entry where that is below the limit, else 0
    (reference/recursion.py). largest: the largest magnitude of its entries.

    The power is frexp's: entry = f · 2**power with f in [0.5, 1).
    """
    if tl.float64 == DTYPE:
        power = (largest >> 20) - (1022 + 512)
        return tl.where((largest > 0) & (power < -256), power, 0)
    else:
        power = (largest >> 23) - (126 + 64)
        return tl.where((largest > 0) & (power < -30), power, 0)


# How steps of one launch wait for each other.
#
# Steps are taken in the order of a ticket counter, and the list is sorted so that a step only depends on
# earlier ones. The lowest unfinished ticket can therefore always proceed, however few programs run at a time.


@triton.jit
def await_ready(place, target):
    """Wait until a counter has reached its target; then what its raisers stored is visible.

    One thread polls, by adding 0: an acquiring load in every thread would empty the first-level cache each
    time (measured three times slower on an H100). That cache is empty afterwards, so fetch what you need
    before.
    """
    if target > 0:
        reached = tl.atomic_add(place, 0, sem="acquire")
        while reached < target:
            reached = tl.atomic_add(place, 0, sem="acquire")
    tl.debug_barrier()


@triton.jit
def counters_of(item, counters):
    """Of a step of a pass: the counter to await, its target, and the counter to raise (postorder.py)."""
    return counters + tl.load(item + 7), tl.load(item + 8), counters + tl.load(item + 9)


@triton.jit
def announce(place):
    """Raise a counter once every thread of this program has stored its part."""
    tl.debug_barrier()
    tl.atomic_add(place, 1, sem="release")


@triton.jit
def next_step(ticket):
    """Take the next step of the list. Nothing is read or written under a ticket's protection, so it need not
    wait for the stores of the step before (relaxed)."""
    return tl.atomic_add(ticket, 1, sem="relaxed").to(tl.int64)


# Products of a tile of columns with one matrix: tensor cores, or explicit scalars for four states.


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
