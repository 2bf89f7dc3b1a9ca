"""A subtree is cut off and put where parsimony finds good places for it, and good times."""

from __future__ import annotations

import math
from typing import NamedTuple

from phloem.density.clocks import INDEPENDENT, STRICT
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.parsimony import (
    drawn_place,
    join,
    log_sum_without,
    meeting,
)
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.time.compiled.density import log_spread
from phloem.inference.time.compiled.edit import (
    graft,
    log_range,
    parent_is_held,
    prune,
    random_subtree,
    top_of_places,
)
from phloem.inference.time.move_table import Move

PIECES = 4  # of a branch, times within which are as good as the one in the middle
SOFT = 0.4  # what a change costs in every second proposal, of its price
LOOSE, CLOCKLIKE = 1.0, 1e6  # shapes of changes where rates depend on each other, and where they are alike


class Changes(NamedTuple):
    """How many changes a branch gets that lasts a time: rate, expected in a unit of time; shape, of the
    negative binomial, the smaller the wider. price: what one more on the tree costs, of its usual price."""

    rate: float
    shape: float
    price: float


def parsimony_spr(p):
    """A subtree i, uniformly, goes onto a branch x of the tree without it that reaches above i, at a height
    in one of PIECES equal shares of the range there, with a probability w proportional to exp(-price ·
    changes of the tree then) · the probability of as many changes on i's branch as parsimony finds, if it
    lasts as long as in the middle of the share · the share's length; not onto its own branch. Within the
    share the height is uniform, above the root exponential with mean tuning times the height it starts from,
    of equal probability in each share. Of MANY taxa mostly the tree below a cut through all branches at a
    height, uniform below the root, is all that is looked at: that part which has the old place, and so the
    new one. The way back begins with the same rest and subtree, so log Hastings ratio is log (Σ_but_own w /
    Σ_but_x w) + log (density there / here). After MrBayes' ParsSPR for unrooted trees (Zhang, Huelsenbeck and
    Ronquist 2020, Syst. Biol. 69:1016); times by the clock are phloem's own."""
    i = random_subtree(p)
    if parent_is_held(p, i):
        return -math.inf
    before = p.heights[p.parent[i]]
    q, s = prune(p, i)
    top = top_of_places(p, s)
    if top < 0:
        return -math.inf
    j, height, ratio = drawn_graft(p, i, q, s, before, top)
    if j < 0:
        return -math.inf
    graft(p, i, q, j, height)
    return ratio


@uncounted
def drawn_graft(p, i, q, s, before, top):
    """Where i and its parent q go, which were above s at a height before, at or below node top: a branch, -1
    where there is none, the height, and the log Hastings ratio."""
    room, own = p.parsimony, -1
    changes = changes_of(p, 1.0 if uniform(p.rng) < 0.5 else SOFT)
    n = places(p, i, q, top)
    for k in range(n):
        weigh_times(p, i, k, changes)
        if p.edges[k] == s:
            own = k
    total = log_sum_without(room.cost, 0, n, own)
    k = drawn_place(room.cost, 0, n, own, total, uniform(p.rng))
    if k < 0:
        return -1, 0.0, -math.inf
    height = drawn_height(p, i, k, changes)
    ratio = log_density(p, i, own, before, changes) - log_density(p, i, k, height, changes)
    return p.edges[k], height, ratio + total - log_sum_without(room.cost, 0, n, k)


@uncounted
def changes_of(p, price):
    """By the clocks' mean rates, each as its parts have columns, and by their largest spread."""
    rate, shape = 0.0, LOOSE if p.clock not in INDEPENDENT and p.clock != STRICT else CLOCKLIKE
    for c in range(p.rates.shape[0]):
        rate += p.values[p.rates[c]] * p.parsimony.per_length[c]
        if p.clock in INDEPENDENT:
            s = log_spread(p.clock, p.values[p.spreads[c]])
            shape = min(1.0 / math.expm1(s * s), shape)
    return Changes(rate, shape, price)


@uncounted
def base_of(p, i, x):
    """Where the range for i's parent on x's branch begins."""
    return max(p.heights[i], p.heights[x])


@uncounted
def height_at(p, i, x, share):
    """The height below which a share of the range lies, 0 < share < 1."""
    base = base_of(p, i, x)
    if p.parent[x] < 0:
        return base - math.log1p(-share) * p.tuning * base
    return base + share * (p.heights[p.parent[x]] - base)


@uncounted
def piece_at(p, i, x, height):
    """The piece of the range that a height is in."""
    share, base = 0.0, base_of(p, i, x)
    if p.parent[x] < 0:
        share = -math.expm1(-(height - base) / (p.tuning * base))
    else:
        share = (height - base) / (p.heights[p.parent[x]] - base)
    return min(int(share * PIECES), PIECES - 1)


@uncounted
def fit_of_piece(p, i, k, piece, changes):
    """Log probability of the changes at place k but for what does not depend on times (price_of has it)."""
    time = height_at(p, i, p.edges[k], (piece + 0.5) / PIECES) - p.heights[i]
    share = changes.rate * time / changes.shape
    number = p.parsimony.node[k]
    return number * math.log(share) - (number + changes.shape) * math.log1p(share)


@uncounted
def fits(p, i, k, changes):
    """Fill p.spots with what the pieces of place k are worth, the best 1; returns its logarithm and their
    sum."""
    most, total = -math.inf, 0.0
    for piece in range(PIECES):
        p.spots[piece] = fit_of_piece(p, i, k, piece, changes)
        most = max(most, p.spots[piece])
    for piece in range(PIECES):
        p.spots[piece] = math.exp(p.spots[piece] - most)
        total += p.spots[piece]
    return most, total


@uncounted
def weigh_times(p, i, k, changes):
    """Take into the cost of place k what the times there are worth."""
    room, x = p.parsimony, p.edges[k]
    number, shape = room.node[k], changes.shape
    room.price_of[k] *= changes.price
    room.price_of[k] -= math.lgamma(number + shape) - math.lgamma(number + 1.0)
    most, total = fits(p, i, k, changes)
    room.cost[k] = room.price_of[k] - most - math.log(total / PIECES) - log_range(p, i, x, base_of(p, i, x))


@uncounted
def drawn_height(p, i, k, changes):
    """A height on the branch of place k, by what its pieces are worth."""
    total = fits(p, i, k, changes)[1]
    left, piece = uniform(p.rng) * total, 0
    while piece < PIECES - 1 and left > p.spots[piece]:
        left -= p.spots[piece]
        piece += 1
    return height_at(p, i, p.edges[k], (piece + uniform(p.rng)) / PIECES)


@uncounted
def log_density(p, i, k, height, changes):
    """Of place k and a height there, but for the sum over places."""
    x = p.edges[k]
    within = log_range(p, i, x, base_of(p, i, x)) - log_range(p, i, x, height)
    return within - p.parsimony.price_of[k] + fit_of_piece(p, i, k, piece_at(p, i, x, height), changes)


@uncounted
def places(p, i, q, top):
    """Branches of the tree without i and its parent q, at or below node top, that reach above i: into
    p.edges; what the tree below top costs with i there into p.parsimony.price_of but for a constant, and how
    many changes are on i's branch then into node. Returns the number of places."""
    room, last = p.parsimony, p.heights.shape[0]
    spare, inside, n, member = 2 * last - 1, room.above, 0, p.stack
    for at in range(last - 1, -1, -1):
        x = p.order[at]
        member[x] = x != q and (x in (top, i) or (p.parent[x] >= 0 and member[p.parent[x]] == 1))
    for x in p.order:  # row x: what lies below x
        if member[x] == 1 and p.left[x] >= 0:
            join(room, p.left[x], p.right[x], x)
    for at in range(last - 1, -1, -1):  # row last + x: what lies above x, without i
        x = p.order[at]
        up = p.parent[x]
        reaches = x == top or (up >= 0 and p.heights[up] > p.heights[i])
        inside[x] = x == top or (member[x] == 1 and reaches and x != q and up != q and inside[up] == 1)
        if inside[x] == 0:
            continue
        row = x
        if x != top:
            beside, row = p.right[up] if p.left[up] == x else p.left[up], spare
            above = beside
            if up != top:
                above = last + x
                join(room, last + up, beside, above)
            else:
                _copy(room, beside, last + x)
            join(room, above, x, spare)
        p.edges[n] = x
        room.price_of[n], number = meeting(room, row, i)
        room.node[n] = number + room.singles[i]
        n += 1
    return n


@uncounted
def _copy(room, x, out):
    for w in range(room.sets.shape[1]):
        room.sets[out, w] = room.sets[x, w]


MOVE = Move("parsimony_spr", parsimony_spr, 16, tuning=0.2, needs="characters")
