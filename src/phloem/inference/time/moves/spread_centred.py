"""The spread of branch rates, at the rates there are."""

from __future__ import annotations

import math

from phloem.density.clocks import BY_CV, OF_MEAN_RATE
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.move_table import Move


@uncounted
def _log_spread(kind, spread):
    return math.sqrt(math.log1p(spread * spread)) if kind == BY_CV else spread


def spread_centred(p):
    """The spread times m = exp(tuning (U - ½)), all rates of branches held (the centred parametrisation): ε'
    = (s ε + h (s'² - s²)) / s', density/clocks.py. log Hastings ratio log m + (2T - 2) log(s / s'), the
    Jacobian of the deviations."""
    log_m, spread = p.tuning * (uniform(p.rng) - 0.5), p.spreads[p.own]
    s = _log_spread(p.clock, p.values[spread])
    p.values[spread] *= math.exp(log_m)
    new = _log_spread(p.clock, p.values[spread])
    shift = 0.5 * (new * new - s * s) if p.clock in OF_MEAN_RATE else 0.0
    n = p.heights.shape[0] - 1
    for x in range(n):
        p.deviations[x] = (s * p.deviations[x] + shift) / new
    return log_m + n * math.log(s / new)


MOVE = Move("spread_centred", spread_centred, 4, 0.5, 0.3, (1e-3, 20.0), needs="spread", free=True)
