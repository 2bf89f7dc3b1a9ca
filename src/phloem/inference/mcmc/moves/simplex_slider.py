"""Two shares trade."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below, shifted, uniform
from phloem.inference.mcmc.move_table import Move


def simplex_slider(p):
    """Two entries trade within their sum: share y = x_i / (x_i + x_j), y' uniform in a window around y,
    reflected so that both stay above low. Symmetric: log Hastings ratio 0 (MrBayes 3.2 manual, "sliding
    window")."""
    x = p.numbers
    k = x.shape[0]
    i = below(p.rng, k)
    j = (i + 1 + below(p.rng, k - 1)) % k
    total = x[i] + x[j]
    edge = p.low / total
    if edge >= 0.5:
        return -math.inf
    share = shifted(x[i] / total, p.tuning * (uniform(p.rng) - 0.5), edge, 1.0 - edge)
    x[i] = share * total
    x[j] = total - x[i]
    return 0.0


MOVE = Move("slider", ("simplex",), simplex_slider, 0.5, 0.2, 0.25, (1e-4, 1.0))
