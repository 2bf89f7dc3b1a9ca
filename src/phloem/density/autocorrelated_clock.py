"""Autocorrelated log-normal clocks: a branch's rate at its lower end is drawn about that at its upper end.

ρ = 1 at the root, where the rate is μ; at node x below its parent, A = μ τ_x the clock's length of the branch
between,

    log ρ_x = log ρ_parent + σ ε_x - σ² / 2,   ε_x ~ N(0, 1),   d_x = A (ρ_parent + ρ_x) / 2,

so the mean of ρ_x is ρ_parent. σ² = v A where v is the variance of the logarithm a substitution (Kishino,
Thorne and Bruno 2001, Mol. Biol. Evol. 18:352; Thorne and Kishino 2002, Syst. Biol. 51:689), "log"; σ² =
log(1 + v A / ρ_parent²) where it is that of ρ itself, "cv" (MrBayes 3.2.7a's tk02). Deviations are
non-centred, as of the other clocks (clocks.py).
"""

from __future__ import annotations

import math

import numpy as np

from phloem.density.clocks import AUTOCORRELATED
from phloem.hardware.numba_compile import uncounted

LEAST_RATE = 1e-30  # of a branch, times that at the root


@uncounted
def log_variance(kind, variance, length, above):
    """σ² of a branch, by the clock's length and ρ of the parent; and dσ² / d log v, which is dσ² / d log A,
    and where v is that of ρ minus half of dσ² / d log ρ_parent."""
    if kind == AUTOCORRELATED:
        share = variance * length / (above * above)
        return math.log1p(share), share / (1.0 + share)
    return variance * length, variance * length


@uncounted
def set_rates(b):
    """ρ (N,) into b.room; b: local_clocks.Branches."""
    rate, variance, rho = b.numbers[0], b.numbers[1], b.room
    for i in range(b.order.shape[0] - 1, -1, -1):
        x = b.order[i]
        above = b.parent[x]
        rho[x] = 1.0
        if above >= 0:
            lasts = b.heights[above] - b.heights[x]
            square = log_variance(b.kind, variance, rate * lasts, rho[above])[0]
            rho[x] = rho[above] * math.exp(math.sqrt(square) * b.deviations[x] - 0.5 * square)


def set_lengths_autocorrelated(b, lengths):
    """lengths (N,), out: d, 0 of the root. Returns 1.0, as others may not."""
    set_rates(b)
    rho = b.room
    for x in range(b.parent.shape[0]):
        above = b.parent[x]
        lengths[x] = 0.0
        if above >= 0:
            lengths[x] = 0.5 * b.numbers[0] * (b.heights[above] - b.heights[x]) * (rho[above] + rho[x])
    return 1.0


def deviations_of(kind, numbers, parent, heights, lengths):
    """(N,) ε that give the lengths, 0 of the root and of branches that last no time, in NumPy: what draws
    say. Rounding may leave a rate that is none, which then is next to 0."""
    rate, variance = numbers
    rho, found = np.ones(len(parent)), np.zeros(len(parent))
    for x in np.argsort(-heights, kind="stable").tolist():
        above = parent[x]
        length = rate * (heights[above] - heights[x]) if above >= 0 else 0.0
        if length > 0.0:
            rho[x] = max(2.0 * lengths[x] / length - rho[above], LEAST_RATE)
            square = log_variance.py_func(kind, variance, length, rho[above])[0]
            found[x] = (math.log(rho[x] / rho[above]) + 0.5 * square) / math.sqrt(square)
        elif above >= 0:
            rho[x] = rho[above]
    return found


def pull_back_autocorrelated(b, lengths, by_length, by_height, by_deviation, by_number):
    """From L (N,), d log P(data) / d d, to derivatives, added to the last three."""
    n, rate, variance = b.parent.shape[0], b.numbers[0], b.numbers[1]
    set_rates(b)
    rho, by_rho = b.room[:n], b.room[n:]  # by log ρ, of all below
    for x in range(n):
        by_rho[x] = 0.0
    for i in range(n):
        x = b.order[i]
        above = b.parent[x]
        if above < 0:
            continue
        lasts = b.heights[above] - b.heights[x]
        if lasts == 0.0:  # ρ is the parent's
            by_rho[above] += by_rho[x]
            continue
        half = 0.5 * rate * lasts * by_length[x]
        square, slope = log_variance(b.kind, variance, rate * lasts, rho[above])
        sigma = math.sqrt(square)
        by_rho[x] += half * rho[x]
        by_step = by_rho[x] * (0.5 * b.deviations[x] / sigma - 0.5) * slope  # by log v, and log A through σ²
        by_rho[above] += half * rho[above] + by_rho[x]
        if b.kind == AUTOCORRELATED:
            by_rho[above] -= 2.0 * by_step
        by_deviation[x] += by_rho[x] * sigma
        by_number[1] += by_step / variance
        by_log_length = lengths[x] * by_length[x] + by_step
        by_number[0] += by_log_length / rate
        by_height[above] += by_log_length / lasts
        by_height[x] -= by_log_length / lasts
    return 0.0
