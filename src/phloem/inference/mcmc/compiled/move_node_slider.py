"""Slide a node between two of its neighbours, and stretch their distance."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.compile import compiled
from phloem.inference.mcmc.compiled.random import below, uniform


@compiled
def node_slider(lengths, left, right, n_tips, bounds, rng, width):
    """An internal node and two of its three branches, of lengths a + b = x: x' = m x with m = exp(width (U
    - ½)), and the node anew at a uniform place, a' = U' x'. Log Hastings ratio 2 log m: the density of
    (a', b') given (a, b) is 1 / (width x') · 1 / x' (the branch-length part of LOCAL: Larget and Simon
    1999, Mol. Biol. Evol. 16:750)."""
    node = n_tips + below(rng, n_tips - 2)
    first, second = left[node], right[node]
    which = below(rng, 3)
    if which == 1:
        first = node
    elif which == 2:
        second = node
    log_factor = width * (uniform(rng) - 0.5)
    total = (lengths[first] + lengths[second]) * math.exp(log_factor)
    lengths[first] = uniform(rng) * total
    lengths[second] = total - lengths[first]
    for x in (first, second):
        if not (bounds[0] <= lengths[x] <= bounds[1]):
            return -math.inf
    return 2.0 * log_factor
