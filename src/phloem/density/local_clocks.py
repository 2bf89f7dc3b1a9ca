"""Clocks whose rates are handed down the tree: by clade, at random branches, and with small changes
everywhere.

Along the branch above node x the rate is ρ_x times what it is above x's parent, ρ = 1 at the root:

    log ρ_x = log ρ_parent + a ε_x + log m_c, the last at the branch above clade c of a clock of its own.

"local": a = 0; μ is the rate outside of all these clades, m_c the ratio of a clade's rate to that around it
(Yoder and Yang 2000, Mol. Biol. Evol. 17:1081); "local-crown": m_c at both branches below clade c's ancestor
instead, so that the branch above it has the rate around. "random": a = 1, ε as deviations.spike_and_slab has
them (Drummond and Suchard 2010). "shrinkage": a the median size of a change of log ρ, ε as deviations.bridge
has them (Fisher et al. 2023). For these two μ is the mean rate over the tree: r_x = μ ρ_x Σ t / Σ ρ t, t the
branches' durations. With d_x = r_x t_x, L_x = d log P(data) / d d_x and S = Σ d L:

    d/dt_x = d_x L_x / t_x + S (1 / Σ t - ρ_x / Σ ρ t),   d/d log ρ_x = d_x L_x - S ρ_x t_x / Σ ρ t,   (1)

the second summed over all branches below where log ρ_x changes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from phloem.density.clocks import LOCAL_CROWN, OF_CLADES, SHRINKAGE
from phloem.hardware.numba_compile import uncounted


class Branches(NamedTuple):
    """What such a clock sees. kind: density.clocks.LOCAL, …. n_tips; parent, left, right, order (children
    before parents), heights, deviations: (N,). numbers: the rate, then the spread if any, then ratios of
    clades. member: (C, T) uint8, the tips of each clade. which, counts: (N,) int64, room: (2N,), to work
    in."""

    kind: int
    n_tips: int
    parent: np.ndarray
    left: np.ndarray
    right: np.ndarray
    order: np.ndarray
    heights: np.ndarray
    deviations: np.ndarray
    numbers: np.ndarray
    member: np.ndarray
    which: np.ndarray
    counts: np.ndarray
    room: np.ndarray


@uncounted
def set_stems(b):
    """b.which: the clade whose rate begins at a branch, its stem or both below its ancestor, -1 of others. Of
    taxa that are no clade their ancestor's."""
    for x in range(b.which.shape[0]):
        b.which[x] = -1
    for c in range(b.member.shape[0]):
        size = 0
        for x in range(b.n_tips):
            size += b.member[c, x]
        for i in range(b.order.shape[0]):
            x = b.order[i]
            b.counts[x] = b.member[c, x] if x < b.n_tips else b.counts[b.left[x]] + b.counts[b.right[x]]
            if b.counts[x] == size:
                if b.kind == LOCAL_CROWN and x >= b.n_tips:
                    b.which[b.left[x]] = b.which[b.right[x]] = c
                else:
                    b.which[x] = c
                break


@uncounted
def step_of(b):
    """a: log ρ changes by a ε."""
    return 0.0 if b.kind in OF_CLADES else b.numbers[1] if b.kind == SHRINKAGE else 1.0


@uncounted
def set_relative_rates(b):
    """ρ (N,) into b.room; returns Σ t and Σ ρ t, nan where a branch lasts no time."""
    set_stems(b)
    rho, step, time, distance, first = b.room, step_of(b), 0.0, 0.0, b.numbers.shape[0] - b.member.shape[0]
    for i in range(b.order.shape[0] - 1, -1, -1):
        x = b.order[i]
        rho[x] = 1.0
        if b.parent[x] >= 0:
            ratio = b.numbers[first + b.which[x]] if b.which[x] >= 0 else 1.0
            rho[x] = rho[b.parent[x]] * math.exp(step * b.deviations[x]) * ratio
            lasts = b.heights[b.parent[x]] - b.heights[x]
            if not lasts > 0.0:
                time = math.nan
            time += lasts
            distance += rho[x] * lasts
    return time, distance


def set_lengths_along(b, lengths):
    """lengths (N,), out: d, 0 of the root. Returns 1.0, or 0.0 where a branch lasts no time."""
    time, distance = set_relative_rates(b)
    factor = b.numbers[0] if b.kind in OF_CLADES else b.numbers[0] * time / distance
    for x in range(b.parent.shape[0]):
        above = b.parent[x]
        lengths[x] = factor * b.room[x] * (b.heights[above] - b.heights[x]) if above >= 0 else 0.0
    return 1.0 if time > 0.0 and factor > 0.0 else 0.0  # not of nan


def pull_back_along(b, lengths, by_length, by_height, by_deviation, by_number):
    """From L (N,) to derivatives (1), added to the last three."""
    n, free = b.parent.shape[0], b.kind in OF_CLADES
    time, distance = set_relative_rates(b)
    step, first, total = step_of(b), b.numbers.shape[0] - b.member.shape[0], 0.0
    rho, by_rho = b.room[:n], b.room[n:]
    for x in range(n):
        by_rho[x] = 0.0
        total += lengths[x] * by_length[x]
    common = 0.0 if free else total
    for i in range(n):
        x = b.order[i]
        above = b.parent[x]
        if above < 0:
            continue
        lasts, own = b.heights[above] - b.heights[x], lengths[x] * by_length[x]
        by_time = own / lasts + common * (1.0 / time - rho[x] / distance)
        by_height[above] += by_time
        by_height[x] -= by_time
        by_rho[x] += own - common * rho[x] * lasts / distance
        by_rho[above] += by_rho[x]
        by_deviation[x] += step * by_rho[x]
        if b.kind == SHRINKAGE:
            by_number[1] += b.deviations[x] * by_rho[x]
        if b.which[x] >= 0:
            c = first + b.which[x]
            by_number[c] += by_rho[x] / b.numbers[c]
    by_number[0] += total / b.numbers[0]
    return 0.0
