"""The date of a tip that is known within limits."""

from __future__ import annotations

from phloem.inference.mcmc.compiled.random import below, shifted, uniform
from phloem.inference.time.compiled.edit import is_ancestor, sibling
from phloem.inference.time.move_table import Move


def tip_date(p):
    """A tip, uniformly among those of uncertain dates, to a height uniform in a window of tuning times its
    range, reflected at its limits and below its parent: log Hastings ratio 0. No other height changes, so no
    anchor needs a Jacobian; but a tip that is an ancestor takes its parent along, above its sibling and below
    the node above."""
    x = p.moving[below(p.rng, p.moving.shape[0])]
    q, low, high = p.parent[x], p.tip_bounds[x, 0], p.tip_bounds[x, 1]
    width, along = p.tuning * (high - low), is_ancestor(p, x)
    if along:
        low = max(low, p.heights[sibling(p, x)])
    top = p.parent[q] if along else q
    if top >= 0:
        high = min(high, p.heights[top])
    p.heights[x] = shifted(p.heights[x], width * (uniform(p.rng) - 0.5), low, high)
    if along:
        p.heights[q] = p.heights[x]
    return 0.0


MOVE = Move("tip_date", tip_date, 1, 0.5, 0.3, (1e-3, 2.0), needs="dates", holds=True)
