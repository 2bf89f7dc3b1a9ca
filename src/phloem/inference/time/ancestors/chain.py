"""What the compiled loop of a chain asks: values of proposals, their slopes, and to take them over."""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.random import below
from phloem.inference.time.ancestors.branches import (
    log_of_branch,
    log_of_root,
    slope_of_branch,
)
from phloem.inference.time.ancestors.categories import draw_categories, recount
from phloem.inference.time.ancestors.redraw import (
    CHANGED,
    KIND_OF,
    LENGTHS,
    REDRAWN,
    TOPOLOGY,
    WHOLE_TREE,
    about,
    draw,
    find_redrawn,
    forget,
    sums,
    take_drawn,
)
from phloem.inference.time.ancestors.sequences import SWEEP, TAKE, VALUE
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
from phloem.pruning.cpu.storage import float64_at, int64_at

# of what is asked: which of these; whether the model is another, the topology, and everything; whether slopes
# are of the proposal, and by the model's numbers, too
WHAT, OTHER_MODEL, REORDERED, EVERYTHING, PROPOSED, PARAMETERS = range(6)


@uncounted
def answer(memory, before, now, cell, rng, asked, by_length):
    """One question. before, now: redraw.Lineages of the accepted state and of the proposal; cell: rows of the
    tables of numbers, addresses and ways down of the cell that holds the model; by_length: (N,), written.

    VALUE: the log-likelihood of the proposal, of another topology such that its difference from the accepted
    one is that of the sums over the ancestors whose neighbours changed; nan where these are too many. TAKE:
    take the proposal over; its log-likelihood. SLOPES: derivatives; 0. SWEEP: draw asked[REORDERED] ancestors
    of the accepted state, one after the other, and with EVERYTHING the categories of all sites; the
    log-likelihood."""
    what, numbers, addresses = asked[WHAT], cell[0], cell[1]
    n, slots = cell_numbers(numbers), int64_at(addresses[SLOT], (2,))
    other = asked[OTHER_MODEL] != 0
    if what == VALUE:
        slots[1] = 1 - slots[0] if other else slots[0]
        return value(memory, before, now, cell_model(n, addresses, slots[1]), other, asked)
    if what == TAKE:
        slots[0] = slots[1]
        return taken(memory, before, now, cell_model(n, addresses, slots[0]), rng)
    if what == SWEEP:
        return swept(memory, before, cell_model(n, addresses, slots[0]), rng, asked)
    used = slots[1] if asked[PROPOSED] != 0 else slots[0]
    model, parameters = cell_model(n, addresses, used), asked[PARAMETERS] != 0
    by_rate = float64_at(cell[2][D_RATES], (n.categories,))
    slopes(memory, now, model, by_length, by_rate, parameters)
    if parameters:
        of_model(memory, n, model, cell[2])
    return 0.0


@uncounted
def value(memory, before, now, model, other, asked):
    """VALUE."""
    notes, root = memory.notes, now.parent.shape[0] - 1
    forget(memory)
    if asked[EVERYTHING] != 0:
        recount(memory, now)
    if asked[EVERYTHING] != 0 or other:
        notes[KIND_OF] = WHOLE_TREE
        for x in range(root):
            memory.new_value[x] = of_branch(memory, model, x, now.lengths[x])
        memory.new_value[root] = log_of_root(memory.shares[root], model)
        return total_of(memory.new_value)
    notes[KIND_OF], change = LENGTHS, 0.0
    if asked[REORDERED] != 0:
        if not find_redrawn(memory, before, now):
            return math.nan
        notes[KIND_OF] = TOPOLOGY if notes[REDRAWN] > 0 else LENGTHS
    size = 0
    for x in range(root):
        if now.lengths[x] == before.lengths[x] or memory.at[x] >= 0 or memory.at[now.parent[x]] >= 0:
            continue
        memory.changed[size] = x
        memory.new_value[x] = of_branch(memory, model, x, now.lengths[x])
        change += memory.new_value[x] - memory.value[x]
        size += 1
    notes[CHANGED] = size
    if notes[KIND_OF] == TOPOLOGY:
        old, new = sums(memory, model, before, now)
        change += new - old
    return total_of(memory.value) + change


@uncounted
def of_branch(memory, model, x, length):
    """Log-likelihood of the branch above x."""
    return log_of_branch(memory.counts[x], memory.several[x] != 0, model, length, memory.room[0, 0])


@uncounted
def total_of(values):
    """Their sum."""
    total = 0.0
    for x in range(values.shape[0]):
        total += values[x]
    return total


@uncounted
def taken(memory, before, now, model, rng):
    """TAKE."""
    notes, root = memory.notes, now.parent.shape[0] - 1
    if notes[KIND_OF] == WHOLE_TREE:
        for x in range(root + 1):
            memory.value[x] = memory.new_value[x]
        return total_of(memory.value)
    for k in range(notes[CHANGED]):
        x = memory.changed[k]
        memory.value[x] = memory.new_value[x]
    if notes[KIND_OF] == TOPOLOGY:
        draw(rng, memory, model, before, now)
        take_drawn(memory, model, now)
        memory.value[root] = log_of_root(memory.shares[root], model)
        forget(memory)
    return total_of(memory.value)


@uncounted
def swept(memory, tree, model, rng, asked):
    """SWEEP."""
    root = tree.parent.shape[0] - 1
    forget(memory)
    if asked[EVERYTHING] != 0:
        draw_categories(rng, memory, model, tree)
        for x in range(root):
            memory.value[x] = of_branch(memory, model, x, tree.lengths[x])
    for _ in range(asked[REORDERED]):
        memory.redrawn[0, 0] = memory.n_tips + below(rng, memory.n_tips - 1)
        about(memory, tree, tree, 1)
        sums(memory, model, tree, tree)
        draw(rng, memory, model, tree, tree)
        take_drawn(memory, model, tree)
        forget(memory)
    memory.value[root] = log_of_root(memory.shares[root], model)
    return total_of(memory.value)


@uncounted
def slopes(memory, tree, model, by_length, by_rate, parameters):
    """d log-likelihood / d length of every branch, / d rate of every category (C,), and with parameters of the
    model's matrix: its share in the eigenbasis, in memory.by_eigen."""
    memory.by_eigen[:] = 0.0
    by_rate[:] = 0.0
    by_eigen = memory.by_eigen if parameters else memory.by_eigen[:0]
    for x in range(tree.parent.shape[0] - 1):
        several = memory.several[x] != 0
        by_length[x] = slope_of_branch(
            memory.counts[x], several, model, tree.lengths[x], memory.room, by_eigen, by_rate
        )
    by_length[tree.parent.shape[0] - 1] = 0.0


@uncounted
def of_model(memory, n, model, down):
    """Derivatives by the model, where the likelihood's way down leaves its own: d/dQ_ij = Σ_kl V⁻¹_ki M_kl
    V_jl with M = memory.by_eigen, and by the root's frequencies."""
    by_q = float64_at(down[D_RATE_MATRIX], (4, 4))
    for i in range(4):
        for j in range(4):
            total = 0.0
            for k in range(4):
                for l in range(4):
                    total += model.left[0, k, i] * memory.by_eigen[k, l] * model.right[0, j, l]
            by_q[i, j] = total
    root, at_root = memory.shares.shape[0] - 1, float64_at(down[D_FREQUENCIES], (n.processes, 4))
    constant = float64_at(down[D_INVARIANT], (5,))
    for i in range(4):
        sites = 0
        for c in range(memory.shares.shape[1]):
            sites += memory.shares[root, c, i]
        at_root[0, i] = sites / model.root_frequencies[0, i]
    for i in range(5):
        constant[i] = 0.0
    by_weight = float64_at(down[D_WEIGHTS], (n.categories,))
    for c in range(n.categories):
        sites = 0
        for i in range(4):
            sites += memory.shares[root, c, i]
        by_weight[c] = sites / model.weights[c]
