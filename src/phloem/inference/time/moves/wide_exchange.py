"""Two subtrees change places."""

from __future__ import annotations

import math

from phloem.inference.time.compiled.edit import random_subtree, replace_child
from phloem.inference.time.move_table import Move


def wide_exchange(p):
    """i and j, uniformly, each younger than the other's parent, neither above the other and not siblings.
    Symmetric: log Hastings ratio 0 (Drummond et al. 2002). Heights stay."""
    i, j = random_subtree(p), random_subtree(p)
    q, r = p.parent[i], p.parent[j]
    if q in (r, j) or r == i or p.heights[i] >= p.heights[r] or p.heights[j] >= p.heights[q]:
        return -math.inf
    replace_child(p, q, i, j)
    replace_child(p, r, j, i)
    return 0.0


MOVE = Move("wide_exchange", wide_exchange, 4, holds=True)
