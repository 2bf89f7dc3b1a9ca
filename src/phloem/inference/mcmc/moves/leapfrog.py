"""Hamiltonian dynamics of all branch lengths on one topology."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import normal
from phloem.inference.mcmc.move_table import LENGTHS, Move

STEPS = 6


def leapfrog(p):
    """STEPS leapfrog steps of size tuning in y = log b of every set, with momenta drawn anew and unit masses
    (Duane, Kennedy, Pendleton and Roweth 1987, Phys. Lett. B 195:216; Neal 2011, Handbook of MCMC, chapter
    5). The steps are reversible and keep volumes, whatever the slope is a slope of. Log Hastings ratio: the
    kinetic energy lost, and Σ (y' - y), since the density is one of b. A length that leaves its bounds makes
    the proposal impossible."""
    ratio, energy = 0.0, 0.0
    for g in range(p.lengths.shape[0]):
        for x in range(p.lengths.shape[1] - 1):
            if x == p.beside:
                continue
            if p.turn == 0:
                p.momentum[g, x] = normal(p.rng)
                energy += 0.5 * p.momentum[g, x] ** 2
            half = p.turn == 0 or p.turn == STEPS
            p.momentum[g, x] += p.tuning * p.slope[g, x] * (0.5 if half else 1.0)
            if p.turn == STEPS:
                energy -= 0.5 * p.momentum[g, x] ** 2
                continue
            change = p.tuning * p.momentum[g, x]
            p.lengths[g, x] *= math.exp(change)
            ratio += change
            if not (p.low <= p.lengths[g, x] <= p.high):
                return -math.inf
    return ratio + energy


MOVE = Move("leapfrog", LENGTHS, leapfrog, 0, 0.1, 0.65, (1e-4, 2.0), gradients=STEPS + 1)
