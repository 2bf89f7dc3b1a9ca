"""The three resolutions of an inner branch, each with the five lengths around it fitted.

The subtrees at the ends of the four branches beside an inner one can be paired in three ways, which differ by
one interchange of neighbours. Their log-likelihoods by pattern are what tests of a branch resample (Anisimova
and Gascuel 2006; Guindon et al. 2010).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.directed import beside, beside_invariant, log_sites, own_column, write_matrix
from phloem.pruning.cpu.directed_insertions import send
from phloem.pruning.cpu.directed_lengths import Room, newton
from phloem.pruning.cpu.lanes import add, load, multiply, multiply_add, store, sum_lanes, zeros
from phloem.pruning.cpu.pattern_lanes import column_product, spread

_STEPS = 6  # of Newton's, a length and round
_ROUNDS = 8
_ENOUGH = 0.01  # log units: a round that gains less is the last
INNER = 4  # the place of the inner branch among the five lengths


class Resolutions(NamedTuple):
    """Of n inner branches, first the tree's own: values (n, 3) log-likelihoods; lengths (n, 3, 5), of K
    sets (n, 3, 5, K), of the four branches beside it and its own; sites (n, 3, padded patterns)."""

    values: np.ndarray
    lengths: np.ndarray
    sites: np.ndarray


class Quartet(NamedTuple):
    """room: of one thread. ends, sent (4, block, category, state, lane): the column at the far end of each
    branch in the eigenbasis, and what it sends to its node. across (block, category, state, lane): what comes
    over the inner branch. powers (block, lane). lengths (5, K). matrix: P of the inner branch."""

    room: Room
    ends: np.ndarray
    sent: np.ndarray
    across: np.ndarray
    powers: np.ndarray
    lengths: np.ndarray
    matrix: np.ndarray


@uncounted
def write_corners(h, back, columns, numbers, messages, quartet, shape):
    """What lies beyond the branches beside h, and those beside the other end of its branch."""
    lanes, n, size = shape.lanes, len(shape.lanes), shape.categories * shape.states
    a, b = beside(h, shape.tips)
    c, d = beside(back[h], shape.tips)
    span = shape.blocks * size * n
    for block in range(shape.blocks):
        power, square = zeros(quartet.room.first, lanes), columns.part[block] * size * shape.states
        for k in range(4):
            corner = back[a] if k == 0 else back[b] if k == 1 else back[c] if k == 2 else back[d]
            power = add(power, own_column(corner, block, back, columns, messages, quartet.room.first, shape))
            column_product(
                numbers.left, square, quartet.room.first, 0, quartet.ends, k * span + block * size * n, shape
            )
        store(quartet.powers, block * n, power)


@uncounted
def join_two(i, j, block, quartet, shape):
    """room.first = sent[i] ∘ sent[j] of a block."""
    lanes, n, size = shape.lanes, len(shape.lanes), shape.categories * shape.states
    at, other = (i * shape.blocks + block) * size * n, (j * shape.blocks + block) * size * n
    for k in range(0, size * n, n):
        x = multiply(load(quartet.sent, at + k, lanes), load(quartet.sent, other + k, lanes))
        store(quartet.room.first, k, x)


@uncounted
def cross(i, j, columns, numbers, quartet, shape):
    """across = what branches i and j send over the inner one."""
    n, size = len(shape.lanes), shape.categories * shape.states
    write_matrix(numbers, quartet.lengths[INNER], 1.0, shape, quartet.matrix, 0)
    for block in range(shape.blocks):
        join_two(i, j, block, quartet, shape)
        square = columns.part[block] * size * shape.states
        column_product(quartet.matrix, square, quartet.room.first, 0, quartet.across, block * size * n, shape)


@uncounted
def put_theta(block, x, x_at, columns, quartet, shape):
    """theta of a block = room.second ∘ x, with the block's powers."""
    lanes, n, size = shape.lanes, len(shape.lanes), shape.categories * shape.states
    factor = beside_invariant(load(quartet.powers, block * n, lanes), block, columns, lanes)
    at = block * size * n
    for k in range(0, size * n, n):
        y = multiply(load(quartet.room.second, k, lanes), load(x, x_at + k, lanes))
        store(quartet.room.theta, at + k, multiply(y, factor))


@uncounted
def fit_lengths_of(k, columns, numbers, quartet, shape):
    """Those of branch k, set by set, by theta."""
    room, lengths = quartet.room, quartet.lengths
    for of in range(lengths.shape[1]):
        lengths[k, of] = newton(room.theta, lengths[k], of, _STEPS, columns, numbers, room.growth, shape)


@uncounted
def fit_corner(k, beside_k, columns, numbers, quartet, shape):
    """The best lengths of branch k, whose node the branch beside it and the inner one share."""
    lanes, n, size = shape.lanes, len(shape.lanes), shape.categories * shape.states
    for block in range(shape.blocks):
        at, other = block * size * n, (beside_k * shape.blocks + block) * size * n
        for i in range(0, size * n, n):
            x = multiply(load(quartet.sent, other + i, lanes), load(quartet.across, at + i, lanes))
            store(quartet.room.first, i, x)
        square = columns.part[block] * size * shape.states
        column_product(numbers.into, square, quartet.room.first, 0, quartet.room.second, 0, shape)
        own = (k * shape.blocks + block) * size * n
        put_theta(block, quartet.ends, own, columns, quartet, shape)
    fit_lengths_of(k, columns, numbers, quartet, shape)
    send(k, columns, numbers, quartet.room, quartet, shape)


@uncounted
def fit_inner(i, j, k, l, columns, numbers, quartet, shape):
    """The best lengths of the branch between the node of branches i and j and that of k and l."""
    size = shape.categories * shape.states
    for block in range(shape.blocks):
        square = columns.part[block] * size * shape.states
        join_two(i, j, block, quartet, shape)
        column_product(numbers.into, square, quartet.room.first, 0, quartet.room.second, 0, shape)
        join_two(k, l, block, quartet, shape)
        column_product(numbers.left, square, quartet.room.first, 0, quartet.across, 0, shape)
        put_theta(block, quartet.across, 0, columns, quartet, shape)
    fit_lengths_of(INNER, columns, numbers, quartet, shape)


@uncounted
def site_values(i, j, columns, numbers, quartet, shape, sites):
    """Log-likelihoods of the patterns into sites, and their weighted sum; across is of the other two."""
    lanes, n, size = shape.lanes, len(shape.lanes), shape.categories * shape.states
    result = 0.0
    for block in range(shape.blocks):
        join_two(i, j, block, quartet, shape)
        total, at, own = zeros(quartet.room.first, lanes), block * size * n, columns.part[block] * size
        for k in range(size):
            x = multiply(load(quartet.room.first, k * n, lanes), load(quartet.across, at + k * n, lanes))
            total = multiply_add(spread(numbers.start, own + k, lanes), x, total)
        log = log_sites(total, load(quartet.powers, block * n, lanes), block, columns, lanes)
        store(sites, block * n, log)
        result += sum_lanes(multiply(log, load(columns.weights, block * n, lanes)))
    return result


@uncounted
def fit_resolution(h, partner, back, lengths, columns, numbers, quartet, shape, sites):
    """The log-likelihood with corner 0 and corner `partner` together, all five lengths fitted; by pattern
    into sites. The corners are written."""
    a, b = beside(h, shape.tips)
    c, d = beside(back[h], shape.tips)
    for of in range(lengths.shape[1]):
        quartet.lengths[0, of], quartet.lengths[1, of] = lengths[a, of], lengths[b, of]
        quartet.lengths[2, of], quartet.lengths[3, of] = lengths[c, of], lengths[d, of]
        quartet.lengths[INNER, of] = lengths[h, of]
    k = 1 if partner != 1 else 2
    l = 6 - partner - k
    for corner in range(4):
        send(corner, columns, numbers, quartet.room, quartet, shape)
    value = -np.inf
    for _ in range(_ROUNDS):
        before = value
        fit_inner(0, partner, k, l, columns, numbers, quartet, shape)
        cross(k, l, columns, numbers, quartet, shape)
        fit_corner(0, partner, columns, numbers, quartet, shape)
        fit_corner(partner, 0, columns, numbers, quartet, shape)
        cross(0, partner, columns, numbers, quartet, shape)
        fit_corner(k, l, columns, numbers, quartet, shape)
        fit_corner(l, k, columns, numbers, quartet, shape)
        cross(k, l, columns, numbers, quartet, shape)
        value = site_values(0, partner, columns, numbers, quartet, shape, sites)
        if value - before < _ENOUGH:
            break
    return value


@uncounted
def fit_resolutions(branches, back, lengths, columns, numbers, messages, quartet, shape, found):
    """found: Resolutions of the branches of some half-edges, inner at both ends. Resolution r pairs corner 0
    with corner 1 + r: corners 0 and 1 are beside the half-edge, 2 and 3 beside the one at the other end."""
    for i in range(len(branches)):
        h = branches[i]
        write_corners(h, back, columns, numbers, messages, quartet, shape)
        for r in range(3):
            sites = found.sites[i, r]
            value = fit_resolution(
                h, r + 1, back, lengths, columns, numbers, quartet, shape, sites
            )  # fmt: skip
            found.values[i, r] = value
            for k in range(5):
                for of in range(lengths.shape[1]):
                    found.lengths[i, r, k, of] = quartet.lengths[k, of]
