"""The second look at a regraft: the three lengths around the new place fitted, one after the other."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.directed import beside_invariant, log_sites, own_column
from phloem.pruning.cpu.directed_lengths import Room, newton
from phloem.pruning.cpu.directed_regrafts import (
    BEFORE,
    LEVEL,
    OUT,
    PRUNED,
    Walk,
    go,
    set_out,
)
from phloem.pruning.cpu.lanes import add, load, multiply, multiply_add, store, sum_lanes, zeros
from phloem.pruning.cpu.pattern_lanes import column_product, spread

_STEPS = 4  # of Newton's; a look, not a fit: what it finds is fitted when it is done


class Star(NamedTuple):
    """Three branches that meet: to the gap's side, beyond, to the subtree. ends, sent (3, block, category,
    state, lane): the column at the far end in the eigenbasis, and what it sends to the middle. powers (block,
    lane). lengths (3, K). path: rows of a walk. none: an empty array."""

    ends: np.ndarray
    sent: np.ndarray
    powers: np.ndarray
    lengths: np.ndarray
    path: np.ndarray
    none: np.ndarray


class Looks(NamedTuple):
    """Second looks: found (n, 4) log-likelihood and the three lengths of each, of several sets of lengths
    (n, 4, K), where the K terms of the log-likelihood are to be added; sites (n, padded patterns), or of no
    rows where nobody wants them."""

    found: np.ndarray
    sites: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """(n,) log-likelihoods, of all sets of lengths."""
        return self.found[:, 0] if self.found.ndim == 2 else self.found[:, 0].sum(-1)


class Desk(NamedTuple):
    """What one thread works in."""

    room: Room
    walk: Walk
    star: Star


@uncounted
def write_ends(row, steps, back, columns, numbers, messages, walk, room, star, shape):
    """What is at the three far ends."""
    lanes, n, size = shape.lanes, len(shape.lanes), shape.categories * shape.states
    count, step = 0, row
    while step >= 0:
        star.path[count] = step
        count += 1
        step = steps[step, BEFORE]
    last = steps[row]
    span = shape.blocks * size * n
    for block in range(shape.blocks):
        at, square = block * size * n, columns.part[block] * size * shape.states
        set_out(last, block, back, columns, messages, walk, shape)
        power = zeros(walk.near, lanes)
        for k in range(count - 1, -1, -1):
            on = steps[star.path[k]]
            power = go(on, block, back, columns, messages, messages.whole, walk, shape)
            if k > 0:
                to = on[LEVEL] * size * n
                for i in range(size):
                    store(walk.arrival, to + i * n, load(walk.across, i * n, lanes))
                store(walk.arrival_power, on[LEVEL] * n, power)
        column_product(numbers.left, square, walk.near, 0, star.ends, at, shape)
        power = add(power, own_column(back[last[OUT]], block, back, columns, messages, room.first, shape))
        column_product(numbers.left, square, room.first, 0, star.ends, span + at, shape)
        power = add(power, own_column(back[last[PRUNED]], block, back, columns, messages, room.first, shape))
        column_product(numbers.left, square, room.first, 0, star.ends, 2 * span + at, shape)
        store(star.powers, block * n, power)


@uncounted
def send(k, columns, numbers, room, star, shape):
    """sent[k] = R exp(Λ t_k) ends[k]."""
    lanes, n, size = shape.lanes, len(shape.lanes), shape.categories * shape.states
    for e in range(shape.parts * size):
        room.growth[e] = math.exp(numbers.values[e] * star.lengths[k, numbers.sets[e]])
    for block in range(shape.blocks):
        at, own = (k * shape.blocks + block) * size * n, columns.part[block] * size
        for e in range(size):
            x = load(star.ends, at + e * n, lanes)
            store(room.first, e * n, multiply(spread(room.growth, own + e, lanes), x))
        column_product(numbers.right, own * shape.states, room.first, 0, star.sent, at, shape)


@uncounted
def fit_end(k, columns, numbers, room, star, shape):
    """The best lengths of the branch k of the three."""
    lanes, n, size = shape.lanes, len(shape.lanes), shape.categories * shape.states
    for block in range(shape.blocks):
        a = (((k + 1) % 3) * shape.blocks + block) * size * n
        b = (((k + 2) % 3) * shape.blocks + block) * size * n
        for i in range(0, size * n, n):
            store(room.first, i, multiply(load(star.sent, a + i, lanes), load(star.sent, b + i, lanes)))
        square = columns.part[block] * size * shape.states
        column_product(numbers.into, square, room.first, 0, room.second, 0, shape)
        factor = beside_invariant(load(star.powers, block * n, lanes), block, columns, lanes)
        own, at = (k * shape.blocks + block) * size * n, block * size * n
        for i in range(0, size * n, n):
            x = multiply(load(room.second, i, lanes), load(star.ends, own + i, lanes))
            store(room.theta, at + i, multiply(x, factor))
    for of in range(star.lengths.shape[1]):
        t = newton(room.theta, star.lengths[k], of, _STEPS, columns, numbers, room.growth, shape)
        star.lengths[k, of] = t
    send(k, columns, numbers, room, star, shape)


@uncounted
def fit_insertion(row, steps, back, lengths, columns, numbers, messages, desk, shape):
    """Fits the three lengths, which star.lengths then holds: of the branch on the gap's side, beyond, and of
    the subtree."""
    room, star = desk.room, desk.star
    write_ends(row, steps, back, columns, numbers, messages, desk.walk, room, star, shape)
    for of in range(star.lengths.shape[1]):
        star.lengths[0, of] = star.lengths[1, of] = 0.5 * lengths[steps[row, OUT], of]
        star.lengths[2, of] = lengths[steps[row, PRUNED], of]
    for k in (0, 1):
        send(k, columns, numbers, room, star, shape)
    for k in (2, 0, 1):  # each is sent again when it is fitted
        fit_end(k, columns, numbers, room, star, shape)


@uncounted
def value_there(columns, numbers, room, star, shape, sites):
    """The log-likelihood where the three branches meet; that of every pattern into sites, if it has room."""
    lanes, n, size = shape.lanes, len(shape.lanes), shape.categories * shape.states
    result, span = 0.0, shape.blocks * size * n
    for block in range(shape.blocks):
        total, at, own = zeros(room.first, lanes), block * size * n, columns.part[block] * size
        for k in range(size):
            x = multiply(load(star.sent, at + k * n, lanes), load(star.sent, span + at + k * n, lanes))
            x = multiply(x, load(star.sent, 2 * span + at + k * n, lanes))
            total = multiply_add(spread(numbers.start, own + k, lanes), x, total)
        log = log_sites(total, load(star.powers, block * n, lanes), block, columns, lanes)
        if len(sites):
            store(sites, block * n, log)
        result += sum_lanes(multiply(log, load(columns.weights, block * n, lanes)))
    return result


@uncounted
def fit_insertions(rows, steps, back, lengths, columns, numbers, messages, desk, shape, looks):
    """looks: of each of these rows of steps; found (n, 4, K), the log-likelihood in its first column."""
    star = desk.star
    for i in range(len(rows)):
        fit_insertion(rows[i], steps, back, lengths, columns, numbers, messages, desk, shape)
        sites = looks.sites[i] if len(looks.sites) else star.none
        looks.found[i, 0, 0] = value_there(columns, numbers, desk.room, star, shape, sites)
        for k in range(3):
            for of in range(star.lengths.shape[1]):
                looks.found[i, 1 + k, of] = star.lengths[k, of]
