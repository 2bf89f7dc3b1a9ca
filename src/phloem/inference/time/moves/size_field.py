"""Population sizes of all times, or of some in a row, with the precision of their smoothing."""

from __future__ import annotations

import math

from phloem.density.tree_priors.tree_prior import Genealogy
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.time.compiled.field import draw, fit, log_density
from phloem.inference.time.move_table import Move


def size_field(p):
    """One time in four all sizes, and the precision, unless it is fixed, times m = exp(2 (U - ½)) first; else
    a row of 1 to `tuning` of them, its length and where it begins uniform. Sizes are drawn from nearly what
    they are given the tree and all else (compiled/field.py). log Hastings ratio: the log density of the old
    ones by the approximation that they would be drawn from, less that of the new ones; and log m."""
    k, ratio, n = p.field.n, 0.0, p.field.n
    if uniform(p.rng) < 0.75:
        n = 1 + below(p.rng, min(k, int(p.tuning)))
    elif p.field.precise != 0:
        ratio = 2.0 * (uniform(p.rng) - 0.5)
    first = below(p.rng, k - n + 1)
    end = first + n
    numbers = p.values[p.tree_first : p.tree_first + p.field.x.shape[0]]
    if not _fit(p, numbers, first, end):
        return -math.inf
    back = log_density(p.field, numbers, first, end)
    if ratio != 0.0:
        numbers[k] *= math.exp(ratio)
        if not _fit(p, numbers, first, end):
            return -math.inf
    draw(p.field, p.rng, numbers, first, end)
    there = log_density(p.field, numbers, first, end)
    return ratio + back - there if abs(there) < math.inf else -math.inf  # beyond what numbers can be


@uncounted
def _fit(p, numbers, first, end):
    for i in range(numbers.shape[0]):
        p.field.x[i] = numbers[i]
    g = Genealogy(p.heights, p.order, p.n_tips, p.groups, p.parent, p.stack, p.stack)  # the last are not read
    return fit(p.field, g, p.power[0], first, end)


MOVE = Move("size_field", size_field, 5, 8.0, 0.4, (1.0, 1e9), needs="field", free=True)
