"""Histories of a trait along a dated tree, drawn given the tips' states: those of the nodes, and how often
the trait changed from one state to another.

States from the root down, each given its parent's and what is below it; changes along a branch given both its
ends, by uniformisation (Hobolth and Stone 2009, Ann. Appl. Stat. 3:1204).
"""

from __future__ import annotations

import math

from phloem.density.traits import PIECE, collect, event, pass_on, root_share, set_rates
from phloem.hardware.numba_compile import compiled, uncounted
from phloem.inference.mcmc.compiled.random import uniform

MOST_EVENTS = 160  # of a piece of a branch, PIECE expected


@uncounted
def _chosen(rng, weights):
    """An index, with probability as its weight."""
    total, last = 0.0, 0
    for i in range(weights.shape[0]):
        total += weights[i]
    u, i = uniform(rng) * total, 0
    for i in range(weights.shape[0]):
        if weights[i] > 0.0:
            last = i
            u -= weights[i]
            if u < 0.0:
                return i
    return last


@uncounted
def _count_jumps(rng, q, largest, time, begin, end, jumps, reach):
    """Add the changes of one history from begin to end in a time, largest · time ≤ PIECE, to jumps. reach:
    (MOST_EVENTS, K): (I + Q/λ)^n applied to end."""
    k, weight, n = q.shape[0], math.exp(-largest * time), 0
    for i in range(k):
        reach[0, i] = 1.0 if i == end else 0.0
    total, step = weight * reach[0, begin], largest * time
    while (n <= step or weight > 1e-18) and n < MOST_EVENTS - 1:
        n += 1
        weight *= step / n
        event(q, largest, reach[n - 1], False, reach[n])
        total += weight * reach[n, begin]
    u, weight, n = uniform(rng) * total, math.exp(-step), 0
    u -= weight * reach[0, begin]
    while u >= 0.0 and n < MOST_EVENTS - 1:
        n += 1
        weight *= step / n
        u -= weight * reach[n, begin]
    at = begin
    for left in range(n - 1, -1, -1):
        total = 0.0
        for i in range(k):
            total += ((1.0 if i == at else 0.0) + q[at, i] / largest) * reach[left, i]
        u, to = uniform(rng) * total, at
        for i in range(k):
            share = ((1.0 if i == at else 0.0) + q[at, i] / largest) * reach[left, i]
            if share > 0.0:
                to = i
                u -= share
                if u < 0.0:
                    break
        if to != at:
            jumps[at, to] += 1
            at = to


@compiled
def draw_history(rng, trait, now, x, memory, states, jumps, reach):
    """One history of the trait given the tips' states: the state of every node into states (N,) int64, how
    often it changed from one to another added to jumps (K, K). Returns the log-likelihood, -inf where nothing
    is drawn. reach: (MOST_EVENTS, K), to work in; memory: all of it is overwritten."""
    k, room = trait.tips.shape[1], memory.room
    q, largest = memory.rates[0], set_rates(trait, x, memory.rates[0])
    memory.largest[0] = largest
    value = collect(trait, now, now, x, memory, 0, False)
    if not value > -math.inf:
        return value
    for at in range(now.order.shape[0] - 1, -1, -1):
        node = now.order[at]
        parent = now.parent[node]
        for i in range(k):
            room[5, i] = root_share(trait, x, i) if parent < 0 else 0.0
        left = 0.0
        if parent >= 0:
            room[5, states[parent]] = 1.0
            left = now.heights[parent] - now.heights[node]
            pass_on(q, largest, left, True, room[5], room)
        for i in range(k):
            room[5, i] *= memory.below[0, node, i]
        states[node] = _chosen(rng, room[5])
        begin = states[parent] if parent >= 0 else states[node]
        while left * largest > 0.0:
            piece = left if left * largest <= PIECE else PIECE / largest
            left = left - piece if piece < left else 0.0
            end = states[node]
            if left > 0.0:
                for i in range(k):
                    room[4, i], room[5, i] = 1.0 if i == begin else 0.0, 1.0 if i == end else 0.0
                pass_on(q, largest, piece, True, room[4], room)
                pass_on(q, largest, left, False, room[5], room)
                for i in range(k):
                    room[5, i] *= room[4, i]
                end = _chosen(rng, room[5])
            _count_jumps(rng, q, largest, piece, begin, end, jumps, reach)
            begin = end
    return value
