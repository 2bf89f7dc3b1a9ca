"""Numbers inside their supports as coordinates without bounds, and derivatives the other way.

As density/transform.py has them, but a simplex has isometric log-ratios (Egozcue et al. 2003, Math. Geol.
35:279): y_k is the log-ratio of the geometric mean of the entries before k to entry k, times √(k / (k + 1)),
so that |dx/dy| ∝ Π x there too. Log-ratios to one entry would all move with that one, and sixty of them
moved together are a direction that scales of single coordinates do not see.
"""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.time.records import FIXED, INTERVAL, POSITIVE, SIMPLEX, UNIT


@uncounted
def to_coordinates(blocks, x, y):
    """y (m,), out."""
    for b in range(blocks.first.shape[0]):
        first, at, size = blocks.first[b], blocks.coordinate[b], blocks.size[b]
        kind, low, high = blocks.support[b], blocks.low[b], blocks.high[b]
        if kind == FIXED:
            continue
        if kind == SIMPLEX:
            before = math.log(x[first])  # sum of the logs
            for i in range(1, size):
                own = math.log(x[first + i])
                y[at + i - 1] = math.sqrt(i / (i + 1.0)) * (before / i - own)
                before += own
            continue
        for i in range(size):
            value = x[first + i]
            if kind == POSITIVE:
                value = math.log(value)
            elif kind == UNIT:
                value = math.log(value / (1.0 - value))
            elif kind == INTERVAL:
                value = math.log((value - low) / (high - value))
            y[at + i] = value


@uncounted
def from_coordinates(blocks, taken, y, x):
    """x (n,), out, of the blocks that are taken (b,); returns their log |dx/dy|."""
    total = 0.0
    for b in range(blocks.first.shape[0]):
        first, at, size = blocks.first[b], blocks.coordinate[b], blocks.size[b]
        kind, low, high = blocks.support[b], blocks.low[b], blocks.high[b]
        if kind == FIXED or taken[b] == 0:
            continue
        if kind == SIMPLEX:
            behind, largest, total_x = 0.0, -math.inf, 0.0  # what later coordinates add to all before them
            for i in range(size - 1, -1, -1):
                own = y[at + i - 1] / math.sqrt(i * (i + 1.0)) if i > 0 else 0.0
                x[first + i] = behind - i * own
                behind += own
                largest = max(largest, x[first + i])
            for i in range(size):
                x[first + i] = math.exp(x[first + i] - largest)
                total_x += x[first + i]
            for i in range(size):
                x[first + i] /= total_x
                total += math.log(max(x[first + i], 1e-300))
            continue
        for i in range(size):
            value = y[at + i]
            if kind == POSITIVE:
                total += value
                value = math.exp(min(value, 700.0))
            elif kind in (UNIT, INTERVAL):
                width = high - low if kind == INTERVAL else 1.0
                small = math.exp(-abs(value))
                share = 1.0 / (1.0 + small) if value >= 0.0 else small / (1.0 + small)
                total += math.log(width) - abs(value) - 2.0 * math.log1p(small)
                value = share * width + (low if kind == INTERVAL else 0.0)
            x[first + i] = value
    return total


@uncounted
def pull_back_numbers(blocks, taken, x, by_value, slope):
    """slope (m,), out: from d/dx (n,), entries independent, to d/dy, with the Jacobian's slope; 0 of blocks
    that are not taken."""
    for b in range(blocks.first.shape[0]):
        first, at, size = blocks.first[b], blocks.coordinate[b], blocks.size[b]
        kind, low, high = blocks.support[b], blocks.low[b], blocks.high[b]
        if kind == FIXED or taken[b] == 0:
            end = blocks.coordinate[b + 1] if b + 1 < blocks.first.shape[0] else slope.shape[0]
            for i in range(at, end):
                slope[i] = 0.0
            continue
        if kind == SIMPLEX:
            mean = 0.0
            for i in range(size):
                mean += x[first + i] * by_value[first + i]
            before = x[first] * (by_value[first] - mean) + 1.0 - size * x[first]  # sum of those by logs
            for i in range(1, size):
                value = x[first + i]
                own = value * (by_value[first + i] - mean) + 1.0 - size * value
                slope[at + i - 1] = (before - i * own) / math.sqrt(i * (i + 1.0))
                before += own
            continue
        for i in range(size):
            value, by = x[first + i], by_value[first + i]
            if kind == POSITIVE:
                by = value * by + 1.0
            elif kind == UNIT:
                by = value * (1.0 - value) * by + 1.0 - 2.0 * value
            elif kind == INTERVAL:
                share = (value - low) / (high - low)
                by = (value - low) * (1.0 - share) * by + 1.0 - 2.0 * share
            slope[at + i] = by
