"""Metropolis-coupled chains whose likelihood lies on a device. Moves, priors, acceptance and random numbers
are those of run.py.

Every thread has some of the chains, its group, with forests of their own on one device or several: it
proposes for all of them, has them evaluated in a launch each and settles them, while devices work for other
threads as well. A part of the data is one cell, or, where it is large, several ranges of its columns on a
grid that depends on the data alone, whose log-likelihoods are added in order, wherever they were found. Of
cells that another process has, the loop asks its caller.

A thread waits for another only where a chain of one is to swap temperatures with a chain of the other. A
chain's numbers do not depend on its company, so they do not depend on the number of threads.

Helpers stay here from one call to the next, since calling them takes longer than some generations, and go
when nothing was to do for a while.
"""

from __future__ import annotations

import math

import numpy as np

from phloem.hardware.numba_compile import uncounted
from phloem.inference.mcmc.compiled.jumps import ALIKE, note_jump
from phloem.inference.mcmc.compiled.model import leads, model_differs, set_model
from phloem.inference.mcmc.compiled.propose import begin, propose
from phloem.inference.mcmc.compiled.random import uniform
from phloem.inference.mcmc.compiled.run import TUNE, chain_prior, judge, swap_chains, tune_move
from phloem.inference.mcmc.records import COMPILED, KIND, LIKELIHOOD, OF_TOPOLOGY, PRIOR
from phloem.pruning.cpu.cell_records import INVARIANT, SLOT, cell_model, cell_numbers
from phloem.pruning.cpu.chain_evaluation import await_values
from phloem.pruning.cpu.chain_evaluation import begin as begin_evaluation
from phloem.pruning.cpu.chain_state import MODEL, N_BRANCHES, N_EDITS
from phloem.pruning.cpu.chain_tables import chains_at, change_at, device_at, trees_at
from phloem.pruning.cpu.chain_versions import READY, settle_version
from phloem.pruning.cpu.schedule import exchange, fetch_add, give_way, read_shared
from phloem.pruning.cpu.storage import float64_at, int64_at

FINISHED, MODELS_WAIT, COLUMNS_WAIT, STOPPED, AWAY = -1, -2, -3, -4, -5
PROPOSE, EVALUATE, COLLECT, SETTLE = range(4)  # where advance_group goes on

# Words of ChainShared.crew, each in a cache line of its own. GOAL: generations that all chains are to have
# done since the run began here; BASE: of them, those before the first row of ChainShared.pair; TASK; LEAVE: 1
# sends helpers home; from FIRST_THERE on, 1 for every thread that is at work or waits for some.
GOAL, BASE, TASK, LEAVE, FIRST_THERE = range(0, 40, 8)
_PATIENCE = 4_000  # looks, some microseconds
_IDLE = 20_000  # times that a helper offers its core to others, some milliseconds, before it goes


@uncounted
def work(data, state, shared, scratch, forests, group, resume):
    """A thread's part of what shared.crew asks for.

    forests: (F, ·) the rows of the group's GpuForests (chain_tables.py), one for cells of one layout on one
    device, whose chains are those of the group, each cell of each by itself (place_of). group: (thread, its
    first chain, the one after its last). resume: PROPOSE; EVALUATE, after the models of the chains whose
    shared.waits is 1 were set; COLLECT, after the forests evaluated what they could not from here; SETTLE,
    after shared.cell_values got those of other processes.

    Thread 0 answers FINISHED when all threads have; others wait for the next goal, and answer AWAY where none
    comes. Any thread: MODELS_WAIT, COLUMNS_WAIT, STOPPED where another has failed, or a status of
    chain_evaluation.
    """
    status = advance_group(data, state, shared, scratch, forests, group, resume)
    while status == FINISHED:
        if group[0] == 0:
            for h in range(len(state.slot)):
                if not await_shared(shared.swapped, h, shared.crew[GOAL], shared.stop):
                    status = STOPPED
            break
        if not stays(shared.crew, shared.swapped, group):
            return AWAY
        status = advance_group(data, state, shared, scratch, forests, group, PROPOSE)
    return status


@uncounted
def advance_group(data, state, shared, scratch, forests, group, resume):
    """Take the chains of a group on to the goal."""
    _, first, end = group
    phase = resume
    while read_shared(shared.swapped, first) < read_shared(shared.crew, GOAL):
        if phase == PROPOSE:
            waiting = False
            for h in range(first, end):
                propose_chain(data, state, shared, scratch, forests, (h, h - first))
                waiting = waiting or shared.waits[h] != 0
            if waiting:
                return MODELS_WAIT
        if phase < COLLECT:
            status = evaluate_cells(forests)
            if status != READY:
                return status
        if phase < SETTLE:
            for h in range(first, end):
                for cell in range(len(shared.fields)):
                    value = cell_value(forests, shared.fields, cell, h - first)
                    shared.cell_values[h, data.first_cell + cell] = value
            if len(shared.fields) < shared.cell_values.shape[1]:
                return COLUMNS_WAIT
        g = shared.swapped[first]
        for h in range(first, end):
            value = 0.0
            for cell in range(shared.cell_values.shape[1]):
                value += shared.cell_values[h, cell]
            settle_chain(data, state, shared, scratch, h, value, shared.crew[TASK])
            settle_cells(forests, shared.fields, h - first, shared.taken[h])
            exchange(shared.done, h, g + 1)
        if not swap_at(data, state, shared, group, g):
            return STOPPED
        phase = PROPOSE
    return FINISHED


@uncounted
def place_of(fields, cell, k):
    """(forest, its chain) of a cell of chain k of a group. fields: (L, 13), behind those of write_model the
    forest of every cell, its number among the cells there, and how many these are."""
    return fields[cell, 10], k * fields[cell, 12] + fields[cell, 11]


@uncounted
def evaluate_cells(forests):
    """Evaluate what the chains propose, all forests begun before any is awaited. READY, or why one was not
    evaluated; others may be then, and wait to be settled."""
    status = READY
    for i in range(len(forests)):
        row = forests[i]
        begun = begin_evaluation(chains_at(row), change_at(row), device_at(row))
        if begun != READY:
            status = begun
            active = device_at(row).active
            for k in range(len(active)):
                active[k] = 0
    for i in range(len(forests)):
        row = forests[i]
        found = await_values(trees_at(row), device_at(row))
        if found != READY:
            status = found
    return status


@uncounted
def cell_value(forests, fields, cell, k):
    """The log-likelihood of a cell of what chain k of a group proposes; of what it accepted, where the
    proposal does not change the cell."""
    i, place = place_of(fields, cell, k)
    trees = trees_at(forests[i])
    pending = trees.pending[place] != 0
    return trees.value[1 - trees.accepted[place] if pending else trees.accepted[place], place]


@uncounted
def settle_cells(forests, fields, k, taken):
    for cell in range(len(fields)):
        i, place = place_of(fields, cell, k)
        settle_version(chains_at(forests[i]), change_at(forests[i]), place, taken)


@uncounted
def swap_at(data, state, shared, group, g):
    """Swap temperatures at the end of generation g where a chain of this group takes part: the thread that
    has the first of the two does it; a pair of -1 is nobody's. False where another has failed meanwhile."""
    _, first, end = group
    if len(state.slot) > 1:
        row = g - shared.crew[BASE]
        i, j = shared.pair[row, 0], shared.pair[row, 1]
        if first <= i < end:
            if not await_shared(shared.done, j, g + 1, shared.stop):
                return False
            swap_chains(
                data.heat, (state.log_prior, state.log_likelihood, state.log_working), state.rank,
                state.swaps_tried, state.swaps_accepted, i, j, shared.log_uniform[row],
            )  # fmt: skip
            exchange(shared.swapped, j, g + 1)
        elif first <= j < end and not await_shared(shared.swapped, j, g + 1, shared.stop):
            return False
    for h in range(end - 1, first - 1, -1):  # the first one says how far the group is
        exchange(shared.swapped, h, g + 1)
    return True


@uncounted
def await_shared(counter, index, amount, stop):
    """Wait until a counter has reached an amount; False where a thread has failed."""
    turns = 0
    while read_shared(counter, index) < amount:
        if read_shared(stop, 0) != 0:
            return False
        turns += 1
        if turns > _PATIENCE:
            give_way()
    return True


@uncounted
def stays(crew, swapped, group):
    """Wait for another goal; False for a helper that is to leave, or gives up its place as nothing comes."""
    thread, first, _ = group
    turns = 0
    while read_shared(swapped, first) >= read_shared(crew, GOAL):
        turns += 1
        if turns > _PATIENCE:
            give_way()
        if turns > _PATIENCE + _IDLE or read_shared(crew, LEAVE) != 0:
            exchange(crew, FIRST_THERE + 8 * thread, 0)
            late = read_shared(swapped, first) < fetch_add(crew, GOAL, 0)
            return late and exchange(crew, FIRST_THERE + 8 * thread, 1) == 0
    return True


@uncounted
def set_goal(crew, n_generations, task, n_threads, away):
    """Ask for more generations. away: (n_threads,) out, 1 for helpers whose place was empty: the caller sends
    one there."""
    crew[BASE], crew[TASK] = crew[GOAL], task
    fetch_add(crew, GOAL, n_generations)
    for thread in range(1, n_threads):
        away[thread] = 1 - exchange(crew, FIRST_THERE + 8 * thread, 1)


@uncounted
def propose_chain(data, state, shared, scratch, forests, numbers):
    """Make a chain's proposal and write it as changes for the device; shared.waits = 1 where a model of its
    parts must be set by the caller. numbers: of the chain in the run and in its group."""
    h, k = numbers
    begin(state, h)
    u, move = uniform(state.rng[h]), 0
    while state.cumulative[move] < u:
        move += 1
    ratio = propose(data, state, shared, scratch, h, move)
    prior = -math.inf
    if ratio > -math.inf:
        prior = chain_prior(data, state, h, 1 - state.slot[h])
    shared.move[h], shared.ratio[h], shared.prior[h], shared.waits[h] = move, ratio, prior, 0
    if prior > -math.inf:
        for cell in range(len(shared.fields)):
            i, place = place_of(shared.fields, cell, k)
            write_change(data, state, shared, scratch, forests[i], (h, place, cell))


@uncounted
def write_change(data, state, shared, scratch, row, numbers):
    """What a chain proposes for one of its cells, after those before it. row: of the cell's forest; numbers:
    of the chain in the run and in that forest, and of the cell."""
    h, k, cell = numbers
    change, own, addresses = change_at(row), data.numbers[h, cell], data.addresses[h, cell]
    old, new, n, part = state.slot[h], 1 - state.slot[h], cell_numbers(own), data.part_of[cell]
    if data.moves.on[shared.move[h]] == OF_TOPOLOGY:
        _write_edits(data.n_tips, state.left[h], state.right[h], old, new, change, k)
    first = n.first_lengths
    for x in range(state.lengths.shape[3] - 1):
        differs = False
        for g in range(first, first + n.length_classes):
            differs = differs or state.lengths[h, old, g, x] != state.lengths[h, new, g, x]
        if differs:
            change.branches[k, change.counts[k, N_BRANCHES]] = x
            change.counts[k, N_BRANCHES] += 1
            for g in range(n.length_classes):
                change.lengths[k, g, x] = state.lengths[h, new, first + g, x]
    if model_differs(data.recipes, part, state.values[h, old], state.values[h, new]):
        if data.recipes.rows[part, KIND] == COMPILED:
            if leads(data.part_of, cell):
                set_model(data.recipes, part, state.values[h, new], own, addresses, scratch)
            write_model(own, addresses, shared.fields[cell], change, k)
        else:
            shared.waits[h] = 1


@uncounted
def _write_edits(n_tips, left, right, old, new, change, k):
    """Nodes whose two children are others."""
    for x in range(n_tips, left.shape[1]):
        l, r, a, b = left[new, x], right[new, x], left[old, x], right[old, x]
        if (l == a and r == b) or (l == b and r == a):
            left[new, x], right[new, x] = a, b
            continue
        n = change.counts[k, N_EDITS]
        change.edits[k, n, 0], change.edits[k, n, 1], change.edits[k, n, 2] = x, l, r
        change.counts[k, N_EDITS] = n + 1


@uncounted
def write_model(numbers, addresses, fields, change, k):
    """The model in the slot of a cell that is not in use, as the device wants it, for chain k of a forest.

    fields: (13,) first word of weights, process, invariant, invariant frequencies, frequencies, values,
    right, left and generator, and the padded number of states; then see place_of.
    """
    n = cell_numbers(numbers)
    slot = 1 - int64_at(addresses[SLOT], (2,))[0]
    model, words, w = cell_model(n, addresses, slot), change.numbers[k], fields[9]
    for c in range(n.categories):
        words[fields[0] + c] = model.weights[c]
        change.rates[k, c], change.length_set[k, c] = model.rates[c], model.length_class[c]
    whole = words.view(np.int64)
    for c in range(n.categories):
        whole[fields[1] + c] = model.process[c]
    words[fields[2]] = float64_at(addresses[INVARIANT], (2,))[slot]
    for i in range(n.states):
        words[fields[3] + i] = model.invariant_frequencies[i]
    for m in range(n.processes):
        for i in range(n.states):
            words[fields[4] + m * w + i] = model.root_frequencies[m, i]
            words[fields[5] + m * w + i] = model.values[m, i]
            for j in range(n.states):
                right = model.right[m, i, j] if n.states == 4 else model.right[m, j, i]
                words[fields[6] + (m * w + i) * w + j] = right
                words[fields[7] + (m * w + i) * w + j] = model.left[m, i, j]
    change.counts[k, MODEL] = 1


@uncounted
def settle_chain(data, state, shared, scratch, h, likelihood, task):
    """Accept chain h's proposal or not, at its temperature; shared.taken[h] says which."""
    rank, move, ratio, prior = state.rank[h], shared.move[h], shared.ratio[h], shared.prior[h]
    taken, proposed = False, prior > -math.inf
    defined = judge(state, h, move, ratio, prior, likelihood if proposed else 0.0)
    if proposed:
        ratio += data.heat[rank, PRIOR] * (prior - state.log_prior[h])
        ratio += data.heat[rank, LIKELIHOOD] * (likelihood - state.log_likelihood[h])
        taken = ratio >= 0.0 or math.log(uniform(state.rng[h])) < ratio
        taken = taken and defined
        if taken:
            old, new = state.slot[h], 1 - state.slot[h]
            for cell in range(data.addresses.shape[1]):
                part, values = data.part_of[cell], state.values[h]
                if leads(data.part_of, cell) and model_differs(data.recipes, part, values[old], values[new]):
                    slot = int64_at(data.addresses[h, cell][SLOT], (2,))
                    slot[0] = 1 - slot[0]
            state.log_likelihood[h], state.log_prior[h] = likelihood, prior
            state.slot[h] = new
    shared.taken[h], shared.move[h] = taken, -1
    state.tried[rank, move] += 1
    state.accepted[rank, move] += taken
    if task == TUNE and rank == 0:
        note_jump(data, state, scratch, h, move, taken, ALIKE)
    if task == TUNE and data.moves.target[move] > 0.0:
        tune_move(data, state, rank, move, taken)
