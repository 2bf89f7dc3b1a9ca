"""Population sizes of neighbouring times, drawn all at once from nearly what they are given the tree.

θ = log N of K times has a density that is log-concave and in which only neighbours meet, for every tree prior
of the kind (TreePrior.field). Its Gaussian approximation at the mode is drawn from in time linear in K (Rue
2001, J. R. Stat. Soc. B 63:325; Knorr-Held and Rue 2002, Scand. J. Stat. 29:597). Slopes are the tree
prior's own; curvatures their differences, every third θ moved at a time. The mode is searched from a
start that depends on the tree alone, so that the way back finds the same one.
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import gamma, normal
from phloem.inference.time.compiled.by_address import TREE_PRIOR

STEP = 1e-4  # of differences, in θ
DEGREES = 6.0  # of Student's t, which innovations have: of normal ones chains stick in tails
LONGEST, MOST, ENOUGH = 2.0, 40, 1e-7  # of the search's steps: how far, how many, and what ends it

MODE, DIAGONAL, BELOW, SLOPE, MOVED = range(5)  # rows of Field

log_tree_prior = TREE_PRIOR.call


@uncounted
def fit(field, g, power, first, end):
    """Mode and curvature of a power of the density of θ_first … θ_(end-1), given field.x otherwise: into the
    rows. False where there are none that numbers can tell."""
    mode, slope, d, below = field.rows[MODE], field.rows[SLOPE], field.rows[DIAGONAL], field.rows[BELOW]
    for m in range(field.n):
        mode[m] = math.log(field.x[m])
    start = math.log(_constant_size(g))
    for m in range(first, end):
        mode[m] = start
    for _ in range(MOST):
        _slopes(field, g, power, slope)
        for c in range(3):
            for m in range(first + c, end, 3):
                mode[m] += STEP
            _slopes(field, g, power, field.rows[MOVED + c])
            for m in range(first + c, end, 3):
                mode[m] -= STEP
        for m in range(first, end):
            own = (m - first) % 3
            d[m] = (slope[m] - field.rows[MOVED + own, m]) / STEP
            if m + 1 < end:
                here = slope[m] - field.rows[MOVED + (own + 1) % 3, m]
                below[m] = 0.5 * (here + slope[m + 1] - field.rows[MOVED + own, m + 1]) / STEP
        for m in range(first, end):
            if m > first:
                before = below[m - 1]
                below[m - 1] /= d[m - 1]
                d[m] -= before * below[m - 1]
                slope[m] -= below[m - 1] * slope[m - 1]
            if not d[m] > 0.0:
                return False
        longest = 0.0
        for m in range(end - 1, first - 1, -1):
            slope[m] = slope[m] / d[m] - (below[m] * slope[m + 1] if m + 1 < end else 0.0)
            longest = max(longest, abs(slope[m]))
        share = min(1.0, LONGEST / longest) if longest > 0.0 else 1.0
        for m in range(first, end):
            mode[m] += share * slope[m]
        if longest < ENOUGH:
            return True
    return longest < LONGEST


@uncounted
def _slopes(field, g, power, out):
    """Of power × the log density of the numbers, as one of θ = field.rows[MODE]."""
    mode = field.rows[MODE]
    for m in range(field.n):
        field.x[m] = math.exp(mode[m])
    for i in range(field.x.shape[0]):
        field.by_number[i] = 0.0
    log_tree_prior(field.density, (g, field.x, field.settings, field.by_height, field.by_number))
    for m in range(field.n):
        out[m] = power * field.by_number[m] * field.x[m] + 1.0


@uncounted
def _constant_size(g):
    """The most likely size of a population that never changed."""
    k, last, exposure = 0, 0.0, 0.0
    for x in g.order:
        exposure += 0.5 * k * (k - 1) * (g.heights[x] - last)
        last = g.heights[x]
        k += 1 if x < g.n_tips else -1
    return exposure / (g.n_tips - 1)


@uncounted
def draw(field, rng, sizes, first, end):
    """Draw sizes[first:end] from the fit."""
    mode, d, below = field.rows[MODE], field.rows[DIAGONAL], field.rows[BELOW]
    later = 0.0
    for m in range(end - 1, first - 1, -1):
        off = normal(rng) / math.sqrt(d[m] * gamma(rng, 0.5 * DEGREES) / (0.5 * DEGREES))
        if m + 1 < end:
            off -= below[m] * later
        sizes[m] = math.exp(mode[m] + off)
        later = off


@uncounted
def log_density(field, sizes, first, end):
    """Of sizes[first:end] by the fit, as a density of sizes; up to a constant."""
    mode, d, below = field.rows[MODE], field.rows[DIAGONAL], field.rows[BELOW]
    total, later = 0.0, 0.0
    for m in range(end - 1, first - 1, -1):
        theta = math.log(sizes[m])
        off = theta - mode[m]
        apart = off + (below[m] * later if m + 1 < end else 0.0)
        total += 0.5 * math.log(d[m]) - theta
        total -= 0.5 * (DEGREES + 1.0) * math.log1p(d[m] * apart * apart / DEGREES)
        later = off
    return total
