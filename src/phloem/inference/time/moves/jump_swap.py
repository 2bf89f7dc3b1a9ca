"""Neighbouring branches exchange where the rate changes."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below
from phloem.inference.time.compiled.edit import chosen_jump, sibling
from phloem.inference.time.move_table import Move


@uncounted
def _neighbours(p, x, first):
    """Branches that meet the one above x, into p.stack from first on: parent's, sibling's, children's."""
    n = first
    if p.parent[p.parent[x]] >= 0:
        p.stack[n] = p.parent[x]
        n += 1
    p.stack[n] = sibling(p, x)
    n += 1
    if p.left[x] >= 0:
        p.stack[n], p.stack[n + 1] = p.left[x], p.right[x]
        n += 2
    return n - first


def jump_swap(p):
    """One of the deviations that are not 0, uniformly, changes places with that of a neighbouring branch,
    uniformly: log Hastings ratio log(neighbours of the one / of the other)."""
    x = chosen_jump(p)
    if x < 0:
        return -math.inf
    there = _neighbours(p, x, 0)
    y = p.stack[below(p.rng, there)]
    back = _neighbours(p, y, 0)
    p.deviations[x], p.deviations[y] = p.deviations[y], p.deviations[x]
    return math.log(there / back)


MOVE = Move("jump_swap", jump_swap, 6, needs="inherited")
