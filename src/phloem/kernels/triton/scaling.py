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
def rescale_shift(largest, DTYPE: tl.constexpr):
    """Power of two of each column's largest entry where that is below the limit, else 0
    (reference/postorder.py).

    The power is frexp's: largest = f · 2**power with f in [0.5, 1), subnormal numbers included.
    """
    lifted = largest * 18446744073709551616.0
    if tl.float64 == DTYPE:
        field = ((largest.to(tl.int64, bitcast=True) >> 52) & 0x7FF).to(tl.int32)
        lifted_field = ((lifted.to(tl.int64, bitcast=True) >> 52) & 0x7FF).to(tl.int32)
        power = tl.where(field > 0, field - 1022, lifted_field - 1086)
        return tl.where((largest > 0) & (power < -256), power, 0)
    else:
        field = (largest.to(tl.int32, bitcast=True) >> 23) & 0xFF
        lifted_field = (lifted.to(tl.int32, bitcast=True) >> 23) & 0xFF
        power = tl.where(field > 0, field - 126, lifted_field - 190)
        return tl.where((largest > 0) & (power < -30), power, 0)
