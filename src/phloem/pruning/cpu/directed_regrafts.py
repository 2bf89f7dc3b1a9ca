"""Scores of moved subtrees (SPR) from directed messages (directed.py), none of them applied.

A subtree is what lies beyond half-edge s of an inner node; taking it out joins the node's other two branches.
From both ends of the joined branch a walk goes outwards, and in the middle of every branch that it passes,
what comes from the gap, what lies beyond and the subtree's own message meet (Guindon et al. 2010 call it SPR
by distances; Stamatakis 2006 lazy SPR). A second look fits the three lengths there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.directed import WHOLE, beside, fill_block, joined, log_sites, matrix_at
from phloem.pruning.cpu.lanes import add, load, multiply, multiply_add, store, sum_lanes, zeros
from phloem.pruning.cpu.pattern_lanes import column_product, spread

# Columns of the table of steps.
PRUNED, OUT, SIBLING, BEHIND, LEVEL, BEFORE, GOES_ON = range(7)


class Walk(NamedTuple):
    """Room of one thread. arrival: (radius + 1, category, state, lane) what comes from the gap at every
    level; arrival_power (radius + 1, lane). near, across, subtree: a column each."""

    arrival: np.ndarray
    arrival_power: np.ndarray
    near: np.ndarray
    across: np.ndarray
    subtree: np.ndarray


class Share(NamedTuple):
    """Some blocks of patterns, int64. order: half_edges.preorder. what: of every half-edge, what is to be
    written of its message first (directed.hand_on)."""

    blocks: np.ndarray
    order: np.ndarray
    what: np.ndarray


@uncounted
def list_steps(pruned, back, tips, radius, steps, stack):
    """Every regraft within radius nodes of where the subtrees beyond half-edges `pruned` are, a row each, in
    preorder of every walk. PRUNED: s. OUT: the half-edge of the branch that looks away from the gap. SIBLING:
    the half-edge whose message joins there. BEHIND: the half-edge at the gap whose message sets out. BEFORE:
    row of the step before, or -1. GOES_ON: whether others come after it.

    Rows that steps has no room for are counted, not written. stack (·, 4) int64. Returns the number of rows.
    """
    count = 0
    for i in range(len(pruned)):
        s = pruned[i]
        a, b = beside(s, tips)
        for side in range(2):
            start, behind = (back[a], b) if side == 0 else (back[b], a)
            depth = 0
            if start >= tips:
                depth = push(stack, 0, start, 1, -1, tips)
            while depth:
                depth -= 1
                out, sibling = stack[depth, 0], stack[depth, 1]
                level, before = stack[depth, 2], stack[depth, 3]
                beyond = back[out]
                goes_on = level < radius and beyond >= tips
                if count < len(steps):
                    row = steps[count]
                    row[PRUNED], row[OUT], row[SIBLING], row[BEHIND] = s, out, sibling, behind
                    row[LEVEL], row[BEFORE], row[GOES_ON] = level, before, goes_on
                if goes_on:
                    depth = push(stack, depth, beyond, level + 1, count, tips)
                count += 1
    return count


@uncounted
def ask(steps, back, order, what):
    """what (int8, zeros) = WHOLE at the half-edges whose messages the walks of these steps need, looking away
    from tip 0 or not, and at those that look away and others wait for. order: half_edges.preorder."""
    tips = (len(back) + 6) // 4
    for i in range(len(steps)):
        for column in (PRUNED, OUT, SIBLING, BEHIND):
            what[back[steps[i, column]]] = WHOLE
    for i in range(len(order) - 1, -1, -1):
        h = order[i]
        if h >= tips:
            a, b = beside(h, tips)
            if what[a] or what[b]:
                what[back[h]] = WHOLE


@uncounted
def push(stack, depth, node, level, before, tips):
    """The two branches that lead on from a node entered by half-edge `node`."""
    c, e = beside(node, tips)
    stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = e, c, level, before
    stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2], stack[depth + 1, 3] = c, e, level, before
    return depth + 2


@uncounted
def set_out(step, block, back, columns, messages, walk, shape):
    """What crosses the gap: arrival[0], the message of the half-edge behind it through the other branch."""
    n, edges = len(shape.lanes), 4 * shape.tips - 6
    size = shape.categories * shape.states
    behind = step[BEHIND]
    source = (block * edges + back[behind]) * size * n
    c, e = beside(behind, shape.tips)
    other = e if c == step[PRUNED] else c
    matrix = matrix_at(other, block, back, columns, shape)
    column_product(messages.whole, matrix, messages.values, source, walk.arrival, 0, shape)
    power = load(messages.powers, (block * edges + back[behind]) * n, shape.lanes)
    store(walk.arrival_power, 0, power)


@uncounted
def go(step, block, back, columns, messages, halves, walk, shape):
    """What comes from the gap to the middle (halves) or the end of the step's branch: walk.across. What it is
    at the branch's beginning: walk.near. Returns their powers."""
    n, edges = len(shape.lanes), 4 * shape.tips - 6
    size, before = shape.categories * shape.states, step[LEVEL] - 1
    sibling = block * edges + back[step[SIBLING]]
    power = joined(
        walk.arrival, before * size * n, messages.values, sibling * size * n,
        walk.arrival_power, before * n, messages.powers, sibling * n, walk.near, shape,
    )  # fmt: skip
    matrix = matrix_at(step[OUT], block, back, columns, shape)
    column_product(halves, matrix, walk.near, 0, walk.across, 0, shape)
    return power


@uncounted
def score_steps(steps, share, back, columns, numbers, messages, walk, shape, scores):
    """scores[i] += what the blocks of the share add to the log-likelihood of every step, with the subtree in
    the middle of the branch at its old distance. The matrices are there."""
    lanes, n, edges = shape.lanes, len(shape.lanes), 4 * shape.tips - 6
    size = shape.categories * shape.states
    for block in share.blocks:
        fill_block(share.order, share.what, block, back, columns, messages, walk.near, shape)
        weights, part = load(columns.weights, block * n, lanes), columns.part[block] * size
        pruned = behind = np.int64(-1)
        own_power = zeros(walk.near, lanes)
        for i in range(len(steps)):
            step = steps[i]
            if step[PRUNED] != pruned:
                pruned, behind = step[PRUNED], np.int64(-1)
                own = block * edges + back[pruned]
                own_power = load(messages.powers, own * n, lanes)
                for k in range(size):
                    x = load(messages.values, (own * size + k) * n, lanes)
                    store(walk.subtree, k * n, multiply(spread(numbers.start, part + k, lanes), x))
            if step[BEHIND] != behind:
                behind = step[BEHIND]
                set_out(step, block, back, columns, messages, walk, shape)
            power = go(step, block, back, columns, messages, messages.halves, walk, shape)
            beyond, total = back[step[OUT]] * size, zeros(walk.near, lanes)
            for k in range(size):
                x = multiply(load(walk.across, k * n, lanes), load(messages.half, (beyond + k) * n, lanes))
                total = multiply_add(x, load(walk.subtree, k * n, lanes), total)
            if step[GOES_ON]:
                matrix = matrix_at(step[OUT], block, back, columns, shape)
                column_product(
                    messages.halves, matrix, walk.across, 0, walk.arrival, step[LEVEL] * size * n, shape
                )
                store(walk.arrival_power, step[LEVEL] * n, power)
            far = (block * edges + back[step[OUT]]) * n
            power = add(add(power, own_power), load(messages.powers, far, lanes))
            scores[i] += sum_lanes(multiply(log_sites(total, power, block, columns, lanes), weights))
