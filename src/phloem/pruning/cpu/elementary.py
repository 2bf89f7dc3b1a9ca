"""Logarithms and exponentials of whole arrays, in vector instructions: library functions are not vectorised
and would take much of the time of a small problem."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.lanes import as_double

_LOG_2 = 0.6931471805599453
_MANTISSA = np.int64((1 << 52) - 1)
_ONE = np.int64(1023 << 52)
_HALF_RANGE = np.int64(0x6A09E667F3BCD)  # mantissa bits of √2
_SUBNORMAL = 2.2250738585072014e-308
_PER_LOG_2 = 1.4426950408889634
_LOG_2_HIGH, _LOG_2_LOW = 0.693145751953125, 1.42860682030941723212e-6  # the first with bits to spare
_ROUND = 6755399441055744.0  # 1.5 · 2**52: what is added to it loses its fraction


@uncounted(fastmath={"contract"})
def logarithms(mantissa, power, begin, end, out):
    """out[k] = log(mantissa[k] · 2**power[k]) for k in begin:end, in vector instructions.

    mantissa = m 2**e with m in [√½, √2); log m = 2 artanh s, s = (m-1)/(m+1), |s| < 0.1716, the series cut
    after s**19 (error below 2e-17). Library logarithms are not vectorised and would take half of the time of
    a small problem. What is not a positive normal number goes to them.
    """
    bits = mantissa.view(np.int64)
    plain = True
    for k in range(begin, end):
        b = bits[k]
        upper = np.int64((b & _MANTISSA) >= _HALF_RANGE)
        m = np.int64((b & _MANTISSA) | (_ONE - (upper << 52)))
        e = float(np.int32((b >> 52) - 1023 + upper + power[k]))
        x = as_double(m)
        s = (x - 1.0) / (x + 1.0)
        z = s * s
        series = 1.0 / 17.0 + z * (1.0 / 19.0)
        series = 1.0 / 13.0 + z * (1.0 / 15.0 + z * series)
        series = 1.0 / 9.0 + z * (1.0 / 11.0 + z * series)
        series = 1.0 / 5.0 + z * (1.0 / 7.0 + z * series)
        series = 1.0 + z * (1.0 / 3.0 + z * series)
        out[k] = 2.0 * s * series + e * _LOG_2
        plain &= _SUBNORMAL <= mantissa[k] < np.inf
    if not plain:
        for k in range(begin, end):
            if not _SUBNORMAL <= mantissa[k] < np.inf:
                positive = mantissa[k] > 0 or mantissa[k] != mantissa[k]
                out[k] = math.log(mantissa[k]) + power[k] * _LOG_2 if positive else -np.inf


@uncounted(fastmath={"contract"})
def exponentials_less_one(x, n):
    """x[k] becomes exp(x[k]) - 1 for k < n, to about a place of the last; below -700 it is -1.

    exp(x) = 2**k exp(r), |r| <= log(2) / 2, where a series of 13 terms is exact to 1e-17.
    """
    for i in range(n):
        y = min(max(x[i], -700.0), 700.0)
        k = (y * _PER_LOG_2 + _ROUND) - _ROUND
        r = (y - k * _LOG_2_HIGH) - k * _LOG_2_LOW
        p = 1.0 / 479001600.0 + r * (1.0 / 6227020800.0)
        p = 1.0 / 3628800.0 + r * (1.0 / 39916800.0 + r * p)
        p = 1.0 / 40320.0 + r * (1.0 / 362880.0 + r * p)
        p = 1.0 / 720.0 + r * (1.0 / 5040.0 + r * p)
        p = 1.0 / 24.0 + r * (1.0 / 120.0 + r * p)
        p = r + r * r * (0.5 + r * (1.0 / 6.0 + r * p))
        power = as_double((np.int64(np.int32(k)) + np.int64(1023)) << 52)
        x[i] = power * p + (power - 1.0)
