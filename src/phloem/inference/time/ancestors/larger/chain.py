"""What the compiled loop of a chain asks where ancestors of many states are sampled: the same questions as of
nucleotides (ancestors/chain.py), with the same answers."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import merged, uncounted
from phloem.inference.time.ancestors.branches import log_of_root
from phloem.inference.time.ancestors.chain import (
    EVERYTHING,
    OTHER_MODEL,
    PARAMETERS,
    PROPOSED,
    REORDERED,
    WHAT,
    total_of,
)
from phloem.inference.time.ancestors.larger.branches import (
    log_of_branch,
    set_basis,
    set_shares,
    set_tables,
)
from phloem.inference.time.ancestors.larger.categories import draw_categories
from phloem.inference.time.ancestors.larger.memory import memory_at
from phloem.inference.time.ancestors.larger.region import sums, take_drawn
from phloem.inference.time.ancestors.larger.single import draw_one
from phloem.inference.time.ancestors.larger.slopes import slopes, slopes_of_model
from phloem.inference.time.ancestors.redraw import (
    CHANGED,
    KIND_OF,
    LENGTHS,
    REDRAWN,
    TOPOLOGY,
    WHOLE_TREE,
    find_redrawn,
    forget,
    set_order,
)
from phloem.inference.time.ancestors.sequences import ONE, SITE_RATES, SLOPES, TAKE
from phloem.pruning.cpu.cell_records import D_RATES, SLOT, cell_model, cell_numbers
from phloem.pruning.cpu.storage import float64_at, int64_at


@uncounted
def answer_coded(table, before, now, cell, rng, asked, by_length):
    """One question, as ancestors/chain.answer has it; ONE draws an ancestor at once, and leaves TAKE nothing
    to do."""
    what, numbers, addresses = asked[WHAT], cell[0], cell[1]
    memory, n, slots = memory_at(table), cell_numbers(numbers), int64_at(addresses[SLOT], (2,))
    if what == TAKE:
        slots[0] = slots[1]
    elif what != SLOPES:
        slots[1] = 1 - slots[0] if asked[OTHER_MODEL] != 0 else slots[0]
    slot = slots[0] if what == SLOPES and asked[PROPOSED] == 0 else slots[1]
    model = cell_model(n, addresses, slot)
    if what == TAKE:
        return taken(rng, memory, model, slot, now)
    if what == SLOPES:
        parameters, by_rate = asked[PARAMETERS] != 0, float64_at(cell[2][D_RATES], (n.categories,))
        sides = memory.side if asked[PROPOSED] == 0 else memory.now_side
        slopes(memory, model, slot, now, sides, by_length, by_rate, parameters)
        if parameters:
            slopes_of_model(memory, n, model, cell[2])
        return 0.0
    begin(memory)
    if what == SITE_RATES:
        draw_categories(rng, memory, model, slot, before)
        return 0.0
    if what == ONE:
        draw_one(rng, memory, model, slot, before)
        return total_of(memory.value)
    return value(memory, model, slot, before, now, asked)


@uncounted
def begin(memory):
    """Forget what a proposal left that was not taken."""
    forget(memory.near)
    for k in range(memory.near.notes[CHANGED]):
        x = memory.changed[k]
        memory.now_side[x] = memory.side[x]
    memory.near.notes[CHANGED] = 0
    memory.near.notes[KIND_OF] = LENGTHS


@merged
def value(memory, model, slot, before, now, asked):
    """VALUE."""
    near, root, n_tips, change = memory.near, now.parent.shape[0] - 1, memory.known.shape[0], 0.0
    whole = asked[EVERYTHING] != 0 or asked[OTHER_MODEL] != 0
    if whole:
        set_basis(memory, model, slot)
    if asked[EVERYTHING] != 0:
        for x in range(root + 1):
            set_shares(memory, x)
    if asked[REORDERED] != 0 and not whole:
        if not find_redrawn(near, n_tips, before, now):
            near.notes[REDRAWN] = 0
            return -math.inf
        set_order(near, n_tips, before, now)
    near.notes[KIND_OF] = WHOLE_TREE if whole else TOPOLOGY if near.notes[REDRAWN] > 0 else LENGTHS
    for x in range(root):
        if not whole and now.lengths[x] == before.lengths[x]:
            continue
        memory.changed[near.notes[CHANGED]] = x
        near.notes[CHANGED] += 1
        memory.now_side[x] = 1 - memory.side[x]
        set_tables(memory, model, slot, x, memory.now_side[x], now.lengths[x])
        memory.new_value[x] = memory.value[x]
        if whole or (near.at[x] < 0 and near.at[now.parent[x]] < 0):
            above = now.parent[x]
            memory.new_value[x] = log_of_branch(memory, slot, memory.now_side[x], x, above, near.sites)
            change += memory.new_value[x] - memory.value[x]
    if whole:
        memory.new_value[root] = log_of_root(memory.shares[root], model.root_frequencies[0], model.weights)
        return total_of(memory.new_value)
    if near.notes[KIND_OF] == TOPOLOGY:
        change += sums(memory, model, slot, before, now)
    return total_of(memory.value) + change


@merged
def taken(rng, memory, model, slot, now):
    """TAKE."""
    near, root, kind = memory.near, now.parent.shape[0] - 1, memory.near.notes[KIND_OF]
    for k in range(near.notes[CHANGED]):
        x = memory.changed[k]
        memory.side[x] = memory.now_side[x]
        memory.value[x] = memory.new_value[x]
    near.notes[CHANGED] = 0
    if kind == WHOLE_TREE:
        memory.value[root] = memory.new_value[root]
    if kind == TOPOLOGY:
        take_drawn(rng, memory, model, slot, now)
        forget(near)
    near.notes[KIND_OF] = LENGTHS
    return total_of(memory.value)
