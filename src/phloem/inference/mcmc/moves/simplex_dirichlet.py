"""New shares around the old ones: frequencies, exchangeabilities, weights."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import gamma
from phloem.inference.mcmc.move_table import Move


def simplex_dirichlet(p):
    """x' ~ Dirichlet(tuning · K · x); tuning is a count per entry, K their number. Log Hastings ratio log
    Dir(x; x') - log Dir(x'; x) (Larget and Simon 1999; MrBayes 3.2 manual, appendix)."""
    x, new = p.numbers, p.room
    k, total, ratio = x.shape[0], 0.0, 0.0
    for i in range(k):
        new[i] = gamma(p.rng, p.tuning * k * x[i])
        total += new[i]
    for i in range(k):
        if not new[i] >= p.low * total:
            return -math.inf
        new[i] /= total
    for i in range(k):
        forward, back = p.tuning * k * x[i], p.tuning * k * new[i]
        ratio += math.lgamma(forward) - math.lgamma(back)
        ratio += (back - 1.0) * math.log(x[i]) - (forward - 1.0) * math.log(new[i])
    for i in range(k):
        x[i] = new[i]
    return ratio


MOVE = Move("dirichlet", ("simplex",), simplex_dirichlet, 0.5, 100.0, 0.25, (1e-2, 1e6), narrows=True)
