"""Directed messages of an unrooted tree: what every branch hands on in both directions, pattern by pattern.

Half-edges as in tree/half_edges.py. The message of half-edge h is m_h = P(length) p_h, where p_h is the
likelihood, by the state at h's node, of the tips that lie behind the node as seen from the branch. At a node
with half-edges h, a, b: p_h = m_back(a) ∘ m_back(b). With all 4T-6 messages at hand the likelihood can be
read off at every branch: L = Σ_c weight_c Σ_i π_i p_h[i] m_back(h)[i], for reversible models only.

Patterns are in lanes, blocks of them outermost, so that a block of all messages stays in a core's cache while
everything is asked of it. States are padded to a multiple of four by states that nothing allows.

Parts of the data that share branch lengths, each with a model and a rate of its own, are messages side by
side: a block belongs to one part, whose numbers it takes. All have as many states and categories as the
largest: states that nothing allows, categories without weight.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.lanes import (
    add,
    any_below,
    fill,
    load,
    maximum,
    multiply,
    multiply_add,
    store,
    subtract,
    sum_lanes,
    zeros,
)
from phloem.pruning.cpu.pattern_lanes import (
    LOG_2,
    column_product,
    logarithm,
    power_of_two,
    spread,
    where_below,
)

NOTHING, WHOLE, MIDDLE = range(3)  # of a message, as bits
SMALL, TAKEN_OUT = 2.0**-200, 200.0  # columns smaller than this are multiplied by 2**200
_LEAST, _LOWEST = 1e-300, -1000.0  # in place of a likelihood of 0; of an exponent


class Shape(NamedTuple):
    """lanes: a tuple as long as there are patterns in a block; tips, blocks, categories, padded states; parts
    of the data."""

    lanes: tuple[int, ...]
    tips: int
    blocks: int
    categories: int
    states: int
    parts: int


class Columns(NamedTuple):
    """The data. tips: (block, tip, state, lane) 1.0 where a character allows the state. weights, and
    invariant, the share of invariable sites in the likelihood: (block, lane). varies: 1.0 where that is 0.
    part: (block,) int64."""

    tips: np.ndarray
    weights: np.ndarray
    invariant: np.ndarray
    varies: np.ndarray
    part: np.ndarray


class Numbers(NamedTuple):
    """The model of every part by category: right, left (part, category, state, eigenvalue) and its inverse,
    values (part, category, eigenvalue) times the rate, start (part, category, state) weight × frequency, into
    = startᵀ right (part, category, eigenvalue, state); all flat. sets, as values, int64: which of the sets of
    branch lengths."""

    right: np.ndarray
    left: np.ndarray
    values: np.ndarray
    start: np.ndarray
    into: np.ndarray
    sets: np.ndarray


class Messages(NamedTuple):
    """values: (block, half-edge, category, state, lane), over the whole branch. half: the same to its middle,
    of one block at a time. powers: (block, half-edge, lane), of both. whole, halves: P of every branch, at
    its larger half-edge, and part."""

    values: np.ndarray
    half: np.ndarray
    powers: np.ndarray
    whole: np.ndarray
    halves: np.ndarray


@uncounted
def beside(h, tips):
    """The other two half-edges at an inner node."""
    first = tips + 3 * ((h - tips) // 3)
    k = h - first
    return first + (k + 1) % 3, first + (k + 2) % 3


@uncounted
def matrix_at(h, block, back, columns, shape):
    """Where P of the branch of h begins, of a block's part."""
    place = max(h, back[h]) * shape.parts + columns.part[block]
    return place * shape.categories * shape.states * shape.states


@uncounted
def write_matrix(numbers, lengths, share, shape, matrix, at):
    """P of a share of a branch, of (K,) lengths, in every part and category, as I + R expm1(Λ t) L, from
    matrix[at] on."""
    states = shape.states
    for c in range(shape.parts * shape.categories):
        own, square = c * states, c * states * states
        for i in range(states):
            out = at + square + i * states
            for j in range(states):
                matrix[out + j] = 0.0
            for e in range(states):
                change = math.expm1(numbers.values[own + e] * (share * lengths[numbers.sets[own + e]]))
                growth = numbers.right[square + i * states + e] * change
                for j in range(states):
                    matrix[out + j] += growth * numbers.left[square + e * states + j]
            matrix[out + i] += 1.0
            for j in range(states):
                matrix[out + j] = max(matrix[out + j], 0.0)


@uncounted
def write_matrices(back, lengths, numbers, shape, messages):
    """P of every branch and of half of it. lengths (half-edge, K)."""
    size = shape.parts * shape.categories * shape.states * shape.states
    for h in range(len(back)):
        if h > back[h]:
            write_matrix(numbers, lengths[h], 1.0, shape, messages.whole, h * size)
            write_matrix(numbers, lengths[h], 0.5, shape, messages.halves, h * size)


@uncounted
def joined(x, x_at, y, y_at, x_powers, x_power, y_powers, y_power, room, shape):
    """room = the product of two columns; returns its powers. Small columns are scaled up."""
    lanes, n = shape.lanes, len(shape.lanes)
    top = zeros(x, lanes)
    size = shape.categories * shape.states
    for k in range(size):
        product = multiply(load(x, x_at + k * n, lanes), load(y, y_at + k * n, lanes))
        store(room, k * n, product)
        top = maximum(top, product)
    power = add(load(x_powers, x_power, lanes), load(y_powers, y_power, lanes))
    if any_below(top, SMALL):
        factor = where_below(top, SMALL, 1.0 / SMALL, 1.0)
        for k in range(size):
            store(room, k * n, multiply(load(room, k * n, lanes), factor))
        power = add(power, where_below(top, SMALL, -TAKEN_OUT, 0.0))
    return power


@uncounted
def own_column(h, block, back, columns, messages, room, shape):
    """room = p_h of a block of patterns; returns its powers."""
    lanes, n, states = shape.lanes, len(shape.lanes), shape.states
    width, edges = shape.categories * states * n, 4 * shape.tips - 6
    if h < shape.tips:
        at = (block * shape.tips + h) * states * n
        for s in range(states):
            x = load(columns.tips, at + s * n, lanes)
            for c in range(shape.categories):
                store(room, (c * states + s) * n, x)
        return zeros(room, lanes)
    a, b = beside(h, shape.tips)
    first, second = block * edges + back[a], block * edges + back[b]
    values, powers = messages.values, messages.powers
    return joined(
        values, first * width, values, second * width, powers, first * n, powers, second * n, room, shape
    )


@uncounted
def hand_on(h, block, back, columns, messages, room, shape, what):
    """The message of h, of a block of patterns, from those that reach its node: over its WHOLE branch, to its
    MIDDLE, or both."""
    n = len(shape.lanes)
    width, edges = shape.categories * shape.states * n, 4 * shape.tips - 6
    power = own_column(h, block, back, columns, messages, room, shape)
    matrix = matrix_at(h, block, back, columns, shape)
    at = block * edges + h
    store(messages.powers, at * n, power)
    if what & WHOLE:
        column_product(messages.whole, matrix, room, 0, messages.values, at * width, shape)
    if what & MIDDLE:
        column_product(messages.halves, matrix, room, 0, messages.half, h * width, shape)


@uncounted
def fill_block(order, what, block, back, columns, messages, room, shape):
    """Messages of a block, of every half-edge what it says. order: half_edges.preorder. The matrices are
    there, and messages that others wait for are up to date or asked for."""
    for i in range(len(order) - 1, -1, -1):
        h = order[i]
        if what[h]:
            hand_on(h, block, back, columns, messages, room, shape, what[h])
    end = back[order[0]]
    if what[end]:
        hand_on(end, block, back, columns, messages, room, shape, what[end])
    for i in range(len(order)):
        h = order[i]
        if h >= shape.tips:
            for a in beside(h, shape.tips):
                if what[a]:
                    hand_on(a, block, back, columns, messages, room, shape, what[a])


@uncounted
def fill_messages(order, what, back, columns, messages, room, shape):
    """fill_block of all blocks."""
    for block in range(shape.blocks):
        fill_block(order, what, block, back, columns, messages, room, shape)


@uncounted
def beside_invariant(power, block, columns, lanes):
    """What 2**power is to be written as beside the invariable share: 1 where there is none, as L'/L needs no
    power then."""
    varies = load(columns.varies, block * len(lanes), lanes)
    moved = subtract(power, multiply(power, varies))
    return power_of_two(maximum(moved, fill(columns.varies, _LOWEST, lanes)))


@uncounted
def log_sites(total, power, block, columns, lanes):
    """Log-likelihoods of a block of patterns from those of variable sites, total · 2**power."""
    at = block * len(lanes)
    varies, invariant = load(columns.varies, at, lanes), load(columns.invariant, at, lanes)
    kept = multiply(power, varies)
    likelihood = multiply_add(total, beside_invariant(power, block, columns, lanes), invariant)
    log = logarithm(maximum(likelihood, fill(columns.varies, _LEAST, lanes)))
    return multiply_add(kept, fill(columns.varies, LOG_2, lanes), log)


@uncounted
def log_likelihood_at(h, blocks, back, columns, numbers, messages, room, shape, sites):
    """Σ weight · log-likelihood of some blocks, read off at the branch of h; that of every pattern into
    sites."""
    lanes, n = shape.lanes, len(shape.lanes)
    size, edges = shape.categories * shape.states, 4 * shape.tips - 6
    result = 0.0
    for block in blocks:
        power = own_column(h, block, back, columns, messages, room, shape)
        at = block * edges + back[h]
        total, own = zeros(room, lanes), columns.part[block] * size
        for k in range(size):
            x = multiply(load(room, k * n, lanes), load(messages.values, (at * size + k) * n, lanes))
            total = multiply_add(spread(numbers.start, own + k, lanes), x, total)
        power = add(power, load(messages.powers, at * n, lanes))
        log = log_sites(total, power, block, columns, lanes)
        store(sites, block * n, log)
        result += sum_lanes(multiply(log, load(columns.weights, block * n, lanes)))
    return result
