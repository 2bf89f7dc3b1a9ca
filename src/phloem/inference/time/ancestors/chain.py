"""What the compiled loop of a chain asks: values of proposals, their slopes, and to take them over."""

from __future__ import annotations

import math

from phloem.hardware.numba_compile import merged, uncounted
from phloem.hardware.numba_records import by_reference
from phloem.inference.mcmc.compiled.random import below
from phloem.inference.time.ancestors.branches import log_of_branch, log_of_root, slope_of_branch
from phloem.inference.time.ancestors.categories import draw_categories, recount
from phloem.inference.time.ancestors.draws import draw, take_drawn
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
    sums,
)
from phloem.inference.time.ancestors.sequences import (
    FIRST,
    KINDS,
    LACKING,
    MOST,
    N_CATEGORIES,
    N_SITES,
    N_TIPS,
    N_WORDS,
    ONE,
    SITE_RATES,
    SLOPES,
    TAKE,
    Memory,
    Near,
)
from phloem.pruning.cpu.cell_records import (
    D_FREQUENCIES,
    D_INVARIANT,
    D_RATE_MATRIX,
    D_RATES,
    D_WEIGHTS,
    SLOT,
    cell_model,
    cell_numbers,
)
from phloem.pruning.cpu.storage import float64_at, int32_at, int64_at, uint8_at, uint64_at

# of what is asked: which question; whether the model is another, the topology, and everything; whether slopes
# are of the proposal, and by the model's numbers, too
WHAT, OTHER_MODEL, REORDERED, EVERYTHING, PROPOSED, PARAMETERS = range(6)


@merged
def memory_at(t):
    """The record of a table (sequences.table_of)."""
    n, n_sites, w, c, a = 2 * t[N_TIPS] - 1, t[N_SITES], t[N_WORDS], t[N_CATEGORIES], FIRST
    near = Near(
        int64_at(t[a + 19], (6,)), int64_at(t[a + 20], (2, MOST)), int64_at(t[a + 21], (2, MOST, 3)),
        int64_at(t[a + 22], (n,)), int64_at(t[a + 23], (2 * MOST + 1,)),
        float64_at(t[a + 24], (2, n, c, 4, 4)), float64_at(t[a + 25], (c, 4)),
        uint64_at(t[a + 26], (KINDS,)), float64_at(t[a + 27], (KINDS, 2, MOST, 4)),
        float64_at(t[a + 28], (KINDS, 2)), uint8_at(t[a + 29], (n,)), int64_at(t[a + 30], (MOST,)),
        float64_at(t[a + 31], (2,)), int64_at(t[a + 32], (LACKING,)),
    )  # fmt: skip
    return Memory(
        uint64_at(t[a], (n, w)), uint8_at(t[a + 1], (n_sites,)), int64_at(t[a + 2], (n, c, 4)),
        int32_at(t[a + 3], (n, c, 4, 16)), uint8_at(t[a + 4], (n,)), float64_at(t[a + 5], (n,)),
        float64_at(t[a + 6], (n,)), int64_at(t[a + 7], (n,)), uint64_at(t[a + 8], (MOST, w)),
        int64_at(t[a + 9], (n_sites,)), int64_at(t[a + 10], (c, 4, 1 << LACKING)),
        float64_at(t[a + 11], (3, 4, 4)), float64_at(t[a + 12], (MOST,)), float64_at(t[a + 13], (4, 4)),
        uint64_at(t[a + 14], (w,)), uint64_at(t[a + 15], (w,)), float64_at(t[a + 16], (n, c, 4)),
        float64_at(t[a + 17], (n_sites if c > 1 else 0, c)), float64_at(t[a + 18], (c, 4)), near,
    )  # fmt: skip


@uncounted
def answer(table, before, now, cell, rng, asked, by_length):
    """One question. table: of the memory; before, now: sequences.Lineages of the accepted state and of the
    proposal; cell: rows of the tables of numbers, addresses and ways down of the cell that holds the model;
    by_length: (N,), written.

    VALUE: the log-likelihood of the proposal, of another topology such that its difference from the
    accepted one, times its power, is that of the sums of powers over the ancestors whose neighbours changed;
    -inf where these are too many. ONE: the same of a proposal to draw one ancestor anew, for which before and
    now are one tree. TAKE: take over what was proposed; the log-likelihood. SLOPES: derivatives; 0.
    SITE_RATES: draw the categories of all sites; 0, and the value of EVERYTHING is to be asked for next."""
    what, numbers, addresses, n_tips = asked[WHAT], cell[0], cell[1], table[N_TIPS]
    memory, n = by_reference(memory_at(table)), cell_numbers(numbers)
    slots = int64_at(addresses[SLOT], (2,))
    if what == TAKE:
        slots[0] = slots[1]
    elif what != SLOPES:
        slots[1] = 1 - slots[0] if asked[OTHER_MODEL] != 0 else slots[0]
    slot = slots[0] if what == SLOPES and asked[PROPOSED] == 0 else slots[1]
    model = by_reference(cell_model(n, addresses, slot))
    if what == TAKE:
        return taken(memory, n_tips, before, now, model, rng)
    if what == SITE_RATES:
        draw_categories(rng, memory, n_tips, model, before)
        return 0.0
    if what == SLOPES:
        by_rate, parameters = float64_at(cell[2][D_RATES], (n.categories,)), asked[PARAMETERS] != 0
        slopes(memory, now, model, by_length, by_rate, parameters)
        if parameters:
            of_model(memory, n, model, cell[2])
        return 0.0
    return value(memory, n_tips, before, now, model, rng, asked)


@uncounted
def value(memory, n_tips, before, now, model, rng, asked):
    """VALUE and ONE."""
    near, root, change, size = memory.near, now.parent.shape[0] - 1, 0.0, 0
    notes, one, whole = near.notes, asked[WHAT] == ONE, asked[EVERYTHING] != 0 or asked[OTHER_MODEL] != 0
    forget(near)
    if asked[EVERYTHING] != 0:
        recount(memory, n_tips, now)
    if one:
        near.redrawn[0, 0] = n_tips + below(rng, n_tips - 1)
        notes[REDRAWN] = 1
    elif asked[REORDERED] != 0 and not whole and not find_redrawn(near, n_tips, before, now):
        notes[REDRAWN] = 0
        return -math.inf
    notes[KIND_OF] = WHOLE_TREE if whole else TOPOLOGY if notes[REDRAWN] > 0 else LENGTHS
    if notes[REDRAWN] > 0:
        set_order(near, n_tips, before, now)
    right, left, values, room = model.right[0], model.left[0], model.values[0], memory.room[0, 0]
    for x in range(0 if one else root):
        same = now.lengths[x] == before.lengths[x]
        if not whole and (same or near.at[x] >= 0 or near.at[now.parent[x]] >= 0):
            continue
        memory.changed[size] = x
        several = memory.several[x] != 0
        memory.new_value[x] = log_of_branch(
            memory.counts[x], several, right, left, values, model.rates, now.lengths[x], room
        )
        change += memory.new_value[x] - memory.value[x]
        size += 1
    notes[CHANGED] = size
    if whole:
        memory.new_value[root] = log_of_root(memory.shares[root], model.root_frequencies[0], model.weights)
        return total_of(memory.new_value)
    if notes[KIND_OF] == TOPOLOGY:
        change += sums(memory, n_tips, model, before, now) / near.power[0]
    return total_of(memory.value) + change


@uncounted
def total_of(values):
    """Their sum."""
    total = 0.0
    for x in range(values.shape[0]):
        total += values[x]
    return total


@uncounted
def taken(memory, n_tips, before, now, model, rng):
    """TAKE."""
    near, root = memory.near, now.parent.shape[0] - 1
    for k in range(near.notes[CHANGED]):
        x = memory.changed[k]
        memory.value[x] = memory.new_value[x]
    if near.notes[KIND_OF] == WHOLE_TREE:
        memory.value[root] = memory.new_value[root]
    if near.notes[KIND_OF] == TOPOLOGY:
        draw(rng, memory, n_tips)
        take_drawn(memory, n_tips, model, now)
        memory.value[root] = log_of_root(memory.shares[root], model.root_frequencies[0], model.weights)
        forget(near)
    return total_of(memory.value)


@uncounted
def slopes(memory, tree, model, by_length, by_rate, parameters):
    """d log-likelihood / d length of every branch, / d rate of every category (C,), and with parameters of
    the model's matrix: its share in the eigenbasis, in memory.by_eigen."""
    memory.by_eigen[:] = 0.0
    by_rate[:] = 0.0
    by_eigen, root = memory.by_eigen[: 4 if parameters else 0], tree.parent.shape[0] - 1
    for x in range(root):
        by_length[x] = slope_of_branch(
            memory.counts[x], memory.several[x] != 0, model, tree.lengths[x], memory.room, by_eigen, by_rate
        )
    by_length[root] = 0.0


@uncounted
def of_model(memory, n, model, down):
    """Derivatives by the model, where the likelihood's way down leaves its own: d/dQ_ij = Σ_kl V⁻¹_ki M_kl
    V_jl with M = memory.by_eigen, and by the root's frequencies and the weights of categories."""
    by_q = float64_at(down[D_RATE_MATRIX], (4, 4))
    for i in range(4):
        for j in range(4):
            total = 0.0
            for k in range(4):
                for l in range(4):
                    total += model.left[0, k, i] * memory.by_eigen[k, l] * model.right[0, j, l]
            by_q[i, j] = total
    of_root(memory.shares[memory.shares.shape[0] - 1], n, model, down)


@uncounted
def of_root(shares, n, model, down):
    """Derivatives by the root's frequencies and the weights of categories, of how many of the root's sites
    have which state, shares (C, states or more)."""
    at_root = float64_at(down[D_FREQUENCIES], (n.processes, n.states))
    constant = float64_at(down[D_INVARIANT], (n.states + 1,))
    by_weight = float64_at(down[D_WEIGHTS], (n.categories,))
    constant[:] = 0.0
    at_root[0, :] = 0.0
    by_weight[:] = 0.0
    for c in range(n.categories):
        for i in range(n.states):
            at_root[0, i] += shares[c, i] / model.root_frequencies[0, i]
            by_weight[c] += shares[c, i] / model.weights[c]
