"""The variance of autocorrelated rates, at the rates there are."""

from __future__ import annotations

import math

from phloem.density.autocorrelated_clock import log_variance
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.move_table import Move


def autocorrelated_variance(p):
    """v times m = exp(tuning (U - ½)), all rates held (the centred parametrisation): ε' = (σ ε + (σ'² - σ²) /
    2) / σ', density/autocorrelated_clock.py. log Hastings ratio log m + Σ log(σ / σ'), the Jacobian of the
    deviations."""
    log_m, place = p.tuning * (uniform(p.rng) - 0.5), p.spreads[p.own]
    rate, old, rho = p.values[p.rates[p.own]], p.values[place], p.spots
    p.values[place] *= math.exp(log_m)
    ratio = log_m
    for i in range(p.order.shape[0] - 1, -1, -1):
        x = p.order[i]
        above = p.parent[x]
        rho[x] = 1.0
        if above < 0:
            continue
        length = rate * (p.heights[above] - p.heights[x])
        if length == 0.0:
            rho[x] = rho[above]
            continue
        before = log_variance(p.clock, old, length, rho[above])[0]
        after = log_variance(p.clock, p.values[place], length, rho[above])[0]
        s, new = math.sqrt(before), math.sqrt(after)
        rho[x] = rho[above] * math.exp(s * p.deviations[x] - 0.5 * before)
        p.deviations[x] = (s * p.deviations[x] + 0.5 * (after - before)) / new
        ratio += math.log(s / new)
    return ratio


MOVE = Move(
    "autocorrelated_variance", autocorrelated_variance, 4, 0.5, 0.3, (1e-3, 20.0), needs="autocorrelated",
    free=True,
)  # fmt: skip
