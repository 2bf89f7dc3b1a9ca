"""Moves on branch lengths. lengths: (N,) one set of them. The root has no branch, and the node beside tip 0,
the root's other child, shares tip 0's: its own is of length 0 and stays so."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, uniform
from phloem.inference.mcmc.compiled.reflect import multiplied


@uncounted
def branch_multiplier(lengths, beside, bounds, rng, width):
    """b' = b exp(width (U - ½)) for a branch chosen uniformly. Log Hastings ratio log(b'/b): the density
    of b' given b is 1 / (width b') (Lakner et al. 2008, Systematic Biology 57:86, "multiplier")."""
    x = below(rng, lengths.shape[0] - 2)
    x += x >= beside
    old = lengths[x]
    lengths[x] = multiplied(old, width * (uniform(rng) - 0.5), bounds[0], bounds[1])
    return math.log(lengths[x] / old)


@uncounted
def node_slider(lengths, left, right, beside, bounds, rng, width):
    """Slide a node between two of its neighbours, and stretch their distance.

    An internal node and two of its three branches, of lengths a + b = x: x' = m x with m = exp(width (U
    - ½)), and the node anew at a uniform place, a' = U' x'. Log Hastings ratio 2 log m: the density of
    (a', b') given (a, b) is 1 / (width x') · 1 / x' (the branch-length part of LOCAL: Larget and Simon
    1999, Mol. Biol. Evol. 16:750)."""
    n_tips = (lengths.shape[0] + 1) // 2
    node = n_tips + below(rng, n_tips - 2)
    first, second = left[node], right[node]
    own = 0 if node == beside else node
    which = below(rng, 3)
    if which == 1:
        first = own
    elif which == 2:
        second = own
    log_factor = width * (uniform(rng) - 0.5)
    total = (lengths[first] + lengths[second]) * math.exp(log_factor)
    lengths[first] = uniform(rng) * total
    lengths[second] = total - lengths[first]
    if min(lengths[first], lengths[second]) < bounds[0] or max(lengths[first], lengths[second]) > bounds[1]:
        return -math.inf
    return 2.0 * log_factor


@uncounted
def tree_multiplier(lengths, beside, bounds, rng, width):
    """b' = m b for all B branches, m = exp(width (U - ½)). Log Hastings ratio B log m: the Jacobian of the
    B coordinates (Green 1995, Biometrika 82:711). A length that leaves its bounds makes the proposal
    impossible."""
    log_factor = width * (uniform(rng) - 0.5)
    factor = math.exp(log_factor)
    for x in range(lengths.shape[0] - 1):
        if x != beside:
            lengths[x] *= factor
            if not (bounds[0] <= lengths[x] <= bounds[1]):
                return -math.inf
    return (lengths.shape[0] - 2) * log_factor
