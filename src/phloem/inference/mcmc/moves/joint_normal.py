"""All numbers of the models and the tree length together, drawn about where they have been."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below, gamma, normal
from phloem.inference.mcmc.move_table import NUMBERS, Move
from phloem.inference.mcmc.records import OF_MANY, OF_OTHERS, OF_POSITIVE, OF_REAL, OF_SIMPLEX

FREEDOM = 8.0  # of the t distribution: its tails reach farther than a posterior's


def joint_normal(p):
    """Half of the time y' = μ + ρ (y - μ) + β s L z / √r: an autoregressive step, ρ² + β² = 1 with β the
    tuning, about the mean μ and with the covariance L L' of y that were learnt while moves adapt
    (inference/mcmc/learning.py). z is standard normal; r is drawn from Gamma((ν + d) / 2) / ((ν + q(y)) / 2),
    q(y) = |L⁻¹ (y - μ)|² / s², so that the step leaves a t distribution of ν degrees of freedom as it is, in
    detailed balance: were the posterior that one, every step of any size would be taken (with ν = 0: Kamatani
    2018, Statistics and Computing 28:1201). Else y' = y + 2.38 d^-½ β s L z (Haario, Saksman and Tamminen
    2001, Bernoulli 7:223), which leaves places that the t distribution hardly knows.

    s: of the chain's rank, its heat^-½. y: the log of positive numbers and of sums of lengths, of every tip's
    branch and of all inner ones, the logit between bounds of others, and log(x_i / x_last) of shares. Of many
    shares y_i = log(x_i) + τ, with τ drawn anew from N(0, w² s²): shares are gamma variables over their
    sum, and these vary one by one where shares vary with each other. The density of y is that of x, times
    Π x_i, and that of τ, whose ratio counts too. Log Hastings ratio: (ν + d) / 2 times
    log (ν + q(y')) / (ν + q(y)) of the first step, and the Jacobians, Σ log x'/x, with (x - low)(high - x)
    for x between bounds, all shares for simplexes, and all lengths of the tree. Blocks whose dimension
    changes stay as they are."""
    joint, d = p.joint, p.joint.factor.shape[0]
    step, z = p.room[:d], p.room[d : 2 * d]
    if not coordinates(p, step):
        return -math.inf
    scale, mixing, kept, width = joint.spread, 1.0, 1.0, p.tuning * 2.38 / math.sqrt(d)
    before, after = whitened(joint, step, scale), 0.0
    pulled = below(p.rng, 2) == 1
    if pulled:
        mixing = gamma(p.rng, 0.5 * (FREEDOM + d)) / (0.5 * (FREEDOM + before))
        kept, width = math.sqrt(max(1.0 - p.tuning * p.tuning, 0.0)), p.tuning / math.sqrt(mixing)
    for i in range(d):
        new = kept * step[i] + width * normal(p.rng)
        after += new * new
        z[i] = (new - step[i]) * scale
    for i in range(d):
        step[i] = 0.0
        for k in range(i + 1):
            step[i] += joint.factor[i, k] * z[k]
    ratio = 0.5 * (FREEDOM + d) * math.log((FREEDOM + after) / (FREEDOM + before)) if pulled else 0.0
    return ratio + _stepped(p, step)


@uncounted
def coordinates(p, y):
    """Fill y (d,) with the coordinates of the numbers and lengths, as learning.coordinates, and the places
    behind 2 d of p.room with τ by block; False where a number is at an end of what it can be."""
    joint, at = p.joint, 0
    for b in range(joint.first.shape[0]):
        low, high, support = joint.bounds[b, 0], joint.bounds[b, 1], joint.support[b]
        first, last = joint.first[b], joint.first[b] + joint.size[b] - 1
        if support == OF_OTHERS:
            continue
        tau = 0.0
        if support == OF_MANY:
            tau = joint.wander[b] * joint.spread * normal(p.rng)
            p.room[2 * y.shape[0] + b] = tau
        for i in range(first, last + (support != OF_SIMPLEX)):
            x = p.numbers[i]
            if support == OF_MANY:
                x = math.log(x) + tau
            elif support == OF_SIMPLEX:
                x = math.log(x / p.numbers[last])
            elif support == OF_POSITIVE:
                x = math.log(x)
            elif support != OF_REAL:
                if not low < x < high:
                    return False
                x = math.log((x - low) / (high - x))
            y[at] = x
            at += 1
    for i in range(at, y.shape[0]):
        y[i] = 0.0
    for g in range(p.lengths.shape[0]):
        for x in range(p.lengths.shape[1]):
            y[at + joint.group[x]] += p.lengths[g, x]
    for i in range(at, y.shape[0]):
        y[i] = math.log(y[i])
    return True


@uncounted
def whitened(joint, y, scale):
    """Replace y by L⁻¹ (y - μ) / scale; returns its squared length."""
    total = 0.0
    for i in range(y.shape[0]):
        x = (y[i] - joint.mean[i]) / scale
        for k in range(i):
            x -= joint.factor[i, k] * y[k]
        y[i] = x / joint.factor[i, i]
        total += y[i] * y[i]
    return total


@uncounted
def _stepped(p, step):
    """Change numbers and lengths by a step (d,) in the coordinates; returns the log of the Jacobians' ratio,
    -inf where one leaves its bounds."""
    joint, at, ratio = p.joint, 0, 0.0
    for b in range(joint.first.shape[0]):
        low, high, support = joint.bounds[b, 0], joint.bounds[b, 1], joint.support[b]
        x, total = p.numbers[joint.first[b] : joint.first[b] + joint.size[b]], 0.0
        if support == OF_OTHERS:
            continue
        n, shares = x.shape[0] - (support == OF_SIMPLEX), support in (OF_SIMPLEX, OF_MANY)
        for i in range(n):
            if support == OF_REAL:
                x[i] += step[at]
            elif shares or support == OF_POSITIVE:
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
            if shares:
                x[i] /= total
            if not low <= x[i] <= high:
                return -math.inf
        if shares:
            ratio -= x.shape[0] * math.log(total)
        if support == OF_MANY:
            before, wander = p.room[2 * step.shape[0] + b], joint.wander[b] * joint.spread
            after = before + math.log(total)
            ratio += 0.5 * (before * before - after * after) / (wander * wander)
    for g in range(p.lengths.shape[0]):
        for i in range(p.lengths.shape[1] - 1):
            if i != p.beside:
                change = step[at + joint.group[i]]
                p.lengths[g, i] *= math.exp(change)
                ratio += change
                if not p.low <= p.lengths[g, i] <= p.high:
                    return -math.inf
    return ratio


MOVE = Move("joint_normal", NUMBERS, joint_normal, 3, 0.5, 0.25, (1e-3, 1.0))
