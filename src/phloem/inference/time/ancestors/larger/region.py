"""Ancestors whose neighbours a proposal changed are summed over, and drawn anew where it is taken.

At a site where their neighbours differ, ancestors are summed over the states that these neighbours have, if
they have such states themselves; all other sites stay as they are (a site at which all neighbours are alike,
or an ancestor has a state of its own, is drawn anew by single.py only). Which sites these are depends on what
the proposal does not change, so what is drawn is drawn from an exact conditional distribution, and needs no
Hastings ratio.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import merged, uncounted
from phloem.inference.time.ancestors.branches import log_of_root
from phloem.inference.time.ancestors.draws import drawn_state
from phloem.inference.time.ancestors.larger.branches import (
    chance,
    log_of_branch,
    log_of_site,
    log_of_states,
    move_share,
    note_sites,
)
from phloem.inference.time.ancestors.larger.memory import (
    BRANCHES,
    MOST_STATES,
    SITES_HERE,
    UNKNOWN,
)
from phloem.inference.time.ancestors.redraw import ABOVE, BESIDE, REDRAWN


@uncounted
def find_branches(near):
    """Into near.branches the nodes below all branches at the ancestors in question, in either tree."""
    for tree in range(2):
        n = 0
        for k in range(near.notes[REDRAWN]):
            above = near.kin[tree, k, ABOVE]
            for i in range(ABOVE):
                near.branches[tree, n] = near.kin[tree, k, i]
                n += 1
            if above >= 0 and near.at[above] < 0:
                near.branches[tree, n] = near.redrawn[tree, k]
                n += 1
        near.notes[BRANCHES + tree] = n


@uncounted
def find_sites(memory):
    """Into near.sites those at which the ancestors in question or their neighbours are not all alike, what is
    not known aside."""
    near, n, n_tips = memory.near, 0, memory.known.shape[0]
    one, n_redrawn = memory.words[near.redrawn[0, 0]], near.notes[REDRAWN]
    for w in range(one.shape[0]):
        bits = np.uint64(0)
        for k in range(1, n_redrawn):
            bits |= memory.words[near.redrawn[0, k], w] ^ one[w]
        for b in range(near.notes[BESIDE]):
            y = near.beside[b]
            other = memory.words[y, w] ^ one[w]
            bits |= other & memory.known[y, w] if y < n_tips else other
        if bits != 0:
            n = note_sites(bits, w, near.sites, n)
    near.notes[SITES_HERE] = n


@uncounted
def states_at(memory, s):
    """Into near.states what the neighbours have at a site: how many; -1 where they are alike, too many, or an
    ancestor in question has another."""
    near, n, several, n_states = memory.near, 0, False, memory.right.shape[1]
    for b in range(near.notes[BESIDE]):
        code = np.int64(memory.codes[near.beside[b], s])
        if code < n_states:
            n = add_state(near.states, n, code)
        elif code != UNKNOWN:
            several = True
            for j in range(n_states):
                n = add_state(near.states, n, j) if memory.sets[code - n_states, j] != 0 else n
    if n > MOST_STATES or (n < 2 and not several):
        return -1
    for k in range(near.notes[REDRAWN]):
        own, found = np.int64(memory.codes[near.redrawn[0, k], s]), False
        for i in range(n):
            found = found or near.states[i] == own
        if not found:
            return -1
    return n


@uncounted
def add_state(states, n, state):
    """To n states, if it is not there; how many there are then, MOST_STATES + 1 for more."""
    for i in range(min(n, MOST_STATES)):
        if states[i] == state:
            return n
    if n < MOST_STATES:
        states[n] = state
    return min(n + 1, MOST_STATES + 1)


@uncounted
def log_as_is(memory, slot, tree, parent, s):
    """Log-likelihood of the branches in question at a site, with the states that there are."""
    near, total, c, codes = memory.near, 0.0, np.int64(memory.category[s]), memory.codes
    sides = memory.side if tree == 0 else memory.now_side
    for b in range(near.notes[BRANCHES + tree]):
        y = near.branches[tree, b]
        i, code = np.int64(codes[parent[y], s]), np.int64(codes[y, s])
        total += log_of_site(memory, slot, sides[y], y, c, i, code)
    return total


@uncounted
def powered(p, power):
    """A power of a probability."""
    return p if power == 1.0 else p**power


@uncounted
def peel(memory, model, slot, tree, s, n):
    """Log of the sum over the first n of near.states of the ancestors in question, of the likelihood's power
    of a site; messages into near.up."""
    near, c, codes, value = memory.near, np.int64(memory.category[s]), memory.codes, 1.0
    sides, power = memory.side if tree == 0 else memory.now_side, near.power[0]
    for k in range(near.notes[REDRAWN]):
        x = near.redrawn[tree, k]
        own = near.up[near.at[x]]
        for a in range(n):
            own[a] = 1.0
        for child in near.kin[tree, k, :ABOVE]:
            grown, inside = memory.grown[sides[child], child, c], near.at[child]
            code = np.int64(codes[child, s])
            if inside < 0 and code == UNKNOWN:
                continue
            for a in range(n):
                total = 0.0
                if inside < 0:
                    total = powered(chance(memory, slot, grown, near.states[a], code), power)
                else:
                    for b in range(n):
                        p = chance(memory, slot, grown, near.states[a], near.states[b])
                        total += powered(p, power) * near.up[inside, b]
                own[a] *= total
        above, total = near.kin[tree, k, ABOVE], 0.0
        if above >= 0 and near.at[above] >= 0:
            continue
        for a in range(n):
            total += from_above(memory, model, slot, tree, k, s, a) * own[a]
        value *= total
    return math.log(value) if value > 0.0 else -math.inf


@uncounted
def from_above(memory, model, slot, tree, k, s, a):
    """Power of the probability of state number a of the k-th ancestor, whose parent is not in question."""
    near, c = memory.near, np.int64(memory.category[s])
    above, x = near.kin[tree, k, ABOVE], near.redrawn[tree, k]
    if above < 0:
        p = model.root_frequencies[0, near.states[a]] * model.weights[c]
    else:
        side = memory.side[x] if tree == 0 else memory.now_side[x]
        i = np.int64(memory.codes[above, s])
        p = chance(memory, slot, memory.grown[side, x, c], i, near.states[a])
    return powered(p, near.power[0])


@merged
def sums(memory, model, slot, before, now):
    """How the log-likelihood changes, that of the ancestors in question summed over; tables of the proposal's
    branches are there."""
    near, change, n_states = memory.near, 0.0, memory.right.shape[1]
    find_branches(near)
    find_sites(memory)
    n_before, n_now = near.notes[BRANCHES], near.notes[BRANCHES + 1]
    for b in range(n_before):
        change -= memory.value[near.branches[0, b]]
    for b in range(n_now):
        y = near.branches[1, b]
        change += log_of_states(memory.shares[y], memory.stay[memory.now_side[y], y])
    for m in range(near.notes[SITES_HERE]):
        s = near.sites[m]
        c, n = memory.category[s], states_at(memory, s)
        near.again[m] = n > 0
        for b in range(n_now):
            y = near.branches[1, b]
            code = memory.codes[y, s]
            if code < n_states:
                change -= memory.stay[memory.now_side[y], y, c, code]
        if n > 0:
            ratio = peel(memory, model, slot, 1, s, n) - peel(memory, model, slot, 0, s, n)
            change += log_as_is(memory, slot, 0, before.parent, s) + ratio / near.power[0]
        else:
            change += log_as_is(memory, slot, 1, now.parent, s)
    return change


@merged
def take_drawn(rng, memory, model, slot, tree):
    """Draw the ancestors in question anew, given their neighbours in the proposed tree, after sums; the
    proposal's tables are the accepted ones now. Values of the branches at them."""
    near, room, root = memory.near, memory.weights, memory.value.shape[0] - 1
    for m in range(near.notes[SITES_HERE]):
        if near.again[m] == 0:
            continue
        s = near.sites[m]
        n = states_at(memory, s)
        peel(memory, model, slot, 1, s, n)
        draw_site(rng, memory, model, slot, s, room[:n])
    for b in range(near.notes[BRANCHES + 1]):
        y = near.branches[1, b]
        memory.value[y] = log_of_branch(memory, slot, memory.side[y], y, tree.parent[y], near.sites)
    memory.value[root] = log_of_root(memory.shares[root], model.root_frequencies[0], model.weights)


@uncounted
def draw_site(rng, memory, model, slot, s, weights):
    """States of the ancestors in question at one site, after peel in the proposed tree."""
    near, c, n = memory.near, np.int64(memory.category[s]), weights.shape[0]
    for k in range(near.notes[REDRAWN] - 1, -1, -1):
        x, above = near.redrawn[1, k], near.kin[1, k, ABOVE]
        for a in range(n):
            if above >= 0 and near.at[above] >= 0:
                i = near.drawn[near.at[above]]
                grown = memory.grown[memory.now_side[x], x, c]
                p = powered(chance(memory, slot, grown, i, near.states[a]), near.power[0])
            else:
                p = from_above(memory, model, slot, 1, k, s, a)
            weights[a] = p * near.up[near.at[x], a]
        near.drawn[near.at[x]] = near.states[drawn_state(rng, weights)]
    for k in range(near.notes[REDRAWN]):
        move_share(memory, near.redrawn[1, k], s, near.drawn[k])
