"""The date of a tip with the height of the node above it."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below, shifted, uniform
from phloem.inference.time.compiled.edit import is_ancestor, sibling
from phloem.inference.time.move_table import Move


def tip_and_parent(p):
    """A tip, uniformly among those of uncertain dates, and its parent by one shift, uniform in a window of
    tuning times the tip's range, reflected where the tip is at its limits and the parent at its other child
    or at the node above: log Hastings ratio 0. The branch between them lasts as long as before; a tip that is
    close to others is held by the node above, which moves of one of the two hardly shift."""
    x = p.moving[below(p.rng, p.moving.shape[0])]
    q, s, t = p.parent[x], sibling(p, x), p.heights[x]
    if is_ancestor(p, x) or is_ancestor(p, s):
        return -math.inf
    width, last = p.tuning * (p.tip_bounds[x, 1] - p.tip_bounds[x, 0]), p.heights[x] - p.heights[q]
    low, high = max(p.tip_bounds[x, 0], p.heights[s] + last), p.tip_bounds[x, 1]
    if p.parent[q] >= 0:
        high = min(high, p.heights[p.parent[q]] + last)
    p.heights[x] = shifted(t, width * (uniform(p.rng) - 0.5), low, high)
    p.heights[q] += p.heights[x] - t
    return 0.0


MOVE = Move("tip_and_parent", tip_and_parent, 2, 0.5, 0.3, (1e-3, 2.0), needs="dates", holds=True)
