"""Moves of the set of routes of a trait: numbers that are 0 or 1."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below
from phloem.inference.mcmc.move_table import Move


def flip(p):
    """One route, uniformly, comes or goes. Symmetric: log Hastings ratio 0."""
    i = below(p.rng, p.numbers.shape[0])
    p.numbers[i] = 1.0 - p.numbers[i]
    return 0.0


@uncounted
def _one_of(p, value):
    """A place of a value, uniformly; -1 where it is nowhere."""
    n, found = 0, -1
    for i in range(p.numbers.shape[0]):
        if p.numbers[i] == value:
            n += 1
            if below(p.rng, n) == 0:
                found = i
    return found


def swap(p):
    """One of the routes there are goes and one of the others comes. Symmetric: log Hastings ratio 0."""
    gone, comes = _one_of(p, 1.0), _one_of(p, 0.0)
    if gone < 0 or comes < 0:
        return -math.inf
    p.numbers[gone], p.numbers[comes] = 0.0, 1.0
    return 0.0


FLIP, SWAP = Move("flip", ("choice",), flip, 1), Move("swap", ("choice",), swap, 1)
