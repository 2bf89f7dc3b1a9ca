"""A subtree changes places with its parent's sibling."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.time.compiled.edit import random_subtree, replace_child, sibling
from phloem.inference.time.move_table import Move


def narrow_exchange(p):
    """i, uniformly among all nodes but the root, and its uncle u, where u is younger than i's parent. The
    reverse draws u, with the same probability: log Hastings ratio 0 (Drummond, Nicholls, Rodrigo and Solomon
    2002, Genetics 161:1307). Heights stay."""
    return exchange_with_uncle(p, random_subtree(p))


@uncounted
def exchange_with_uncle(p, i):
    """The same of a node i."""
    q = p.parent[i]
    if p.parent[q] < 0:
        return -math.inf
    u = sibling(p, q)
    if p.heights[u] >= p.heights[q]:
        return -math.inf
    above = p.parent[q]
    replace_child(p, above, u, i)
    replace_child(p, q, i, u)
    return 0.0


MOVE = Move("narrow_exchange", narrow_exchange, 12, holds=True)
