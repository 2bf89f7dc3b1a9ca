"""What every proposal of the cold chain cost and moved while moves adapt: the evidence from which their
weights are learnt (inference/mcmc/weights.py)."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.model import model_differs
from phloem.inference.mcmc.records import (
    JUMP_UNIT,
    OF_MANY,
    OF_OTHERS,
    OF_POSITIVE,
    OF_REAL,
    OF_SIMPLEX,
    OF_TOPOLOGY,
    PROPOSALS,
    STATISTICS,
    WORK,
)
from phloem.pruning.cpu.cell_records import COLUMNS, SIZE, cell_at, cell_numbers
from phloem.pruning.cpu.storage import int64_at

LARGEST = 2.0**12  # squared jump that counts: sums of whole units stay below 2^53
ALIKE = 1  # work of a proposal on a device, where one costs what another does

# Work in nanoseconds, roughly, of a core with AVX-512 (docs/experiments.md): of a generation; of a cell; of a
# node, a branch and a pattern in it; of a word of characters; of a taxon whose splits are weighed; and of a
# product, of columns and of matrices.
GENERATION, CELL, NODE, BRANCH, SITE, WORD, WEIGHED = 1500, 300, 40, 60, 8, 2, 50
COLUMN_PRODUCT, MATRIX_PRODUCT = 0.17, 0.1


@uncounted
def note_proposal(data, state, shared, scratch, h, move, evaluated, taken):
    """Add a proposal of chain h, just settled, to what is known of its move: the work of its cells here on a
    core, in whole units, and its jumps if it was taken. evaluated: its likelihood was."""
    new = state.slot[h] if taken else 1 - state.slot[h]
    work = 0
    if data.first_cell == 0:  # processes that share the chain count this once
        words = scratch.parsimony.sets.shape[1]
        work = GENERATION + WORD * (data.moves.parsimony[move] * data.n_tips * words)
        work += WEIGHED * data.moves.splits[move] * data.n_tips
    if evaluated and data.use_data:
        for cell in range(data.numbers.shape[1]):
            work += math.floor(_work_of_cell(data, state, shared, scratch, (h, cell, new), move))
    note_jump(data, state, scratch, h, move, taken, work)


@uncounted
def _work_of_cell(data, state, shared, scratch, place, move):
    """What a cell did for a proposal: of nodes with something new below, columns times products; of branches
    with another length, a matrix."""
    h, cell, new = place
    old, part = 1 - new, data.part_of[cell]
    left, right, order = state.left[h, new], state.right[h, new], state.order[h, new]
    model = model_differs(data.recipes, part, state.values[h, old], state.values[h, new])
    n = cell_numbers(data.numbers[h, cell])
    a = data.addresses[h, cell]
    at, size = cell_at(n, a), int64_at(a[SIZE], (4 * n.tips - 2,))
    products, fresh, lengths = n.categories * n.padded * n.padded, scratch.stack, state.lengths[h]
    total = CELL + SITE * n.patterns
    for x in order:
        changed = model
        for g in range(n.first_lengths, n.first_lengths + n.length_classes):
            changed = changed or lengths[old, g, x] != lengths[new, g, x]
        renewed = changed
        if x >= data.n_tips:
            renewed = renewed or fresh[left[x]] != 0 or fresh[right[x]] != 0
            renewed = renewed or (data.moves.on[move] == OF_TOPOLOGY and shared.moved[h, x] != 0)
        fresh[x] = renewed
        if changed:
            total += BRANCH + MATRIX_PRODUCT * products * n.padded
        if renewed and data.n_tips <= x < 2 * data.n_tips - 2:
            total += NODE + COLUMN_PRODUCT * products * size[at[0, COLUMNS, x]]
    return total


@uncounted
def note_jump(data, state, scratch, h, move, taken, work):
    """Add a proposal of chain h, just settled, and its work."""
    own, n_statistics = state.jumps[move], state.jumps.shape[1] - STATISTICS - len(state.watched)
    own[PROPOSALS] += 1
    own[WORK] += work
    if not taken:
        return
    new, d, at = state.slot[h], n_statistics - data.n_tips - 1, STATISTICS
    before, after, joint = state.values[h, 1 - new], state.values[h, new], data.joint
    for b in range(joint.first.shape[0]):
        if joint.support[b] == OF_OTHERS:
            continue
        first, last = joint.first[b], joint.first[b] + joint.size[b] - 1
        bounds, simplex = joint.bounds[b], joint.support[b] in (OF_SIMPLEX, OF_MANY)
        for i in range(first, last + 1 - simplex):
            x, y = before[i], after[i]
            if x != y or (simplex and before[last] != after[last]):
                if simplex:
                    x, y = math.log(x / before[last]), math.log(y / after[last])
                elif joint.support[b] == OF_POSITIVE:
                    x, y = math.log(x), math.log(y)
                elif joint.support[b] != OF_REAL:
                    x = math.log((x - bounds[0]) / (bounds[1] - x))
                    y = math.log((y - bounds[0]) / (bounds[1] - y))
                own[at] += _squared(y - x)
            at += 1
    total, total_then = lengths_of(state, h, 1 - new, -1), lengths_of(state, h, new, -1)
    if total != total_then:
        own[STATISTICS + d - 1] += _squared(math.log(total_then / total))
    of_topology = data.moves.on[move] == OF_TOPOLOGY
    for x in range(data.n_tips if of_topology else 2 * data.n_tips - 2):
        jump = lengths_of(state, h, new, x) / total_then - lengths_of(state, h, 1 - new, x) / total
        own[STATISTICS + d + min(x, data.n_tips)] += _squared(jump)
    if of_topology:
        _note_splits(data, state, scratch.keys, h, own[STATISTICS + n_statistics :])


@uncounted
def lengths_of(state, h, slot, x):
    """The sum over all sets of the lengths of node x, or of all nodes for x = -1."""
    total = 0.0
    for g in range(state.lengths.shape[2]):
        for y in range(x if x >= 0 else 0, x + 1 if x >= 0 else state.lengths.shape[3]):
            total += state.lengths[h, slot, g, y]
    return total


@uncounted
def _note_splits(data, state, keys, h, changes):
    """Add 1 to every watched split that only one of chain h's two trees has."""
    for s in range(2):
        left, right, order = state.left[h, s], state.right[h, s], state.order[h, s]
        for x in order:
            if x >= data.n_tips:
                keys[s, x] = keys[s, left[x]] + keys[s, right[x]]
    for s in range(2):
        for x in range(data.n_tips, 2 * data.n_tips - 2):
            key, both = keys[s, x], False
            for y in range(data.n_tips, 2 * data.n_tips - 2):
                both = both or keys[1 - s, y] == key
            if not both:
                for i in range(len(state.watched)):
                    if state.watched[i] == key:
                        changes[i] += 1


@uncounted
def _squared(jump):
    """In whole units, whose sums do not depend on their order."""
    return math.floor(min(jump * jump, LARGEST) / JUMP_UNIT)
