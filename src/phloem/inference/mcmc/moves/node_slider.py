"""Slide a node between two of its neighbours, and stretch their distance."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.mcmc.move_table import LENGTHS, Move


def node_slider(p):
    """An internal node and two of its three branches, of lengths a + b = x: x' = m x with m = exp(tuning (U -
    ½)), and the node anew at a uniform place, a' = U' x'. Log Hastings ratio 2 log m: the density of (a', b')
    given (a, b) is 1 / (tuning x') · 1 / x' (the branch-length part of LOCAL: Larget and Simon 1999, Mol.
    Biol. Evol. 16:750)."""
    lengths = p.lengths[p.set]
    node = p.n_tips + below(p.rng, p.n_tips - 2)
    first, second = p.left[node], p.right[node]
    own = 0 if node == p.beside else node
    which = below(p.rng, 3)
    if which == 1:
        first = own
    elif which == 2:
        second = own
    log_factor = p.tuning * (uniform(p.rng) - 0.5)
    total = (lengths[first] + lengths[second]) * math.exp(log_factor)
    lengths[first] = uniform(p.rng) * total
    lengths[second] = total - lengths[first]
    if min(lengths[first], lengths[second]) < p.low or max(lengths[first], lengths[second]) > p.high:
        return -math.inf
    return 2.0 * log_factor


MOVE = Move("node_slider", LENGTHS, node_slider, 7, 0.191)
