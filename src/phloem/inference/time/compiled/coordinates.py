"""Numbers inside their supports as coordinates without bounds, and derivatives the other way.

As density/transform.py has them, but a simplex has log-ratios to its last entry: |dx/dy| = Π x there too.
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
            for i in range(size - 1):
                y[at + i] = math.log(x[first + i] / x[first + size - 1])
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
            largest, total_x = 0.0, 0.0
            for i in range(size - 1):
                largest = max(largest, y[at + i])
            for i in range(size):
                x[first + i] = math.exp((y[at + i] if i < size - 1 else 0.0) - largest)
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
            for i in range(size - 1):
                value = x[first + i]
                slope[at + i] = value * (by_value[first + i] - mean) + 1.0 - size * value
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
