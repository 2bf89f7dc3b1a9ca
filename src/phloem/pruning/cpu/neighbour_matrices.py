"""Which rate class follows which along the sites, compiled; model/autocorrelated_rates.py says what it is."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.cell_records import CLASS_EDGES, NEIGHBOURS, SITE_DISTANCES, SLOT, cell_numbers
from phloem.pruning.cpu.storage import float64_at, int64_at

NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)


@uncounted
def set_neighbours(numbers, addresses, rho, room):
    """The matrices of every distance, of a correlation, into the slot of a cell's model that is not used.
    room: at least 3 (C + 1)² numbers to work in."""
    n, used = cell_numbers(numbers), int64_at(addresses[SLOT], (2,))[0]
    size, one, wide = n.categories, n.categories * n.categories, (n.categories + 1) * (n.categories + 1)
    new = float64_at(addresses[NEIGHBOURS], (2, n.distances, size, size))[1 - used]
    base, square = room[wide : wide + one].reshape((size, size)), room[wide + one : wide + 2 * one]
    cumulated = room[:wide].reshape((size + 1, size + 1))
    neighbours(rho, float64_at(addresses[CLASS_EDGES], (size - 1,)), cumulated, base)
    distances = int64_at(addresses[SITE_DISTANCES], (n.distances,))
    for d in range(n.distances):
        matrix_power(base, distances[d], new[d], cumulated, square.reshape((size, size)))
    return 0.0


@uncounted
def neighbours(rho, edges, cumulated, out):
    """out (C, C) from a correlation; edges: the C - 1 normal quantiles between the classes; cumulated:
    (C + 1, C + 1) to work in. By symmetry only correlations from 0 on are integrated for."""
    size = len(out)
    for i in range(size + 1):
        for j in range(i + 1):
            share = i / size * (j / size)
            if j > 0 and i < size:
                share += above_independent(edges[i - 1], edges[j - 1], abs(rho))
            cumulated[i, j] = cumulated[j, i] = share
    for i in range(size):
        whole = 0.0
        for j in range(size):
            k = j if rho >= 0.0 else size - 1 - j
            rows = cumulated[i + 1, k + 1] - cumulated[i, k + 1], cumulated[i + 1, k] - cumulated[i, k]
            out[i, j] = max(rows[0] - rows[1], 0.0)
            whole += out[i, j]
        for j in range(size):
            out[i, j] /= whole


@uncounted
def above_independent(a, b, rho):
    """P(X ≤ a, Y ≤ b) of correlation rho ≥ 0 less that of independence: its derivative by rho is the density
    (Plackett 1954), integrated over θ = arcsin ρ by Gauss-Legendre on pieces that halve towards π/2. The
    exponent is written so that it stays exact there."""
    end, top, low, gap, total = 0.5 * math.pi, math.asin(rho), 0.0, 0.5 * math.pi, 0.0
    apart = 0.5 * (a - b) * (a - b)
    while low < top:
        gap *= 0.5
        high = min(top, end - gap) if gap > 1e-9 else top
        half, middle = 0.5 * (high - low), 0.5 * (high + low)
        for k in range(len(NODES)):
            angle = middle + half * NODES[k]
            sine, cosine = math.sin(angle), math.cos(angle)
            total += WEIGHTS[k] * half * math.exp(-apart / (cosine * cosine) - a * b / (1.0 + sine))
        low = high
    return total / (2.0 * math.pi)


@uncounted
def matrix_power(base, exponent, out, power, square):
    """out = base to the exponent, of at least 1; power, square: as large or larger, to work in."""
    size = len(base)
    for a in range(size):
        for b in range(size):
            out[a, b], power[a, b] = 1.0 if a == b else 0.0, base[a, b]
    while exponent > 0:
        if exponent & 1:
            multiply_into(out, power, square)
        exponent >>= 1
        if exponent > 0:
            multiply_into(power[:size], power, square)


@uncounted
def multiply_into(left, right, square):
    """left = left · right, of as many rows as square has."""
    size = len(square)
    for a in range(size):
        for b in range(size):
            total = 0.0
            for c in range(size):
                total += left[a, c] * right[c, b]
            square[a, b] = total
    for a in range(size):
        for b in range(size):
            left[a, b] = square[a, b]
