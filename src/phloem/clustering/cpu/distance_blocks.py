"""Distances of one block of columns from counts of site pairs, written to the triangle below the diagonal.

status: (4,) int64 of the calling thread: saturated pairs, pairs without a common site, and one such pair.
A saturated pair (no finite distance, or one above `longest`) gets `longest`. partial: what partly ambiguous
characters add to the counts, as in site_counts.add_partial.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from phloem.clustering.cpu.forms import triangle_row
from phloem.clustering.cpu.site_counts import (
    add_observed,
    add_partial,
    block_of,
    difference_counts,
    joint_counts,
    nucleotide_counts,
    nucleotide_differences,
)
from phloem.hardware.numba_compile import compiled

_MANTISSA = np.int64(0x000FFFFFFFFFFFFF)
_HALF = np.int64(0x3FE0000000000000)
_ROOT_HALF = 0.7071067811865476
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10


@compiled
def logarithms(x, n):
    """x[:n] ← ln x[:n] for positive normal numbers, NaN where x ≤ 0; error below 2 ulp of max(1, |ln x|).

    x = 2^e m with m in [√½, √2); ln m = 2 artanh s, s = (m - 1) / (m + 1), by its series to s^21.
    """
    for j in range(n):
        bits = np.float64(x[j]).view(np.int64)
        exponent = np.float64((bits >> 52) - 1022)
        mantissa = np.int64((bits & _MANTISSA) | _HALF).view(np.float64)
        small = mantissa < _ROOT_HALF
        mantissa = mantissa + mantissa if small else mantissa
        exponent = exponent - 1.0 if small else exponent
        s = (mantissa - 1.0) / (mantissa + 1.0)
        z = s * s
        series = 1 / 19 + z * (1 / 21)
        series = 1 / 17 + z * series
        series = 1 / 15 + z * series
        series = 1 / 13 + z * series
        series = 1 / 11 + z * series
        series = 1 / 9 + z * series
        series = 1 / 7 + z * series
        series = 1 / 5 + z * series
        series = 1 / 3 + z * series
        value = 2.0 * (s + s * z * series)
        value = exponent * _LN2_HIGH + (value + exponent * _LN2_LOW)
        x[j] = value if x[j] > 0.0 else np.nan


@compiled
def _store(values, compared, n, longest, i, first, status, row):
    """Write values[:n] to row[first:], with the rule for saturated and empty pairs."""
    for j in range(n):
        value = values[j]
        if compared[j] == 0:
            status[1] += 1
            status[2], status[3] = i, first + j
        if not value <= longest:
            status[0] += 1
            value = longest
        row[first + j] = max(value, 0.0)


@compiled
def _phi(w, n, shape):
    """w[:n] ← -ln w, or shape (w^(-1/shape) - 1) for shape > 0."""
    logarithms(w, n)
    if shape > 0:
        for j in range(n):
            w[j] = shape * (np.exp(-w[j] / shape) - 1.0)
    else:
        for j in range(n):
            w[j] = -w[j]


class Sites(NamedTuple):
    """planes: of the sites where sequences differ; observed: (n, 1, V) of the others that some sequence
    lacks; complete: how many sites all have and agree on. partial: counts of (compared, A↔G, C↔T,
    transversions)."""

    planes: np.ndarray
    observed: np.ndarray
    complete: int
    partial: tuple[Any, ...]


class Correction(NamedTuple):
    """p, or φ(1 - p - quadratic p²) if corrected; shape: of φ, 0 for equal rates; longest: of saturated
    pairs."""

    corrected: bool
    quadratic: float
    shape: float
    longest: float


@compiled
def nucleotide_block(site_data, terms, shape, longest, first, last, status, triangle):
    """terms: (K, 4) of formula.nucleotide_terms; K = 0 gives proportions of differing sites."""
    planes, observed, complete, partial = site_data
    width, block = last - first, block_of(planes, first, last)
    sites, ag = np.empty(width, np.int64), np.zeros(width, np.int64)
    ct, tv = np.zeros(width, np.int64), np.empty(width, np.int64)
    alike = np.all(terms[:, 1] == terms[:, 3]) and np.all(terms[:, 2] == terms[:, 3])
    total, w, constant = np.empty(width), np.empty(width), block_of(observed, first, last)
    counts = np.empty((4, width))
    for i in range(first + 1, len(planes)):
        stop = min(last, i)
        n = stop - first
        if alike:
            nucleotide_differences(planes[i], block, n, sites, tv)
        else:
            nucleotide_counts(planes[i], block, n, sites, ag, ct, tv)
        add_observed(observed[i], constant, n, complete, sites)
        for j in range(n):
            counts[0, j], counts[1, j], counts[2, j], counts[3, j] = sites[j], ag[j], ct[j], tv[j]
        add_partial(partial, i, first, n, counts)
        if len(terms) == 0:
            for j in range(n):
                total[j] = (counts[1, j] + counts[2, j] + counts[3, j]) / counts[0, j]
        else:
            total[:n] = 0
        for k in range(len(terms)):
            c, a1, a2, a3 = terms[k, 0], terms[k, 1], terms[k, 2], terms[k, 3]
            for j in range(n):
                w[j] = 1.0 - (a1 * counts[1, j] + a2 * counts[2, j] + a3 * counts[3, j]) / counts[0, j]
            _phi(w, n, shape)
            for j in range(n):
                total[j] += c * w[j]
        _store(total, counts[0], n, longest, i, first, status, triangle_row(triangle, i))


@compiled
def difference_block(planes, partial, correction, first, last, status, triangle):
    """planes: as in site_counts.difference_counts; partial: counts of (compared, differing)."""
    corrected, quadratic, shape, longest = correction
    width, block = last - first, block_of(planes, first, last)
    sites, differences, w = np.empty(width, np.int64), np.empty(width, np.int64), np.empty(width)
    counts = np.empty((2, width))
    for i in range(first + 1, len(planes)):
        stop = min(last, i)
        n = stop - first
        difference_counts(planes[i], block, n, sites, differences)
        for j in range(n):
            counts[0, j], counts[1, j] = sites[j], differences[j]
        add_partial(partial, i, first, n, counts)
        for j in range(n):
            w[j] = counts[1, j] / counts[0, j]
        if corrected:
            for j in range(n):
                w[j] = 1.0 - w[j] - quadratic * w[j] * w[j]
            _phi(w, n, shape)
        _store(w, counts[0], n, longest, i, first, status, triangle_row(triangle, i))


@compiled
def _determinant_ratio(counts, n, ratio, total):
    """ratio ← det(N)² / Π (row sums × column sums) where det N > 0, else -1; 1 for identical sequences."""
    for j in range(n):
        a, b, c, d = counts[0, j], counts[1, j], counts[2, j], counts[3, j]
        e, f, g, h = counts[4, j], counts[5, j], counts[6, j], counts[7, j]
        i, k, l, m = counts[8, j], counts[9, j], counts[10, j], counts[11, j]
        p, q, r, s = counts[12, j], counts[13, j], counts[14, j], counts[15, j]
        ls_mr, ks_mq, kr_lq = l * s - m * r, k * s - m * q, k * r - l * q
        is_mp, ir_lp, iq_kp = i * s - m * p, i * r - l * p, i * q - k * p
        determinant = (
            a * (f * ls_mr - g * ks_mq + h * kr_lq)
            - b * (e * ls_mr - g * is_mp + h * ir_lp)
            + c * (e * ks_mq - f * is_mp + h * iq_kp)
            - d * (e * kr_lq - f * ir_lp + g * iq_kp)
        )
        rows = (a + b + c + d) * (e + f + g + h) * (i + k + l + m) * (p + q + r + s)
        columns = (a + e + i + p) * (b + f + k + q) * (c + g + l + r) * (d + h + m + s)
        total[j] = a + b + c + d + e + f + g + h + i + k + l + m + p + q + r + s
        value = determinant / rows * determinant / columns
        value = value if determinant > 0 else -1.0
        ratio[j] = 1.0 if a + f + l + s == total[j] else value


@compiled
def logdet_block(planes, partial, first, last, longest, status, triangle):
    """LogDet/paralinear distances (reference.distances.logdet); planes one-hot, four states.

    partial: all sixteen counts.
    """
    width, block = last - first, block_of(planes, first, last)
    counts, ratio, sites = np.empty((16, width)), np.empty(width), np.empty(width)
    for i in range(first + 1, len(planes)):
        stop = min(last, i)
        n = stop - first
        joint_counts(planes[i], block, n, counts)
        add_partial(partial, i, first, n, counts)
        _determinant_ratio(counts, n, ratio, sites)
        logarithms(ratio, n)
        for j in range(n):
            ratio[j] = -ratio[j] / 8
        _store(ratio, sites, n, longest, i, first, status, triangle_row(triangle, i))
