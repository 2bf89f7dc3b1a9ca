"""A clade of tips of uncertain dates, with all that is in it, to another time."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below, shifted, uniform
from phloem.inference.time.move_table import Move


def clade_dates(p):
    """The clade of the parent of a tip, which is uniform among those of uncertain dates, or, one time in two
    each, of the next node above: all its tips and nodes by one shift, uniform in a window of tuning times the
    tip's range, reflected where a tip is at its limits or the clade at the node above. log Hastings ratio 0;
    impossible where a tip of the clade has a date that is known."""
    x = p.moving[below(p.rng, p.moving.shape[0])]
    y = p.parent[x]
    while p.parent[y] >= 0 and uniform(p.rng) < 0.5:
        y = p.parent[y]
    width = p.tuning * (p.tip_bounds[x, 1] - p.tip_bounds[x, 0])
    low, high = -math.inf, p.heights[p.parent[y]] - p.heights[y] if p.parent[y] >= 0 else math.inf
    n, size = 0, 1
    p.stack[0] = y
    while n < size:
        z = p.stack[n]
        n += 1
        if z < p.n_tips:
            low = max(low, p.tip_bounds[z, 0] - p.heights[z])
            high = min(high, p.tip_bounds[z, 1] - p.heights[z])
        else:
            p.stack[size], p.stack[size + 1] = p.left[z], p.right[z]
            size += 2
    if not low < high:
        return -math.inf
    shift = shifted(0.0, width * (uniform(p.rng) - 0.5), low, high)
    for k in range(size):
        p.heights[p.stack[k]] += shift
    return 0.0


MOVE = Move("clade_dates", clade_dates, 2, 0.5, 0.3, (1e-3, 2.0), needs="dates", holds=True)
