"""The score of a pruned subtree in every branch of a cell's tree: one walk outward of a batch of patterns.

Vectors, and where they come from, are those of cell_branches.py.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.pruning.cpu.cell_branches import (
    below_branch,
    matrices_for,
    multiplied,
    rescale,
    start_above,
    through_branch,
    times_message,
    view_of,
)
from phloem.pruning.cpu.cell_records import INVARIANT_STATES, cell_numbers
from phloem.pruning.cpu.storage import uint8_at

INSERTION_ENTRIES = 1_000_000
"""Of the vectors above all branches, of one batch: some 8 MB."""


@uncounted
def mark_pruned(tree, subtree, changed):
    """1 for everything above the subtree, 2 for itself and what is below it, else 0."""
    root = len(tree.parent) - 1
    for k in range(root, -1, -1):
        x = tree.order[k]
        changed[x] = 2 if x == subtree or (tree.parent[x] >= 0 and changed[tree.parent[x]] == 2) else 0
    x = tree.parent[subtree]
    while x >= 0:
        changed[x] = 1
        x = tree.parent[x]


@uncounted
def times_pruned(view, x, p, j, row, powers, room):
    """row ∘= the message of node x without the subtree. j: place of pattern p in its batch."""
    if room.changed[x] != 1:
        times_message(view, x, p, row, powers)
        return
    for c in range(len(powers)):
        powers[c] += room.inside_power[x, j, c]
    for i in range(len(row)):
        row[i] *= room.inside[x, j, i]


@uncounted
def below_pruned(view, tree, x, p, j, row, powers, subtree, room):
    """row = what is at node x from below, without its branch and the subtree."""
    if room.changed[x] != 1:
        below_branch(view, tree, x, p, row, powers)
        return
    for c in range(len(powers)):
        powers[c] = 0
    for i in range(len(row)):
        row[i] = 1.0
    for side in range(2):
        child = tree.right[x] if side else tree.left[x]
        if child != subtree:
            times_pruned(view, child, p, j, row, powers, room)


@uncounted
def walk_pruned(view, tree, subtree, begin, rows, room):
    """Messages without the subtree on its way to the root, and what lies above every branch then, of a batch
    of patterns. room.whole: P of the pendant branch, whose message takes the subtree's place in
    room.above."""
    root, states = len(tree.parent) - 1, view.n.states
    for j in range(rows):
        p, x = begin + j, tree.parent[subtree]
        below_branch(view, tree, subtree, p, room.row, room.above_power[subtree, j])
        multiplied(room.whole, room.row, room.above[subtree, j], True)
        while x != root:
            below_pruned(view, tree, x, p, j, room.row, room.inside_power[x, j], subtree, room)
            rescale(room.row, room.inside_power[x, j], states)
            through_branch(view, x, room.row, room.inside[x, j], True)
            x = tree.parent[x]
        for k in range(root - 1, -1, -1):
            x = tree.order[k]
            if room.changed[x] == 2:
                continue
            above, row, powers = tree.parent[x], room.above[x, j], room.above_power[x, j]
            if above == root:
                start_above(view, row, powers)
            else:
                through_branch(view, above, room.above[above, j], row, False)
                for c in range(len(powers)):
                    powers[c] = room.above_power[above, j, c]
            beside = tree.right[above] if tree.left[above] == x else tree.left[above]
            if beside != subtree:
                times_pruned(view, beside, p, j, row, powers, room)
            rescale(row, powers, states)


@uncounted
def insertion_sites(numbers, addresses, tree, which, subtree, pendant, begin, room, site_log):
    """Log-likelihoods of patterns from `begin` on with the subtree moved into the middle of every
    branch, on a pendant branch of lengths (K,). site_log: (N, rows), out; nan for branches that the pruned
    tree does not have.

    The branch of the subtree's sibling and that of its parent are one in the pruned tree, under the sibling's
    number: put back there, in its middle.
    """
    n, view = cell_numbers(numbers), view_of(numbers, addresses, tree, which)
    parent, root, states = tree.parent[subtree], 2 * n.tips - 2, n.states
    allowed = uint8_at(addresses[INVARIANT_STATES], (n.patterns, n.states))
    mark_pruned(tree, subtree, room.changed)
    for c in range(n.categories):
        room.times[c] = pendant[view.model.length_class[c]]
    matrices_for(view, room.times, room.whole, room.growth)
    rows = site_log.shape[1]
    walk_pruned(view, tree, subtree, begin, rows, room)
    for x in range(root + 1):
        if x in (root, parent) or room.changed[x] == 2:
            for j in range(rows):
                site_log[x, j] = math.nan
            continue
        joined = tree.parent[x] == parent
        top, lengths = parent if joined else x, view.matrices.lengths
        for c in range(n.categories):
            k = view.model.length_class[c]
            room.times[c] = 0.5 * (lengths[k, x] + (lengths[k, parent] if joined else 0.0))
        matrices_for(view, room.times, room.half, room.growth)
        for j in range(rows):
            p = begin + j
            below_pruned(view, tree, x, p, j, room.row, room.powers, subtree, room)
            multiplied(room.half, room.row, room.other, True)
            multiplied(room.half, room.above[top, j], room.third, False)
            best = np.int64(0 if view.model.invariant > 0 else -(1 << 40))
            for c in range(n.categories):
                room.powers[c] += room.above_power[top, j, c] + room.above_power[subtree, j, c]
                best = max(best, room.powers[c])
            total = 0.0
            for c in range(n.categories):
                scale = math.ldexp(1.0, max(room.powers[c] - best, -1100))
                for i in range(c * states, (c + 1) * states):
                    total += scale * room.other[i] * room.third[i] * room.above[subtree, j, i]
            share = 0.0
            for s in range(states if view.model.invariant > 0 else 0):
                share += view.model.invariant_frequencies[s] * allowed[p, s]
            total += math.ldexp(view.model.invariant * share, max(-best, -1100))
            site_log[x, j] = math.log(total) + best * math.log(2.0) if total > 0.0 else -math.inf
