"""Rates that were equal become two groups, or two groups one: the step between models of other dimension."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import below, gamma, uniform
from phloem.inference.mcmc.compiled.tied import read_groups, several, write_groups
from phloem.inference.mcmc.move_table import Move


def tied_split_merge(p):
    """Half of the time a group of n > 1 shares, chosen uniformly among the s there are, is divided in one of
    the 2^(n-1) - 1 ways in parts of n1 and n2; the sum T becomes uT and (1 - u)T, u ~ Beta(c n1, c n2), c the
    tuning. Otherwise one of the g (g - 1) / 2 pairs of groups becomes one. Log Hastings ratio of a division
    log(2 / (g (g + 1))) + log s + log(2^(n-1) - 1) - log Beta(u) + log T, g the groups before it and T the
    Jacobian of (T, u) → (uT, (1 - u)T); of a union its negative, of the way back (Green 1995, Biometrika
    82:711; Huelsenbeck, Larget and Alfaro 2004, Mol. Biol. Evol. 21:1123)."""
    x, room, k = p.numbers, p.room, p.numbers.shape[0] - 1
    groups = read_groups(x, room)
    divides = uniform(p.rng) < 0.5
    if divides:
        choices = several(room, k, groups)
        if choices == 0:
            return -math.inf
        chosen, one, other = below(p.rng, choices), 0, groups
        while room[k + one] < 1.5 or chosen > 0:
            chosen -= room[k + one] > 1.5
            one += 1
        n, total, first = int(room[k + one]), room[2 * k + one], True
        ways, place = 1 + below(p.rng, 2 ** (n - 1) - 1), 0
        room[k + other] = 0.0
        for i in range(k):
            if room[i] == one:
                if not first:
                    if ways >> place & 1:
                        room[i] = other
                        room[k + other] += 1.0
                        room[k + one] -= 1.0
                    place += 1
                first = False
        left = gamma(p.rng, p.tuning * room[k + one])
        u = left / (left + gamma(p.rng, p.tuning * room[k + other]))
        room[2 * k + one], room[2 * k + other] = u * total, (1.0 - u) * total
        n1, n2, before = room[k + one], room[k + other], groups
    else:
        if groups == 1:
            return -math.inf
        one = below(p.rng, groups)
        other = (one + 1 + below(p.rng, groups - 1)) % groups
        n1, n2, before = room[k + one], room[k + other], groups - 1
        total = room[2 * k + one] + room[2 * k + other]
        u, n = room[2 * k + one] / total, int(n1 + n2)
        for i in range(k):
            if room[i] == other:
                room[i] = one
        room[k + one], room[k + other], room[2 * k + one] = n, 0.0, total
        choices = several(room, k, groups)
    if not 0.0 < u < 1.0 or not write_groups(x, room, p.low):
        return -math.inf
    a, b = p.tuning * n1, p.tuning * n2
    beta = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    beta += (a - 1.0) * math.log(u) + (b - 1.0) * math.log(1.0 - u)
    ratio = math.log(2.0 / (before * (before + 1))) + math.log(choices) + math.log(2.0 ** (n - 1) - 1.0)
    ratio += math.log(total) - beta
    return ratio if divides else -ratio


MOVE = Move("split_merge", ("tied",), tied_split_merge, 2, 10.0, bounds=(1e-2, 1e6))
