"""Σ_p weights_p log x_p, in vector instructions."""

from __future__ import annotations

import numpy as np

from phloem.inference.mcmc.compiled.compile import compiled

_LOG_2 = 0.6931471805599453
_MANTISSA = np.int64((1 << 52) - 1)
_ONE = np.int64(1023 << 52)
_HALF_RANGE = np.int64(0x6A09E667F3BCD)  # mantissa bits of √2


@compiled(fastmath={"reassoc", "contract", "nsz"})
def weighted_log_sum(x, exponent, weights):
    """Σ weights (log x + exponent log 2); x: (P,) ≥ 0, destroyed. -inf where a positive weight meets a 0.

    x = m 2**e with m in [√½, √2); log m = 2 artanh s, s = (m-1)/(m+1), |s| < 0.1716, the series cut after
    s**19 (error below 2e-17). Library logarithms are not vectorised and would take half of a generation's
    time.
    """
    bits = x.view(np.int64)
    total = 0.0
    bad = 0
    for p in range(x.shape[0]):
        b = bits[p]
        bad += (b < np.int64(1 << 52)) & (weights[p] > 0.0)
        e = (b >> 52) - 1023 + ((b & _MANTISSA) >= _HALF_RANGE)
        bits[p] = (b & _MANTISSA) | (_ONE - (np.int64((b & _MANTISSA) >= _HALF_RANGE) << 52))
        exponent[p] += np.int32(e)
    for p in range(x.shape[0]):
        s = (x[p] - 1.0) / (x[p] + 1.0)
        z = s * s
        series = 1.0 / 17.0 + z * (1.0 / 19.0)
        series = 1.0 / 13.0 + z * (1.0 / 15.0 + z * series)
        series = 1.0 / 9.0 + z * (1.0 / 11.0 + z * series)
        series = 1.0 / 5.0 + z * (1.0 / 7.0 + z * series)
        series = 1.0 + z * (1.0 / 3.0 + z * series)
        total += weights[p] * (2.0 * s * series + exponent[p] * _LOG_2)
    return -np.inf if bad else total
