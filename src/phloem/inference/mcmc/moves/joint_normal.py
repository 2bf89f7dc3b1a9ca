"""All numbers of the models and the tree length together, in the directions in which they vary."""

from __future__ import annotations

import math

from phloem.inference.mcmc.compiled.random import normal
from phloem.inference.mcmc.move_table import NUMBERS, Move
from phloem.inference.mcmc.records import OF_OTHERS, OF_POSITIVE, OF_REAL, OF_SIMPLEX


def joint_normal(p):
    """y' = y + tuning · L z, z standard normal, L L' the covariance of y that was learnt while moves adapted
    (inference/mcmc/learning.py; Haario, Saksman and Tamminen 2001, Bernoulli 7:223). y: the log of positive
    numbers and of the tree length, the logit between bounds of others, and log(x_i / x_last) of shares.
    Symmetric in y, so the log Hastings ratio is that of the Jacobians, Σ log x'/x, with (x - low)(high - x)
    for x between bounds, all shares for simplexes, and all lengths of the tree. Blocks whose dimension
    changes stay as they are."""
    joint, step, d, at, ratio = p.joint, p.room, p.joint.factor.shape[0], 0, 0.0
    for i in range(d):
        step[d + i] = normal(p.rng)
        step[i] = 0.0
        for k in range(i + 1):
            step[i] += p.tuning * joint.factor[i, k] * step[d + k]
    for b in range(joint.first.shape[0]):
        low, high, support = joint.bounds[b, 0], joint.bounds[b, 1], joint.support[b]
        x, total = p.numbers[joint.first[b] : joint.first[b] + joint.size[b]], 0.0
        if support == OF_OTHERS:
            continue
        n = x.shape[0] - (support == OF_SIMPLEX)
        for i in range(n):
            if support == OF_REAL:
                x[i] += step[at]
            elif support in (OF_SIMPLEX, OF_POSITIVE):
                x[i] *= math.exp(step[at])
                ratio += step[at]
            else:
                u = (x[i] - low) / (high - low)
                if not 0.0 < u < 1.0:
                    return -math.inf
                v = 1.0 / (1.0 + (1.0 - u) / u * math.exp(-step[at]))
                x[i] = low + v * (high - low)
                ratio += math.log(v / u) + math.log((1.0 - v) / (1.0 - u))
            at += 1
        for i in range(x.shape[0]):
            total += x[i]
        for i in range(x.shape[0]):
            if support == OF_SIMPLEX:
                x[i] /= total
            if not low <= x[i] <= high:
                return -math.inf
        if support == OF_SIMPLEX:
            ratio -= (n + 1) * math.log(total)
    for g in range(p.lengths.shape[0]):
        for i in range(p.lengths.shape[1] - 1):
            if i != p.beside:
                p.lengths[g, i] *= math.exp(step[at])
                ratio += step[at]
                if not p.low <= p.lengths[g, i] <= p.high:
                    return -math.inf
    return ratio


MOVE = Move("joint_normal", NUMBERS, joint_normal, 3, 0.5, 0.25, (1e-3, 20.0))
