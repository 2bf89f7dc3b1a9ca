"""One joining changes its group of the skyline."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below
from phloem.inference.time.move_table import Move


def group_size(p):
    """Of two groups, an ordered pair drawn uniformly, the first gives one joining to the second; it keeps at
    least one. Symmetric: log Hastings ratio 0."""
    k = p.groups.shape[0]
    i = below(p.rng, k)
    j = (i + 1 + below(p.rng, k - 1)) % k
    if p.groups[i] < 2:
        return -math.inf
    p.groups[i] -= 1
    p.groups[j] += 1
    return 0.0


MOVE = Move("group_size", group_size, 20, needs="groups", free=True)
