"""The variance of white noise, branch rates spreading with it."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.move_table import Move


@uncounted
def _spread(k):
    """Roughly the standard deviation of the logarithm of a gamma number of shape k: 1 / √k where k is large,
    1 / k where it is small."""
    return math.sqrt(1.0 + k) / k


def noise_variance(p):
    """The variance v times m = exp(tuning (U - ½)); every log rate ε, of shape k = μ τ / v (white_noise of
    density/deviations.py), stays at the same place of its distribution, roughly: ε' = (ε + 1/k) s(k') / s(k)
    - 1/k'. log Hastings ratio log m + Σ log(s(k') / s(k)). For branches of which the data say little;
    spread_centred is for the others."""
    log_m, place = p.tuning * (uniform(p.rng) - 0.5), p.spreads[p.own]
    rate, old = p.values[p.rates[p.own]], p.values[place]
    p.values[place] *= math.exp(log_m)
    ratio = log_m
    for x in range(p.heights.shape[0] - 1):
        clock = rate * (p.heights[p.parent[x]] - p.heights[x])
        if clock == 0.0:
            continue
        k, new = clock / old, clock / p.values[place]
        wider = _spread(new) / _spread(k)
        p.deviations[x] = (p.deviations[x] + 1.0 / k) * wider - 1.0 / new
        ratio += math.log(wider)
    return ratio


MOVE = Move("noise_variance", noise_variance, 6, 0.5, 0.3, (1e-3, 20.0), needs="noise")
