"""Logarithms of whole arrays, in a form that vectorises."""

from __future__ import annotations

import numpy as np

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
