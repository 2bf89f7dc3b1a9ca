"""From heights to branch lengths in substitutions: clocks, and derivatives the other way.

Branch i, above node i, lasts τ_i = t_parent - t_i and has the length d_i = r_i τ_i. A strict clock has
r_i = μ. The uncorrelated log-normal clock (Drummond et al. 2006, PLoS Biol. 4:e88) is non-centred here: r_i =
μ exp(s ε_i - h s²), ε_i ~ N(0, 1). With h = ½ μ is the mean rate in real space, and the spread is given by
the coefficient of variation φ, s² = log(1 + φ²) ("cv"), or is s itself ("log", BEAST 2's ucldMean and
ucldStdev); with h = 0 μ is the median rate and s the spread ("log-median", log μ and s
BEAST 1's ucld.mu and ucld.sigma).

With L_i = d log P(data) / d d_i, all from one backward pass:

    d/dt_i += Σ_{children c} r_c L_c - r_i L_i,   d/d log μ = Σ d_i L_i,   d/dε_i = s d_i L_i,
    d/ds = Σ d_i L_i (ε_i - 2 h s),   ds/dφ = φ / (s (1 + φ²)).                                           (3)

Given all d_i the data say nothing about dates: ε_i = (log(d_i / τ_i) - log μ + h s²) / s, and the density of
ε becomes one of d by -log s a branch (held_by_distances).

The gamma clock has s = φ, h = 0 and another density of ε, gamma by exp(s ε) (deviations.py); so has white
noise, of s = 1, whose rates vary the less the longer a branch lasts. Clocks whose rates know of each other
are in local_clocks.py and autocorrelated_clock.py.
"""

from __future__ import annotations

import math

# kinds of clocks
STRICT, BY_CV, BY_LOG, GAMMA, LOCAL, RANDOM, SHRINKAGE, WHITE_NOISE, AUTOCORRELATED, AUTOCORRELATED_LOG = (
    range(10)
)
BY_LOG_MEDIAN, LOCAL_CROWN = 10, 11
OF_CLADES = (LOCAL, LOCAL_CROWN)  # with a rate of their own, on the branch above them too, or not
LOG_NORMAL = (BY_CV, BY_LOG, BY_LOG_MEDIAN)  # uncorrelated
OF_MEAN_RATE = (BY_CV, BY_LOG)  # h = ½
INDEPENDENT = (*LOG_NORMAL, GAMMA, WHITE_NOISE)  # of each other: their branches' distances can be held
FROM_PARENTS = (AUTOCORRELATED, AUTOCORRELATED_LOG)  # rates drawn about those of parents
SMOOTH = (*INDEPENDENT, *FROM_PARENTS)  # coordinates of Hamiltonian dynamics


def log_spread(kind, spread):
    """s of a clock's spread parameter; 0 of a strict clock."""
    if kind == STRICT:
        return 0.0
    if kind == WHITE_NOISE:
        return 1.0
    return math.sqrt(math.log1p(spread * spread)) if kind == BY_CV else spread


def spread_slope(kind, spread, s):
    """ds / d spread."""
    if kind == WHITE_NOISE:
        return 0.0
    return spread / (s * (1.0 + spread * spread)) if kind == BY_CV else 1.0


def branches_last(parent, heights, ancestral):
    """Whether all branches last some time; those above the first so many nodes may last none: tips that are
    ancestors."""
    for x in range(parent.shape[0]):
        if parent[x] >= 0:
            time = heights[parent[x]] - heights[x]
            if not (time > 0.0 or (time == 0.0 and x < ancestral)):
                return False
    return True


def set_lengths(kind, rate, s, parent, heights, deviations, lengths):
    """lengths (N,), out: d_i, 0 of the root."""
    shift = 0.5 * s * s if kind in OF_MEAN_RATE else 0.0
    for x in range(parent.shape[0]):
        if parent[x] < 0:
            lengths[x] = 0.0
        else:
            lengths[x] = rate * (heights[parent[x]] - heights[x])
            if s != 0.0:
                lengths[x] *= math.exp(s * deviations[x] - shift)


def pull_back_lengths(kind, rate, s, parent, heights, deviations, by_length, by_height, by_deviation):
    """From L (N,) to d/dt, added to by_height, and d/dε, added to by_deviation (both (N,)). Returns
    d/d log μ and d/ds (3)."""
    by_rate, by_s = 0.0, 0.0
    shift = s if kind in OF_MEAN_RATE else 0.0
    for x in range(parent.shape[0]):
        if parent[x] < 0:
            continue
        slope = rate * by_length[x]
        if s != 0.0:
            slope *= math.exp(s * (deviations[x] - 0.5 * shift))
        by_height[parent[x]] += slope
        by_height[x] -= slope
        slope *= heights[parent[x]] - heights[x]
        by_rate += slope
        if kind != STRICT:
            by_deviation[x] += s * slope
            by_s += slope * (deviations[x] - shift)
    return by_rate, by_s


def set_deviations(kind, rate, s, parent, heights, lengths, deviations):
    """deviations (N,), out: ε_i that give the lengths, where these are held; of branches that last no time
    they stay."""
    shift = 0.5 * s * s if kind in OF_MEAN_RATE else 0.0
    for x in range(parent.shape[0]):
        time = heights[parent[x]] - heights[x] if parent[x] >= 0 else 0.0
        if time > 0.0:
            deviations[x] = (math.log(lengths[x] / (rate * time)) + shift) / s


def held_by_distances(kind, s, parent, heights, deviations, by_deviation, by_height):
    """What the log density of all ε_i gains where it is one of (t, μ, s) at held distances, Σ -log s; and
    from by_deviation (N,), d/dε of that of ε (-ε where it is standard normal), the slopes of both: d/dt,
    added to by_height (N,), d/d log μ and d/ds."""
    by_rate, by_s, inverse, held = 0.0, 0.0, 1.0 / s, 0
    shift = 1.0 if kind in OF_MEAN_RATE else 0.0
    for x in range(parent.shape[0]):
        time = heights[parent[x]] - heights[x] if parent[x] >= 0 else 0.0
        if time == 0.0:
            continue
        held += 1
        by = by_deviation[x] * inverse
        by_rate -= by
        by_s += by * (s * shift - deviations[x]) - inverse
        slope = -by / time
        by_height[parent[x]] += slope
        by_height[x] -= slope
    return -held * math.log(s), by_rate, by_s
