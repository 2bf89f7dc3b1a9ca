"""Two groups of equal shares trade."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below, shifted, uniform
from phloem.inference.mcmc.compiled.tied import read_groups, write_groups
from phloem.inference.mcmc.move_table import Move


def tied_slider(p):
    """As simplex_slider, on the sums of two groups. Symmetric: log Hastings ratio 0, also where all shares
    are equal and nothing changes."""
    x, room, k = p.numbers, p.room, p.numbers.shape[0] - 1
    groups = read_groups(x, room)
    if groups == 1:
        return 0.0
    i = below(p.rng, groups)
    j = (i + 1 + below(p.rng, groups - 1)) % groups
    total = room[2 * k + i] + room[2 * k + j]
    low, high = p.low * room[k + i] / total, 1.0 - p.low * room[k + j] / total
    if not low < high:
        return -math.inf
    share = shifted(room[2 * k + i] / total, p.tuning * (uniform(p.rng) - 0.5), low, high)
    room[2 * k + i] = share * total
    room[2 * k + j] = total - room[2 * k + i]
    return 0.0 if write_groups(x, room, p.low) else -math.inf


MOVE = Move("slider", ("tied",), tied_slider, 0.5, 0.2, 0.25, (1e-4, 1.0))
