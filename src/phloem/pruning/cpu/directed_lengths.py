"""Branch lengths by Newton steps on directed messages (directed.py).

At one branch, in the eigenbasis of every category, the likelihood of a pattern is Σ_e θ_e exp(λ_e t), with
θ = (startᵀ R p) ∘ (L p'): the columns at both ends enter once, a step costs no more than θ.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.directed import (
    WHOLE,
    beside,
    beside_invariant,
    hand_on,
    own_column,
    write_matrix,
)
from phloem.pruning.cpu.lanes import (
    add,
    load,
    multiply,
    multiply_add,
    store,
    subtract,
    sum_lanes,
    zeros,
)
from phloem.pruning.cpu.pattern_lanes import column_product, divide, spread

SHORTEST, LONGEST = 1e-8, 100.0
LEAVE, PASS, FIT = range(3)
_STEPS = 12
_ENOUGH = 1e-3  # a length settles where a Newton step changes it by less than this share


class Room(NamedTuple):
    """What one thread works in. first, second: a column (category, state, lane) each. theta: (block,
    category, eigenvalue, lane). growth: (3, part × category × eigenvalue). stack (4T,) int64."""

    first: np.ndarray
    second: np.ndarray
    theta: np.ndarray
    growth: np.ndarray
    stack: np.ndarray


@uncounted
def slopes(theta, lengths, of, t, columns, numbers, growth, shape):
    """d log L / dt and d² log L / dt² at one branch, where t is its length in set `of`; others as lengths
    (K,) has them."""
    lanes, n, size = shape.lanes, len(shape.lanes), shape.categories * shape.states
    every = shape.parts * size
    for k in range(every):
        varies = numbers.sets[k] == of
        growth[k] = math.exp(numbers.values[k] * (t if varies else lengths[numbers.sets[k]]))
        rate = numbers.values[k] if varies else 0.0
        growth[every + k] = rate * growth[k]
        growth[2 * every + k] = rate * growth[every + k]
    d1, d2 = zeros(theta, lanes), zeros(theta, lanes)
    for block in range(shape.blocks):
        value, first, second = (
            load(columns.invariant, block * n, lanes),
            zeros(theta, lanes),
            zeros(theta, lanes),
        )
        at, own = block * size * n, columns.part[block] * size
        for k in range(size):
            x = load(theta, at + k * n, lanes)
            value = multiply_add(spread(growth, own + k, lanes), x, value)
            first = multiply_add(spread(growth, every + own + k, lanes), x, first)
            second = multiply_add(spread(growth, 2 * every + own + k, lanes), x, second)
        weight = load(columns.weights, block * n, lanes)
        ratio = divide(first, value)
        d1 = multiply_add(weight, ratio, d1)
        d2 = multiply_add(weight, subtract(divide(second, value), multiply(ratio, ratio)), d2)
    return sum_lanes(d1), sum_lanes(d2)


@uncounted
def newton(theta, lengths, of, steps, columns, numbers, growth, shape):
    """The length in set `of`, of a branch's (K,), at which the slope vanishes: Newton's steps from where it
    is, between lengths of known slope.

    Upwards it goes by the length or by its logarithm, whichever is farther: where one pattern needs a change
    the log-likelihood is like log t, and a step by t merely doubles it.
    """
    low, high, t = SHORTEST, LONGEST, lengths[of]
    for _ in range(steps):
        d1, d2 = slopes(theta, lengths, of, t, columns, numbers, growth, shape)
        if d1 > 0.0:
            low = t
            new = t - d1 / d2 if d2 < 0.0 else t
            bend = d2 * t + d1  # the second derivative by log t is t times this
            new = max(new, t * math.exp(min(-d1 / bend, 2.0)) if bend < 0.0 else 4.0 * t)
            new = new if new < high else (high if high == LONGEST else math.sqrt(t * high))
        else:
            high = t
            new = max(t - d1 / d2 if d2 < 0.0 else 0.25 * t, 0.1 * t)
            new = new if new > low else (low if low == SHORTEST else math.sqrt(t * low))
        moved = abs(new - t)
        t = new
        if moved <= _ENOUGH * t + 1e-9:
            break
    return t


@uncounted
def write_theta(h, back, columns, numbers, messages, room, shape):
    """θ at the branch of h, of all patterns."""
    lanes, n, size = shape.lanes, len(shape.lanes), shape.categories * shape.states
    for block in range(shape.blocks):
        power = own_column(h, block, back, columns, messages, room.first, shape)
        square = columns.part[block] * size * shape.states
        column_product(numbers.into, square, room.first, 0, room.second, 0, shape)
        power = add(power, own_column(back[h], block, back, columns, messages, room.first, shape))
        at = block * size * n
        column_product(numbers.left, square, room.first, 0, room.theta, at, shape)
        factor = beside_invariant(power, block, columns, lanes)
        for k in range(size):
            x = multiply(load(room.theta, at + k * n, lanes), load(room.second, k * n, lanes))
            store(room.theta, at + k * n, multiply(x, factor))


@uncounted
def fit_branch(h, back, lengths, columns, numbers, messages, room, shape):
    """The best lengths of the branch of h, set by set, all else as it is, and its matrix."""
    write_theta(h, back, columns, numbers, messages, room, shape)
    for k in range(lengths.shape[1]):
        t = newton(room.theta, lengths[h], k, _STEPS, columns, numbers, room.growth, shape)
        lengths[h, k] = lengths[back[h], k] = t
    matrix = max(h, back[h]) * shape.parts * shape.categories * shape.states * shape.states
    write_matrix(numbers, lengths[h], 1.0, shape, messages.whole, matrix)


@uncounted
def sweep(root, todo, back, lengths, columns, numbers, messages, room, shape):
    """Lengths (half-edge, K) once, from the branch of half-edge root (looking at a tip) outwards and back:
    each is fitted with the messages as they have become. todo, of half-edges that look at the tip: FIT, PASS
    where only others behind are fitted, LEAVE where none is. Messages that look at the tip and all matrices
    are there, and are up to date afterwards."""
    stack, depth, tips = room.stack, 1, shape.tips
    stack[0], stack[1] = root, 0
    while depth:
        h, stage = stack[2 * depth - 2], stack[2 * depth - 1]
        if todo[h] == LEAVE:
            depth -= 1
            continue
        if stage == 0 and todo[h] == FIT:
            fit_branch(h, back, lengths, columns, numbers, messages, room, shape)
        looks = back[h] if stage == 0 and h >= tips else h
        if stage == 0 or stage == 2:
            for block in range(shape.blocks):
                hand_on(looks, block, back, columns, messages, room.first, shape, WHOLE)
        if h < tips or stage == 2:
            depth -= 1
            continue
        a, b = beside(h, tips)
        stack[2 * depth - 1] = stage + 1
        stack[2 * depth], stack[2 * depth + 1] = back[a] if stage == 0 else back[b], 0
        depth += 1
