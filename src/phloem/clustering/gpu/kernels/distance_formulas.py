"""Distances from counts of site pairs (reference/distance.py), in float64; the rule for saturated pairs."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def phi(w, shape):
    """-ln w, or shape (w^(-1/shape) - 1) for shape > 0; infinite where w ≤ 0."""
    logarithm = tl.log(tl.where(w > 0, w, 1.0))
    value = -logarithm
    if shape > 0:
        value = shape * (tl.exp(-logarithm / shape) - 1.0)
    return tl.where(w > 0, value, float("inf"))


@triton.jit
def term_distance(sites, ag, ct, tv, terms, shape, TERMS: tl.constexpr):
    """reference.distance.nucleotide_distance; terms: (TERMS, 4) float64; none: the differing proportion."""
    n = tl.maximum(sites, 1).to(tl.float64)
    ag, ct, tv = ag.to(tl.float64), ct.to(tl.float64), tv.to(tl.float64)
    if TERMS == 0:
        return (ag + ct + tv) / n
    total = tl.zeros_like(n)
    for k in tl.static_range(TERMS):
        slope_ag, slope_ct = tl.load(terms + 4 * k + 1), tl.load(terms + 4 * k + 2)
        w = 1.0 - (slope_ag * ag + slope_ct * ct + tl.load(terms + 4 * k + 3) * tv) / n
        total += tl.load(terms + 4 * k) * phi(w, shape)
    return total


@triton.jit
def determinant(a, b, c, d, e, f, g, h, i, k, l, m, p, q, r, s):
    """Of the 4 × 4 matrix with these rows, in float64: a product of two counts may not fit an int32."""
    k, l, m = k.to(tl.float64), l.to(tl.float64), m.to(tl.float64)
    ls_mr, ks_mq, kr_lq = l * s - m * r, k * s - m * q, k * r - l * q
    is_mp, ir_lp, iq_kp = i * s - m * p, i * r - l * p, i * q - k * p
    return (
        a * (f * ls_mr - g * ks_mq + h * kr_lq)
        - b * (e * ls_mr - g * is_mp + h * ir_lp)
        + c * (e * ks_mq - f * is_mp + h * iq_kp)
        - d * (e * kr_lq - f * ir_lp + g * iq_kp)
    )


@triton.jit
def logdet_distance(a, b, c, d, e, f, g, h, i, k, l, m, p, q, r, s):
    """reference.distance.logdet from sixteen counts (float64): 0 if identical, infinite if saturated."""
    total = a + b + c + d + e + f + g + h + i + k + l + m + p + q + r + s
    det = determinant(a, b, c, d, e, f, g, h, i, k, l, m, p, q, r, s)
    rows = (a + b + c + d) * (e + f + g + h) * (i + k + l + m) * (p + q + r + s)
    columns = (a + e + i + p) * (b + f + k + q) * (c + g + l + r) * (d + h + m + s)
    fits = (det > 0) & (rows > 0) & (columns > 0)
    ratio = tl.where(
        fits, det / tl.where(rows > 0, rows, 1.0) * det / tl.where(columns > 0, columns, 1.0), 1.0
    )
    value = tl.where(fits & (ratio > 0), -tl.log(tl.where(ratio > 0, ratio, 1.0)) / 8, float("inf"))
    return tl.where(a + f + l + s == total, 0.0, value)


@triton.jit
def store_pairs(value, sites, i, j, n, first_row, longest, status, out, stride, MIRROR: tl.constexpr):
    """Write value[i, j] (j < i < n) to row i - first_row of `out`, and mirrored.

    stride 0: rows of a triangle, one right behind the other, from row first_row on.
    Saturated: no finite value, or one above `longest`, which is what it gets. status: (3,) int64: saturated
    pairs, pairs without a common site, and the last such pair as i × 2³² + j.
    """
    pair = (j[None, :] < i[:, None]) & (i < n)[:, None]
    empty = pair & (sites == 0)
    saturated = pair & ((value <= longest) == 0)
    value = tl.where(saturated, longest, tl.maximum(value, 0.0))
    tl.atomic_add(status, tl.sum(tl.sum(saturated.to(tl.int64), axis=1), axis=0))
    empties = tl.sum(tl.sum(empty.to(tl.int64), axis=1), axis=0)
    if empties > 0:
        tl.atomic_add(status + 1, empties)
        key = i[:, None].to(tl.int64) * 0x100000000 + j[None, :]
        tl.atomic_max(status + 2, tl.max(tl.max(tl.where(empty, key, -1), axis=1), axis=0))
    value = value.to(out.dtype.element_ty)
    rows = (i - first_row).to(tl.int64) * stride
    if stride == 0:
        wide, first = i.to(tl.int64), tl.cast(first_row, tl.int64)
        rows = wide * (wide - 1) // 2 - first * (first - 1) // 2
    tl.store(out + rows[:, None] + j[None, :], value, mask=pair)
    if MIRROR:
        columns = j.to(tl.int64)
        tl.store(out + columns[:, None] * stride + i[None, :], tl.trans(value), mask=tl.trans(pair))
