"""Nearest-neighbour interchange to splits that the chains have had, at lengths that go with them."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.known_splits import fit_length, name_splits, place_of, seen_share
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.mcmc.compiled.unrooted import place, replace
from phloem.inference.mcmc.move_table import TOPOLOGY, Move

UNSEEN = 0.01  # added to every split's frequency


def learnt_nni(p):
    """One of all 2 (T - 3) interchanges, with probability w / Σ w, w = f' / (f + f'): f is the frequency, in
    what the chains have had while moves adapt, of the split that goes, f' of the one that comes, UNSEEN added
    to each. Its branch and the four beside it get the lengths that they have beside the new split
    (compiled/known_splits.fit_length), a function with an inverse. Log Hastings ratio: log w / Σ w of the way
    back less that of the way there, plus the log of the Jacobian (splits learnt in burn-in: Meyer 2021, Syst.
    Biol. 70:1015; w: Zanella 2020, J. Am. Stat. Assoc. 115:852)."""
    below, weight = p.splits.below, p.splits.weight
    name_splits(p.splits, p.order)
    total = weigh(p.splits)
    u, x, side = uniform(p.rng) * total, -1, 0
    for y in range(p.n_tips, p.left.shape[0] - 1):
        for i in range(2):
            if u > 0.0 and weight[y, i] > 0.0:
                x, side, u = y, i, u - weight[y, i]
    up, old, ratio = p.adjacency[x, 0], below[x], -math.log(weight[x, side] / total)
    interchange(p, x, up, side)
    total = weigh(p.splits)
    return ratio + math.log(weight[x, side] / total) + fit_lengths(p, x, up, old)


@uncounted
def weigh(splits):
    """Fill weight[x, i] of the interchanges in which the left (i = 0) or right child of x changes
    places with the sibling of x, 0 where there is none; returns their sum."""
    left, right, below, weight, total = splits.left, splits.right, splits.below, splits.weight, 0.0
    root = left.shape[0] - 1
    n_tips = root // 2 + 1
    for x in range(n_tips, root):
        weight[x, 0], weight[x, 1] = 0.0, 0.0
    for up in range(n_tips, root):
        for side in range(2):
            x, sibling = (right[up], left[up]) if side else (left[up], right[up])
            if x < n_tips:
                continue
            old = UNSEEN + seen_share(splits, below[x])
            for i in range(2):
                then = below[sibling] + below[left[x] if i else right[x]]
                new = UNSEEN + seen_share(splits, then)
                weight[x, i] = new / (old + new)
                total += weight[x, i]
    return total


@uncounted
def interchange(p, x, up, side):
    """A child of x, the right one where side is 1, changes places with the sibling of x, with their branches,
    in both views of the tree."""
    adjacency, edge, left, right = p.adjacency, p.edge, p.left, p.right
    a, c = right[x] if side else left[x], left[up] if right[up] == x else right[up]
    branch_a, branch_c = edge[x, place(adjacency, x, a)], edge[up, place(adjacency, up, c)]
    replace(adjacency, edge, a, x, up, branch_a)
    replace(adjacency, edge, c, up, x, branch_c)
    replace(adjacency, edge, x, a, c, branch_c)
    replace(adjacency, edge, up, c, a, branch_a)
    if side:
        right[x] = c
    else:
        left[x] = c
    if left[up] == x:
        right[up] = a
    else:
        left[up] = a
    p.splits.below[x] = p.splits.below[left[x]] + p.splits.below[right[x]]


@uncounted
def fit_lengths(p, x, up, old):
    """The branch of x and the four beside it, from beside the split with key old; the log of the Jacobian.
    Branches have the numbers of their nodes, that above the node beside tip 0 has that of tip 0."""
    ratio, below, new = 0.0, p.splits.below, p.splits.below[x]
    for i in range(5):
        y = x
        if i == 1 or i == 2:
            y = p.left[x] if i == 1 else p.right[x]
        elif i == 3:
            y = p.right[up] if p.left[up] == x else p.left[up]
        elif i == 4:
            y = 0 if up == p.beside else up
        before = place_of(p.splits, old, old if y == x else below[y])
        after = place_of(p.splits, new, below[y])
        ratio += fit_length(p.splits.sums, p.lengths, (p.low, p.high), y, before, after)
    return ratio


MOVE = Move("learnt_nni", TOPOLOGY, learnt_nni, 5, splits=True)
