"""What a subtree costs in changes wherever it is put back: Fitch's rule in bits, on the branches of an
unrooted tree (compiled/unrooted.py). For the proposals of moves, which weigh places by it.

A block of characters lies plane by plane, 64 characters a word (records.ParsimonyRoom), so every loop runs
along words. Fitch 1971; the two ends of a branch and the subtree's own set give the cost exactly (Ronquist
1998, Cladistics 14:387).
"""

from __future__ import annotations

import math

import numpy as np

from phloem.clustering.cpu.site_counts import popcount
from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.unrooted import others


@uncounted
def join(room, x, y, out):
    """Row out: what both rows x and y allow, else what either does."""
    sets, common = room.sets, room.common
    for k in range(room.blocks.shape[0]):
        first, n_words, n_states = room.blocks[k, 0], room.blocks[k, 1], room.blocks[k, 2]
        _common(sets, common, x, y, first, n_words, n_states)
        for s in range(n_states):
            at = first + s * n_words
            for w in range(n_words):
                a, b = sets[x, at + w], sets[y, at + w]
                sets[out, at + w] = (a & b) | ((a | b) & ~common[w])


@uncounted
def price_of_meeting(room, x, y):
    """What the changes cost that the sets of rows x and y ask for at a branch between them."""
    return meeting(room, x, y)[0]


@uncounted
def meeting(room, x, y):
    """What the changes cost that the sets of rows x and y ask for at a branch between them, and their
    number."""
    total, number = 0.0, np.int64(0)
    for k in range(room.blocks.shape[0]):
        first, n_words, n_states = room.blocks[k, 0], room.blocks[k, 1], room.blocks[k, 2]
        _common(room.sets, room.common, x, y, first, n_words, n_states)
        changes = np.int64(0)
        for w in range(n_words):
            changes += popcount(~room.common[w])
        total += room.price[k] * changes
        number += room.copies[k] * changes
    return total, number


@uncounted
def _common(sets, common, x, y, first, n_words, n_states):
    """Bits of characters for which rows x and y allow a state in common."""
    for w in range(n_words):
        common[w] = sets[x, first + w] & sets[y, first + w]
    for s in range(1, n_states):
        at = first + s * n_words
        for w in range(n_words):
            common[w] |= sets[x, at + w] & sets[y, at + w]


@uncounted
def insertion_costs(adjacency, n_tips, v, s, room):
    """Cut s off internal node v, and v out from between its other neighbours a and b; what it costs to put
    them back into every branch of what is left.

    Fills, of places first … end - 1, room.node, the far ends of the branches as seen from the gap, those
    behind a before those behind b, and room.cost; room.above (N,) by node: the near ends. The place of a is
    the gap itself, which the place of b names once more, at an infinite cost. Returns first, the place of b,
    and end.
    """
    node, above, cost, before = room.node, room.above, room.cost, adjacency.shape[0]
    a, b = others(adjacency, v, s)
    first = _walk(adjacency, n_tips, s, v, node, above, 0)
    place_b = _walk(adjacency, n_tips, a, v, node, above, first)
    end = _walk(adjacency, n_tips, b, v, node, above, place_b)
    for i in range(end - 1, -1, -1):  # row x: what lies behind x
        if node[i] >= n_tips:
            c, d = others(adjacency, node[i], above[node[i]])
            join(room, c, d, node[i])
    spare = before - 1  # the root's row, which nothing else wants
    for i in range(first, end):  # row before + x: what lies before x, without the subtree
        x = node[i]
        up, row = above[x], b if x == a else a
        if up != v:
            c, d = others(adjacency, up, x)
            sibling, row = d if c == above[up] else c, before + x
            come = before + up
            if up == a:
                come = b
            elif up == b:
                come = a
            join(room, come, sibling, row)
        join(room, row, x, spare)
        cost[i] = price_of_meeting(room, spare, s)
    cost[place_b] = math.inf
    return first, place_b, end


@uncounted
def _walk(adjacency, n_tips, x, up, node, above, size):
    """List x and what lies behind it, as seen from up, parents before children, from place size on; returns
    the place after the last."""
    node[size], above[x] = x, up
    at, size = size, size + 1
    while at < size:
        x = node[at]
        at += 1
        if x >= n_tips:
            c, d = others(adjacency, x, above[x])
            above[c], above[d] = x, x
            node[size], node[size + 1] = c, d
            size += 2
    return size


@uncounted
def log_sum_without(cost, first, end, left_out):
    """log Σ exp(-cost) over places first … end - 1 but one; -inf where there are no others."""
    least = math.inf
    for i in range(first, end):
        if i != left_out and cost[i] < least:
            least = cost[i]
    if least == math.inf:
        return -math.inf
    total = 0.0
    for i in range(first, end):
        if i != left_out:
            total += math.exp(least - cost[i])
    return math.log(total) - least


@uncounted
def drawn_place(cost, first, end, left_out, log_total, u):
    """A place but one, with probability exp(-cost - log_total); u: uniform."""
    found, total = -1, 0.0
    for i in range(first, end):
        if i != left_out and cost[i] < math.inf:
            found = i
            total += math.exp(-cost[i] - log_total)
            if total >= u:
                break
    return found
