"""Exact powers of two, by writing exponent bits."""

from __future__ import annotations

import triton
import triton.language as tl


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
    (reference/postorder.py). largest: the largest magnitude of its entries.

    The power is frexp's: entry = f · 2**power with f in [0.5, 1).
    """
    if tl.float64 == DTYPE:
        power = (largest >> 20) - (1022 + 512)
        return tl.where((largest > 0) & (power < -256), power, 0)
    else:
        power = (largest >> 23) - (126 + 64)
        return tl.where((largest > 0) & (power < -30), power, 0)
