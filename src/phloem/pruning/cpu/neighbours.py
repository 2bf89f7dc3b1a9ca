"""Forwards and backwards over the sites, compiled (reference/neighbours.py specifies it)."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import compiled
from phloem.pruning.cpu.root import scalar_two_sum
from phloem.pruning.site_order import SiteOrder, SitesTogether


def sites_together(
    order: SiteOrder, by_category: np.ndarray, weights: np.ndarray, matrices: np.ndarray
) -> SitesTogether:
    """As the reference's."""
    n_sites, n = len(order.pattern), by_category.shape[1]
    shares, pairs = np.zeros((n_sites, n)), np.zeros((len(matrices), n, n))
    largest, relative = np.empty(len(by_category)), np.empty(by_category.shape)
    own = np.ascontiguousarray(by_category, np.float64)
    over_largest(own, largest, relative)
    sites = np.array(order.pattern, np.int64), np.array(order.step, np.int64)
    numbers = np.array(weights, np.float64), np.array(matrices, np.float64, order="C")
    forward, scale = np.empty((n_sites, n)), np.empty(n_sites)
    value = forwards(*sites, largest, relative, *numbers, forward, scale)
    if value > -math.inf:
        backwards(*sites, relative, numbers[1], forward, scale, shares, pairs)
    return SitesTogether(value, shares, pairs)


@compiled
def over_largest(by_category, largest, relative):
    """Likelihoods (P, C) of patterns over their largest, whose logarithm (P,) is kept."""
    for p in range(len(largest)):
        top = -math.inf
        for c in range(by_category.shape[1]):
            top = max(top, by_category[p, c])
        largest[p] = top
        for c in range(by_category.shape[1]):
            relative[p, c] = math.exp(by_category[p, c] - top) if top > -math.inf else 0.0


@compiled
def forwards(pattern, step, largest, relative, weights, matrices, forward, scale):
    """The log-likelihood; forward (L, C) and scale (L,) are for the way back."""
    n, total, lost = len(weights), 0.0, 0.0
    for i in range(len(pattern)):
        p, norm = pattern[i], 0.0
        if not largest[p] > -math.inf:
            return largest[p]
        for b in range(n):
            here = 0.0
            if i == 0:
                here = weights[b]
            else:
                matrix = matrices[step[i]]
                for a in range(n):
                    here += forward[i - 1, a] * matrix[a, b]
            forward[i, b] = here * relative[p, b]
            norm += forward[i, b]
        if not norm > 0.0:
            return -math.inf
        for b in range(n):
            forward[i, b] /= norm
        scale[i] = norm
        total, lost = scalar_two_sum(total, lost, math.log(norm) + largest[p])
    return total + lost


@compiled
def backwards(pattern, step, relative, matrices, forward, scale, shares, pairs):
    """shares (L, C): out; pairs (D, C, C): added to."""
    n = relative.shape[1]
    behind, ahead = np.ones(n), np.empty(n)
    for i in range(len(pattern) - 1, -1, -1):
        p = pattern[i]
        for c in range(n):
            shares[i, c] = forward[i, c] * behind[c]
            ahead[c] = relative[p, c] * behind[c] / scale[i]
        if i == 0:
            break
        matrix, found = matrices[step[i]], pairs[step[i]]
        for a in range(n):
            total = 0.0
            for b in range(n):
                found[a, b] += forward[i - 1, a] * ahead[b]
                total += matrix[a, b] * ahead[b]
            behind[a] = total
