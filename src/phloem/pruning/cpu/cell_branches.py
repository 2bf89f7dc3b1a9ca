"""One branch as a function of its length, and the score of a pruned subtree in every edge of a cell.

Both want what lies above a branch for every pattern, not summed by class. A vector is (category, state),
whatever the layout of the messages; true value = entry · 2**power, a power a category. Nothing here assumes
reversibility. The messages are those of a cell whose gradient was just taken (cell_down.py).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import merged, uncounted
from phloem.pruning.cpu.cell import class_row, node_beside_tip
from phloem.pruning.cpu.cell_memory import Part
from phloem.pruning.cpu.cell_records import (
    CLASS_OF,
    COLUMNS,
    INVARIANT_STATES,
    MATRICES,
    MESSAGES,
    SLOT,
    TIP_CODES,
    cell_at,
    cell_matrices,
    cell_messages,
    cell_model,
    cell_numbers,
    cell_sets,
)
from phloem.pruning.cpu.storage import int32_at, int64_at, uint8_at

SMALL = 2.0**-200
Curve = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class View(NamedTuple):
    """A cell's state, in the form that this file reads. columns_at, messages_at, matrix_at: (N,) regions in
    use; beside: the node beside tip 0 where the tree hangs from it, else -1."""

    n: tuple
    columns_at: np.ndarray
    messages_at: np.ndarray
    matrix_at: np.ndarray
    beside: int
    tip_codes: np.ndarray
    class_of: np.ndarray
    messages: tuple
    matrices: tuple
    sets: tuple
    model: tuple


class EdgeScratch(NamedTuple):
    """above, inside (N, batch, C · S), their powers (N, batch, C) int64: for every pattern of a batch what
    lies above a node's branch, and its message where the subtree is taken out. row, other, third (C · S,);
    powers, more (C,) int64; times (C,); half, whole (C, S, S): P of lengths; growth (S,); changed (N,) int64:
    1 above the subtree, 2 in it."""

    above: np.ndarray
    above_power: np.ndarray
    inside: np.ndarray
    inside_power: np.ndarray
    row: np.ndarray
    other: np.ndarray
    third: np.ndarray
    powers: np.ndarray
    more: np.ndarray
    times: np.ndarray
    half: np.ndarray
    whole: np.ndarray
    growth: np.ndarray
    changed: np.ndarray


def edge_scratch(part: Part, batch: int) -> EdgeScratch:
    """For one part, `batch` patterns at a time."""
    nodes, categories, states = 2 * len(part.tip_codes) - 1, len(part.process), part.state_sets.shape[1]
    entries, square = categories * states, (categories, states, states)
    return EdgeScratch(
        above=np.empty((nodes, batch, entries)),
        above_power=np.empty((nodes, batch, categories), np.int64),
        inside=np.empty((nodes, batch, entries)),
        inside_power=np.empty((nodes, batch, categories), np.int64),
        row=np.empty(entries),
        other=np.empty(entries),
        third=np.empty(entries),
        powers=np.empty(categories, np.int64),
        more=np.empty(categories, np.int64),
        times=np.empty(categories),
        half=np.empty(square),
        whole=np.empty(square),
        growth=np.empty(states),
        changed=np.empty(nodes, np.int64),
    )


def new_curve(part: Part) -> Curve:
    """Room for branch_coefficients."""
    n_patterns, entries = part.tip_codes.shape[1], len(part.process) * part.state_sets.shape[1]
    return (
        np.empty(n_patterns),
        np.empty((n_patterns, entries)),
        np.empty(entries),
        np.empty(n_patterns, np.int64),
    )


@merged
def view_of(numbers, addresses, tree, which):
    """View of a cell's accepted state (0) or proposal (1)."""
    n = cell_numbers(numbers)
    at, root = cell_at(n, addresses)[which], 2 * n.tips - 2
    beside = node_beside_tip(tree, root) if n.hangs else -1
    return View(
        n, at[COLUMNS], at[MESSAGES], at[MATRICES], beside,
        int32_at(addresses[TIP_CODES], (n.tips, n.patterns)),
        int32_at(addresses[CLASS_OF], (2 * n.tips - 2, n.patterns)), cell_messages(n, addresses),
        cell_matrices(n, addresses, tree.lengths), cell_sets(n, addresses),
        cell_model(n, addresses, int64_at(addresses[SLOT], (2,))[which]),
    )  # fmt: skip


@uncounted
def times_message(view, x, p, row, powers):
    """row ∘= the message of node x for pattern p."""
    n, lanes, messages = view.n, view.n.exponents, view.messages
    region = view.messages_at[x]
    if x == view.beside:  # cell_down.lay_out
        region = 4 * n.tips - 3
    if x < n.tips:
        k = np.int64(view.tip_codes[x, p])
    else:
        k = np.int64(view.class_of[class_row(view.columns_at[x], n.tips), p])
    line = messages.start[region] + k
    for c in range(n.categories):
        block, lane = c // lanes, c % lanes
        powers[c] += messages.exponents[block, line * lanes + lane]
        for s in range(n.states):
            row[c * n.states + s] *= messages.values[block, line * n.width + s * lanes + lane]


@uncounted
def below_branch(view, tree, x, p, row, powers):
    """row = what is at node x from below, without its branch."""
    n, code = view.n, 0
    for c in range(n.categories):
        powers[c] = 0
    if x < n.tips:
        code = view.tip_codes[x, p]
        for i in range(n.categories * n.states):
            row[i] = 0.0
        for e in range(view.sets.first[code], view.sets.first[code + 1]):
            for c in range(n.categories):
                row[c * n.states + view.sets.states[e]] = 1.0
    else:
        for i in range(n.categories * n.states):
            row[i] = 1.0
        times_message(view, tree.left[x], p, row, powers)
        times_message(view, tree.right[x], p, row, powers)


@uncounted
def matrices_for(view, times, out, growth):
    """P of every category for its length times[c], into out (C, S, S), parent first."""
    n, model = view.n, view.model
    for c in range(n.categories):
        m = model.process[c]
        for e in range(n.states):
            growth[e] = math.expm1(model.values[m, e] * model.rates[c] * times[c])
        for i in range(n.states):
            for j in range(n.states):
                total = 1.0 if i == j else 0.0
                for e in range(n.states):
                    right = model.right[m, i, e] if n.states == 4 else model.right[m, e, i]
                    total += right * growth[e] * model.left[m, e, j]
                out[c, i, j] = max(total, 0.0)


@uncounted
def multiplied(matrix, row, out, upward):
    """out = P row (upward), or rowᵀ P, in every category; matrix (C, S, S)."""
    n_categories, states = matrix.shape[0], matrix.shape[1]
    for c in range(n_categories):
        for i in range(states):
            total = 0.0
            for j in range(states):
                entry = matrix[c, i, j] if upward else matrix[c, j, i]
                total += entry * row[c * states + j]
            out[c * states + i] = total


@uncounted
def rescale(row, powers, states):
    """Take powers of two out of categories that have become small."""
    for c in range(len(powers)):
        top = 0.0
        for s in range(states):
            top = max(top, row[c * states + s])
        if 0.0 < top < SMALL:
            _, power = math.frexp(top)
            powers[c] += power
            for s in range(states):
                row[c * states + s] = math.ldexp(row[c * states + s], -power)


@uncounted
def start_above(view, row, powers):
    """row = weight of a category × root frequencies."""
    n, model = view.n, view.model
    for c in range(n.categories):
        powers[c] = 0
        for s in range(n.states):
            row[c * n.states + s] = model.weights[c] * model.root_frequencies[model.process[c], s]


@uncounted
def above_branch(view, tree, x, p, room):
    """room.row, room.powers = what lies above the branch of x for pattern p: a walk from the root."""
    n, path, y = view.n, room.changed, x
    depth = 0
    while tree.parent[y] >= 0:
        path[depth] = y
        depth += 1
        y = tree.parent[y]
    start_above(view, room.row, room.powers)
    for k in range(depth - 1, -1, -1):
        y = path[k]
        above = tree.parent[y]
        if tree.parent[above] >= 0:
            through_branch(view, above, room.row, room.other, False)
            for i in range(n.categories * n.states):
                room.row[i] = room.other[i]
        beside = tree.right[above] if tree.left[above] == y else tree.left[above]
        times_message(view, beside, p, room.row, room.powers)
        rescale(room.row, room.powers, n.states)


@uncounted
def through_branch(view, x, row, out, upward):
    """out = P row (upward), or rowᵀ P, of the branch of x, by the matrix that the cell has."""
    n, lanes, at = view.n, view.n.exponents, view.matrix_at[x] * view.n.matrix
    for c in range(n.categories):
        down, lane = view.matrices.down[c // lanes], c % lanes
        for i in range(n.states):
            total = 0.0
            for j in range(n.states):
                entry = j * n.padded + i if upward else i * n.padded + j
                total += row[c * n.states + j] * down[at + entry * lanes + lane]
            out[c * n.states + i] = total


@uncounted
def branch_coefficients(numbers, addresses, tree, which, node, row, room, curve):
    """What the likelihood of every pattern is as a function of the length of node's branch in one row of a
    chain's lengths: (constant + Σ_e slope_e expm1(rate_e t)) · 2**power.

    curve: (constant (P,), slope (P, C · S), rate (C · S,), power (P,) int64), out.
    """
    n, view = cell_numbers(numbers), view_of(numbers, addresses, tree, which)
    constant, slope, rate, power = curve
    model, states = view.model, n.states
    allowed = uint8_at(addresses[INVARIANT_STATES], (n.patterns, n.states))
    for c in range(n.categories):
        room.times[c] = view.matrices.lengths[model.length_class[c], node]
        varies = n.first_lengths + model.length_class[c] == row
        for e in range(states):
            value = model.values[model.process[c], e] * model.rates[c]
            rate[c * states + e] = value if varies else 0.0
    matrices_for(view, room.times, room.whole, room.growth)
    for p in range(n.patterns):
        above_branch(view, tree, node, p, room)
        below_branch(view, tree, node, p, room.other, room.more)
        top = np.int64(0 if model.invariant > 0 else -(1 << 40))
        for c in range(n.categories):
            room.more[c] += room.powers[c]
            top = max(top, room.more[c])
        power[p], total = top, 0.0
        for c in range(n.categories):
            m, scale = model.process[c], math.ldexp(1.0, max(room.more[c] - top, -1100))
            varies = n.first_lengths + model.length_class[c] == row
            for i in range(states):
                here = room.row[c * states + i]
                if varies:
                    total += scale * here * room.other[c * states + i]
                else:
                    for j in range(states):
                        total += scale * here * room.whole[c, i, j] * room.other[c * states + j]
            for e in range(states):
                left, right = 0.0, 0.0
                for i in range(states if varies else 0):
                    entry = model.right[m, i, e] if n.states == 4 else model.right[m, e, i]
                    right += room.row[c * states + i] * entry
                    left += model.left[m, e, i] * room.other[c * states + i]
                slope[p, c * states + e] = scale * left * right
        if model.invariant > 0:
            share = 0.0
            for s in range(states):
                share += model.invariant_frequencies[s] * allowed[p, s]
            total += math.ldexp(model.invariant * share, max(-top, -1100))
        constant[p] = total


@uncounted
def branch_values(curve, weights, unobservable, t, out):
    """log L, its first and second derivative by the length t, into out (3,). curve: branch_coefficients'."""
    constant, slope, rate, power = curve
    seen, hidden, d_hidden, dd_hidden = 0.0, 0.0, 0.0, 0.0
    out[0] = out[1] = out[2] = 0.0
    for p in range(len(constant)):
        value, first, second = constant[p], 0.0, 0.0
        for e in range(len(rate)):
            growth = math.expm1(rate[e] * t)
            value += slope[p, e] * growth
            d = slope[p, e] * rate[e] * (1.0 + growth)
            first += d
            second += d * rate[e]
        log = math.log(value) + power[p] * math.log(2.0) if value > 0.0 else -math.inf
        seen += weights[p]
        if weights[p] != 0.0:
            out[0] += weights[p] * log
            out[1] += weights[p] * first / value
            out[2] += weights[p] * (second / value - (first / value) ** 2)
        if unobservable[p]:
            likelihood = math.exp(log)
            hidden += likelihood
            d_hidden += likelihood * first / value
            dd_hidden += likelihood * second / value
    if hidden > 0.0:
        left = 1.0 - hidden
        out[0] -= seen * math.log1p(-hidden)
        out[1] += seen * d_hidden / left
        out[2] += seen * (dd_hidden / left + (d_hidden / left) ** 2)
