"""Moves on frequencies and exchangeabilities, which sum to one."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, gamma, uniform
from phloem.inference.mcmc.compiled.reflect import shifted


@uncounted
def simplex_dirichlet(x, rng, concentration, low, scratch):
    """x' ~ Dirichlet(concentration · K · x), x changed in place; concentration is a count per entry, K
    their number. Log Hastings ratio log Dir(x; x') - log Dir(x'; x) (Larget and Simon 1999; MrBayes 3.2
    manual, appendix)."""
    k = x.shape[0]
    total = 0.0
    for i in range(k):
        scratch[i] = gamma(rng, concentration * k * x[i])
        total += scratch[i]
    ratio = 0.0
    for i in range(k):
        if not scratch[i] >= low * total:
            return -math.inf
        scratch[i] /= total
    for i in range(k):
        forward, back = concentration * k * x[i], concentration * k * scratch[i]
        ratio += math.lgamma(forward) - math.lgamma(back)
        ratio += (back - 1.0) * math.log(x[i]) - (forward - 1.0) * math.log(scratch[i])
    for i in range(k):
        x[i] = scratch[i]
    return ratio


@uncounted
def simplex_slider(x, rng, window, low):
    """Two entries trade within their sum: share y = x_i / (x_i + x_j), y' uniform in a window around y,
    reflected so that both stay above low. Symmetric: log Hastings ratio 0 (MrBayes 3.2 manual, "sliding
    window")."""
    k = x.shape[0]
    i = below(rng, k)
    j = (i + 1 + below(rng, k - 1)) % k
    total = x[i] + x[j]
    edge = low / total
    if edge >= 0.5:
        return -math.inf
    share = shifted(x[i] / total, window * (uniform(rng) - 0.5), edge, 1.0 - edge)
    x[i] = share * total
    x[j] = total - x[i]
    return 0.0
