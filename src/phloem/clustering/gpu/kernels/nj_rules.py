"""How neighbour joining, BIONJ and UNJ average two clusters (reference/nj.py), from sums over rows alone.

Sums of a new row follow from those of the two rows: Σ_k [λ d_ak + (1-λ) d_bk - c] needs no pass over k. What
rounding of the entries adds halves with every generation of averages, so that nothing builds up.
"""

from __future__ import annotations

import triton
import triton.language as tl

NJ = tl.constexpr(0)
BIONJ = tl.constexpr(1)
UNJ = tl.constexpr(2)


@triton.jit
def weigh(
    ab, left, inverse, sum_a, sum_b, second_a, second_b, size_a, size_b, v_ab, leaves, METHOD: tl.constexpr
):
    """(share of a, constant c, branch above a, above b, sum of the new row, its second sum).

    left: clusters before the join; inverse: 1/(left - 2). second: Σ_k of variances (BIONJ), or of d_ak × size
    of k (UNJ).
    """
    rest = (left - 2).to(tl.float64)
    half = (sum_a - sum_b) * inverse * 0.5
    share = half * 0.0 + 0.5
    if METHOD == BIONJ:
        positive = v_ab > 0
        excess = (second_b - second_a) / (2 * rest * tl.where(positive, v_ab, 1.0))
        share = tl.where(positive, tl.minimum(tl.maximum(0.5 + excess, 0.0), 1.0), 0.5)
    elif METHOD == UNJ:
        outside = leaves - size_a - size_b
        second_a -= size_b * ab
        second_b -= size_a * ab
        half = (second_a - second_b) / (2 * outside)
        share = size_a / (size_a + size_b)
    above_a, above_b = ab * 0.5 + half, ab * 0.5 - half
    constant = share * above_a + (1 - share) * above_b
    new_sum = share * (sum_a - ab) + (1 - share) * (sum_b - ab) - rest * constant
    second = new_sum
    if METHOD == BIONJ:
        mean = share * (second_a - v_ab) + (1 - share) * (second_b - v_ab)
        second = mean - rest * share * (1 - share) * v_ab
    elif METHOD == UNJ:
        second = share * second_a + (1 - share) * second_b - outside * constant
    return share, constant, above_a, above_b, new_sum, second


@triton.jit
def averaged(x, y, share, constant, DTYPE: tl.constexpr):
    """New distances, rounded as they are stored."""
    return (share * x + (1 - share) * y - constant).to(DTYPE)


@triton.jit
def wide(x):
    """float64 of a float32, by shifting its bits: an instruction that converts takes eight times as long.

    Zero becomes 6e-39, which no sum here notices; neither infinities nor NaN come here. float64 stays.
    """
    if x.dtype == tl.float32:
        bits = x.to(tl.int32, bitcast=True)
        high = (((bits & 0x7FFFFFFF) >> 3) + 0x38000000) | (bits & -0x80000000)
        low = (bits << 29).to(tl.uint32, bitcast=True).to(tl.uint64)
        return ((high.to(tl.uint32, bitcast=True).to(tl.uint64) << 32) | low).to(tl.float64, bitcast=True)
    else:
        return x
