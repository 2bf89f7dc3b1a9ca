"""Densities of the deviations ε of branches that are not standard normal, with derivatives: what clocks say
of their branches' rates.

Plain functions of (parent, heights, deviations (N,), numbers of the clock, its rate and then its spread) →
log density, which write d/dε into by_deviation (N,) and add the derivatives by heights to by_height (N,) and
by numbers to by_number; compiled where a run has them (inference/time/compiled/by_address.py).
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted

CHANGES = math.log(2.0)  # rates that change along the tree, expected before the data: none with probability ½
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
MEDIAN = 3.672060748850897**4  # of |x| under exp(-|x|^¼)


@uncounted
def digamma(y):
    """d/dy log Γ(y), y > 0: the asymptotic series above 10 (Abramowitz and Stegun 6.3.18)."""
    below = 0.0
    while y < 10.0:
        below -= 1.0 / y
        y += 1.0
    z = 1.0 / (y * y)
    series = z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z / 132.0))))
    return below + math.log(y) - 0.5 / y - series


def log_gamma(parent, heights, deviations, numbers, by_deviation, by_height, by_number):
    """φ ε = u, the log of a rate over the mean, gamma of mean 1 and coefficient of variation φ =
    numbers[1], k = 1/φ² (named by Drummond et al. 2006, PLoS Biol. 4:e88): log p = log φ + k log k - log
    Γ(k) + k (u - exp u), standard normal as φ goes to 0."""
    spread = numbers[1]
    k = 1.0 / (spread * spread)
    constant = k * math.log(k) - k - math.lgamma(k) + math.log(spread)
    at_k = math.log(k) - digamma(k)
    total, by_k = 0.0, 0.0
    for x in range(parent.shape[0]):
        by_deviation[x] = 0.0
        if parent[x] >= 0:
            log_rate = spread * deviations[x]
            above = math.expm1(log_rate)
            total += constant + k * (log_rate - above)
            by_deviation[x] = -above / spread
            by_number[1] += 1.0 / spread - deviations[x] * k * above
            by_k += at_k + log_rate - above
    by_number[1] -= 2.0 * k / spread * by_k
    return total


@uncounted
def log_noise(e, k):
    """Log density of e, exp e gamma of mean 1 and shape k; of k = 0, a branch that lasts no time, of which
    nothing reads e, standard normal. Also exp e - 1 and log k, which its slopes need."""
    if k == 0.0:
        return -(0.5 * e * e + HALF_LOG_2PI), 0.0, 0.0
    over, log_k = math.expm1(e), math.log(k)
    return k * log_k - k - math.lgamma(k) + k * (e - over), over, log_k


def white_noise(parent, heights, deviations, numbers, by_deviation, by_height, by_number):
    """exp ε = r, a rate over the mean, is gamma of mean 1 and variance v / (μ τ), τ what the branch lasts, so
    that the variance of its length in substitutions grows with that: k = μ τ / v, log p = k log k - log Γ(k)
    + k (ε - r) (Lepage et al. 2007, Mol. Biol. Evol. 24:2669; MrBayes 3.2's igr). Of a branch that lasts no
    time nothing reads ε, which is standard normal."""
    rate, variance, total = numbers[0], numbers[1], 0.0
    for x in range(parent.shape[0]):
        by_deviation[x] = 0.0
        above = parent[x]
        if above >= 0:
            k, e = rate * (heights[above] - heights[x]) / variance, deviations[x]
            if not k >= 0.0:
                return -math.inf
            value, over, log_k = log_noise(e, k)
            total += value
            if k == 0.0:
                by_deviation[x] = -e
                continue
            by_deviation[x] = -k * over
            by_k = log_k - digamma(k) + e - over
            by_height[above] += by_k * rate / variance
            by_height[x] -= by_k * rate / variance
            by_number[0] += by_k * k / rate
            by_number[1] -= by_k * k / variance
    return total


def spike_and_slab(parent, heights, deviations, numbers, by_deviation, by_height, by_number):
    """Most ε are 0, the others log multipliers exp ε ~ Gamma(½, rate ½); their number K is Poisson(log 2),
    cut at the n branches, and all sets of K are alike (Drummond and Suchard 2010, BMC Biol. 8:114): log p =
    K log λ - log n! + log (n-K)! - log Σ_j λ^j / j! + the K densities."""
    total, changed, n = 0.0, 0, 0
    for x in range(parent.shape[0]):
        by_deviation[x] = 0.0
        if parent[x] >= 0:
            n += 1
            e = deviations[x]
            if e != 0.0:
                changed += 1
                total += 0.5 * (e - math.exp(e)) - HALF_LOG_2PI
                by_deviation[x] = 0.5 * (1.0 - math.exp(e))
    term, mass = 1.0, 1.0
    for j in range(1, n + 1):
        term *= CHANGES / j
        mass += term
    return (
        total
        + changed * math.log(CHANGES)
        + math.lgamma(n - changed + 1.0)
        - math.lgamma(n + 1.0)
        - math.log(mass)
    )


def bridge(parent, heights, deviations, numbers, by_deviation, by_height, by_number):
    """p(ε) ∝ exp(-|m ε|^¼), |ε| of median 1: many next to 0, few far away (the Bayesian bridge of Polson,
    Scott and Windle 2014, J. R. Stat. Soc. B 76:713, as Fisher et al. 2023, Mol. Biol. Evol. 40:msad140,
    give it to differences of log rates). ∫ exp(-|x|^¼) dx = 48."""
    total = 0.0
    for x in range(parent.shape[0]):
        by_deviation[x] = 0.0
        if parent[x] >= 0:
            y = math.sqrt(math.sqrt(MEDIAN * abs(deviations[x])))
            total += math.log(MEDIAN / 48.0) - y
            if y > 0.0:
                by_deviation[x] = -0.25 * y / deviations[x]
    return total
