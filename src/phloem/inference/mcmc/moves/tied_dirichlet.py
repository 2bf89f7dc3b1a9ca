"""New sums of groups of equal shares around the old ones."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import gamma
from phloem.inference.mcmc.compiled.tied import read_groups, write_groups
from phloem.inference.mcmc.move_table import Move


def tied_dirichlet(p):
    """As simplex_dirichlet, on the sums of groups: T' ~ Dirichlet(tuning · k · T), k the shares. Where all
    are equal nothing changes, and the log Hastings ratio is 0."""
    x, room, k = p.numbers, p.room, p.numbers.shape[0] - 1
    groups, total, ratio = read_groups(x, room), 0.0, 0.0
    sums, drawn = room[2 * k : 3 * k], room[k : 2 * k]
    if groups == 1:
        return 0.0
    for g in range(groups):
        drawn[g] = gamma(p.rng, p.tuning * k * sums[g])
        total += drawn[g]
    for g in range(groups):
        new = drawn[g] / total
        if not new >= p.low:
            return -math.inf
        forward, back = p.tuning * k * sums[g], p.tuning * k * new
        ratio += math.lgamma(forward) - math.lgamma(back)
        ratio += (back - 1.0) * math.log(sums[g]) - (forward - 1.0) * math.log(new)
        sums[g], drawn[g] = new, 0.0
    for i in range(k):
        drawn[int(room[i])] += 1.0
    return ratio if write_groups(x, room, p.low) else -math.inf


MOVE = Move("dirichlet", ("tied",), tied_dirichlet, 0.5, 100.0, 0.25, (1e-2, 1e6), narrows=True)
