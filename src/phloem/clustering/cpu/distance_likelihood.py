"""Maximum-likelihood distances of a block of columns from tables of the score on a grid of distances.

With x = ln t, S(x) = Σ_sites d ln P_ab(e^x) / dx and its slope H are sums of table entries. Newton steps on
the grid bracket the root between two neighbouring nodes; a cubic through S and H at both ends then places it
(Hermite; error h⁴/384 of the fourth derivative, about 1e-8 of t at a node spacing of 5%).
Status and saturation are as in distance_blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.clustering.cpu.forms import triangle_row
from phloem.clustering.cpu.site_counts import block_of, joint_counts
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


class Scores(NamedTuple):
    """As formula.ScoreTables. tables: (nodes, cells, 2) float32; guesses: node for a proportion of differing
    sites, on a uniform grid of [0, 1]."""

    tables: np.ndarray
    nodes: np.ndarray
    guesses: np.ndarray


@compiled
def site_block(codes, n_states, scores, first, last, longest, status, triangle):
    """Distances from the sites themselves, for any number of states.

    codes: (n, L) uint8, n_states where unobserved; scores of (S+1)² cells, zero for unobserved.
    """
    tables, nodes, guesses = scores
    n_sites, width = codes.shape[1], n_states + 1
    cells, base = np.empty(n_sites, np.int32), np.empty(n_sites, np.int32)
    none = np.empty(0)
    for i in range(first + 1, len(codes)):
        for k in range(n_sites):
            base[k] = np.int32(codes[i, k]) * width
        for j in range(first, min(last, i)):
            compared, different = 0, 0
            for k in range(n_sites):
                a, b = codes[i, k], codes[j, k]
                both = (a < n_states) & (b < n_states)
                compared += both
                different += both & (a != b)
                cells[k] = base[k] + b
            if compared == 0:
                status[1] += 1
                status[2], status[3] = i, j
            value = 0.0
            if different > 0:
                guess = guesses[different * (len(guesses) - 1) // compared]
                value = np.exp(most_likely(tables, nodes, cells, none, n_sites, guess))
            if not value <= longest:
                status[0] += 1
                value = longest
            triangle_row(triangle, i)[j] = value


@compiled
def _from_counts(counts, n, scores, i, first, longest, status, row):
    """Distances of n pairs of four-state sequences from (16, n) counts of site pairs."""
    tables, nodes, guesses = scores
    cells, none = np.empty(16), np.empty(0, np.int32)
    for j in range(n):
        compared, same = 0.0, 0.0
        for k in range(16):
            cells[k] = counts[k, j]
            compared += cells[k]
            same += cells[k] if k % 5 == 0 else 0.0
        value = 0.0
        if compared == 0:
            status[1] += 1
            status[2], status[3] = i, first + j
        elif same < compared:
            guess = guesses[int((compared - same) / compared * (len(guesses) - 1))]
            value = np.exp(most_likely(tables, nodes, none, cells, 16, guess))
        if not value <= longest:
            status[0] += 1
            value = longest
        row[first + j] = value


@compiled
def counted_block(planes, scores, first, last, longest, status, triangle):
    """Distances of four-state sequences; planes one-hot, scores of 16 cells."""
    counts, block = np.empty((16, last - first)), block_of(planes, first, last)
    for i in range(first + 1, len(planes)):
        stop = min(last, i)
        joint_counts(planes[i], block, stop - first, counts)
        _from_counts(counts, stop - first, scores, i, first, longest, status, triangle_row(triangle, i))
