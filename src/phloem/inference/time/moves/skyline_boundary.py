"""Where one group of the skyline ends and the next begins, with the sizes of both."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, gamma, uniform
from phloem.inference.time.move_table import Move


@uncounted
def _exposures(p, first, n):
    """Of n joinings from number first on, Σ k(k-1)/2 Δ up to each, into p.spots[1:]; p.spots[0] = 0."""
    k, j, last, total = 0, 0, 0.0, 0.0
    p.spots[0] = 0.0
    for i in range(p.order.shape[0]):
        x = p.order[i]
        if j >= first:
            total += 0.5 * k * (k - 1) * (p.heights[x] - last)
        last = p.heights[x]
        if x < p.n_tips:
            k += 1
            continue
        k -= 1
        j += 1
        if j > first:
            p.spots[j - first] = total
        if j == first + n:
            return


def skyline_boundary(p):
    """Two neighbouring groups, uniformly, of n joinings and exposure S = Σ k(k-1)/2 Δ together: the boundary
    b and both sizes are drawn as if their prior were 1 / (N N'), b ∝ Γ(b) Γ(n-b) / (S_b^b (S-S_b)^(n-b)), N ~
    inverse gamma(b, S_b), N' likewise. Then only the smoothing decides: log Hastings ratio is that of
    N^-(b+1) exp(-S_b / N) times the same of N', here over there."""
    k = p.groups.shape[0]
    g, first = below(p.rng, k - 1), 0
    for i in range(g):
        first += p.groups[i]
    n, size = p.groups[g] + p.groups[g + 1], p.tree_first + g
    _exposures(p, first, n)
    whole = p.spots[n]
    weights, largest = p.spots[n + 1 :], -math.inf
    for b in range(1, n):
        one = p.spots[b]
        if not 0.0 < one < whole:
            return -math.inf
        weights[b] = math.lgamma(float(b)) + math.lgamma(float(n - b))
        weights[b] -= b * math.log(one) + (n - b) * math.log(whole - one)
        largest = max(largest, weights[b])
    total = 0.0
    for b in range(1, n):
        total += math.exp(weights[b] - largest)
    u, new = uniform(p.rng) * total, 1
    while new < n - 1 and u >= math.exp(weights[new] - largest):
        u -= math.exp(weights[new] - largest)
        new += 1
    here = _log_likelihood(p, size, p.groups[g], n)
    p.groups[g], p.groups[g + 1] = new, n - new
    p.values[size] = p.spots[new] / gamma(p.rng, float(new))
    p.values[size + 1] = (whole - p.spots[new]) / gamma(p.rng, float(n - new))
    return here - _log_likelihood(p, size, new, n)


@uncounted
def _log_likelihood(p, size, b, n):
    """Of N and N' as they are drawn, up to a constant: the coalescent's over both."""
    one, other = p.values[size], p.values[size + 1]
    value = -(b + 1) * math.log(one) - p.spots[b] / one
    return value - (n - b + 1) * math.log(other) - (p.spots[n] - p.spots[b]) / other


MOVE = Move("skyline_boundary", skyline_boundary, 12, needs="groups", free=True)
