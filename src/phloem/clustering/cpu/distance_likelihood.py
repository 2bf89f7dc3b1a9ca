"""Maximum-likelihood distances of all pairs from tables of the score on a grid of distances.

With x = ln t, S(x) = Σ_sites d ln P_ab(e^x) / dx and its slope H are sums of table entries. Newton steps on
the grid bracket the root between two neighbouring nodes; a cubic through S and H at both ends then places it
(Hermite; error h⁴/384 of the fourth derivative, about 1e-8 of t at a node spacing of 5%).
"""

from __future__ import annotations

import numpy as np

from phloem.hardware.numba_compile import compiled


@compiled
def _score(table, cells, n):
    """(S, H) as sums of table[cell] over n sites."""
    s0, s1, h0, h1 = 0.0, 0.0, 0.0, 0.0
    for k in range(0, n - 1, 2):
        a, b = cells[k], cells[k + 1]
        s0 += table[a, 0]
        h0 += table[a, 1]
        s1 += table[b, 0]
        h1 += table[b, 1]
    if n % 2:
        s0 += table[cells[n - 1], 0]
        h0 += table[cells[n - 1], 1]
    return s0 + s1, h0 + h1


@compiled
def _counted_score(table, counts, n):
    """(S, H) as sums of counts × table over n cells."""
    s, h = 0.0, 0.0
    for k in range(n):
        s += counts[k] * table[k, 0]
        h += counts[k] * table[k, 1]
    return s, h


@compiled
def _cubic_root(s0, h0, s1, h1, step):
    """Root in [0, 1] of the Hermite cubic with values s0 > 0 > s1 and slopes h0, h1 per `step`."""
    m0, m1 = h0 * step, h1 * step
    c2, c3 = 3 * (s1 - s0) - 2 * m0 - m1, 2 * (s0 - s1) + m0 + m1
    low, high, z = 0.0, 1.0, s0 / (s0 - s1)
    for _ in range(30):
        value = s0 + z * (m0 + z * (c2 + z * c3))
        if value > 0:
            low = z
        else:
            high = z
        slope = m0 + z * (2 * c2 + 3 * z * c3)
        new = z - value / slope if slope < 0 else 0.5 * (low + high)
        if not low <= new <= high:
            new = 0.5 * (low + high)
        if abs(new - z) < 1e-12:
            break
        z = new
    return z


@compiled
def most_likely(tables, nodes, cells, counts, n, guess):
    """x maximising the likelihood of one pair on the grid `nodes` (x values); +inf beyond its end.

    cells: the table cell of each of n sites; or counts: (n,) sites in each of the n cells, else empty.
    """
    counted = len(counts) > 0
    last = len(nodes) - 1
    step = nodes[1] - nodes[0]
    low, high = -1, last + 1
    s_low, h_low, s_high, h_high = 0.0, 0.0, 0.0, 0.0
    k = min(max(guess, 0), last)
    while high - low > 1:
        s, h = _counted_score(tables[k], counts, n) if counted else _score(tables[k], cells, n)
        if s > 0:
            low, s_low, h_low = k, s, h
        else:
            high, s_high, h_high = k, s, h
        jump = s / (-h * step) if h < 0 else (4.0 if s > 0 else -4.0)
        k = k + int(np.floor(min(max(jump, -60.0), 60.0)))
        k = min(max(k, low + 1), high - 1)
    if low < 0:
        return nodes[0]
    if high > last:
        return np.inf
    return nodes[low] + step * _cubic_root(s_low, h_low, s_high, h_high, step)
